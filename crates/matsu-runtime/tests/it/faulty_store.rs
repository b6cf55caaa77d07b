//! A store that fails on command: before the work, or after it with the answer lost. It also keeps a trace.

mod notify;
mod push;
mod research;
mod schedules;
mod sessions;
mod transcripts;
mod webhooks;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;

use matsu_core::access::{RemovedUser, User};
use matsu_core::budget::{BudgetLine, BudgetUnit};
use matsu_core::change::{ChangeCursor, Topic};
use matsu_core::clock::{Clock, Timestamp};
use matsu_core::id::{JobId, NodeId, SessionId, TaskId, TokenId};
use matsu_core::job::{Job, JobSummary, Lease};
use matsu_core::node::Node;
use matsu_core::page::{Page, PageRequest};
use matsu_core::ports::store::{
    AgentSession, ChangeBatch, ChangeStore, Claim, ClaimOutcome, Enqueue, Enqueued, Expired, ExpiryRule,
    FinishAndClaim, ForeignChange, InsertedTask, JobFilter, JobStore, JobUpdate, LeftRun, NewNode, NodeStore, Order,
    OutputPart, OutputPosition, OutputRange, OutputSlice, ProgressNote, PruneRule, Pruned, Reassign, Reservation,
    RunStore, SessionClaim, SessionNote, SetReview, SetStatus, SlotUse, SpendingStore, StopTask, StoppedTask, Store,
    StoreError, StoreInfo, Summary, TaskFilter, TaskLookup, TaskStore, TokenStore, UpkeepStore,
};
use matsu_core::principal::Principal;
use matsu_core::run::{Answer, KeptWork};
use matsu_core::slot::Slot;
use matsu_core::task::{NewTask, Task};
use matsu_core::token::{NewToken, Token};
use matsu_core::usage::Spent;
use matsu_core::wake::Hub;

use crate::fixtures::Chance;

pub struct FaultyStore {
    inner: Arc<dyn Store>,
    plan: Mutex<Plan>,
    trace: AtomicU64,
    calls: AtomicU64,
    calls_of: Mutex<HashMap<&'static str, u64>>,
    is_chattering: AtomicBool,
}

/// What goes wrong.
pub enum Plan {
    Nothing,
    /// Every call is refused.
    Down,
    /// No call ever returns.
    Hangs,
    /// The next calls of this name panic, and their callers with them.
    Panics(&'static str, u32),
    /// The next calls of this name do their work, and their answer is lost.
    AnswerLost(&'static str, u32),
    /// This many calls in a hundred are refused, and of this many the answer is lost.
    AtRandom {
        chance: Chance,
        refused: u64,
        lost: u64,
    },
}

enum Fault {
    None,
    Refused,
    AnswerLost,
    Hangs,
    Panics,
}

impl FaultyStore {
    pub fn new(inner: Arc<dyn Store>) -> Arc<Self> {
        Arc::new(Self {
            inner,
            plan: Mutex::new(Plan::Nothing),
            trace: AtomicU64::new(0),
            calls: AtomicU64::new(0),
            calls_of: Mutex::default(),
            is_chattering: AtomicBool::new(false),
        })
    }

    pub fn set(&self, plan: Plan) {
        *self.plan.lock().expect("a plan") = plan;
    }

    /// A number that two runs share only if they made the same calls in the same order.
    pub fn trace(&self) -> u64 {
        self.trace.load(Ordering::Relaxed)
    }

    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    /// How often this was called.
    pub fn calls_of(&self, name: &str) -> u64 {
        self.calls_of.lock().expect("counts").get(name).copied().unwrap_or(0)
    }

    /// From now on other nodes have something to say a thousand times a second.
    pub fn chatter(&self) {
        self.is_chattering.store(true, Ordering::Relaxed);
    }

    fn fault(&self, name: &'static str) -> Fault {
        match &mut *self.plan.lock().expect("a plan") {
            Plan::Nothing => Fault::None,
            Plan::Down => Fault::Refused,
            Plan::Hangs => Fault::Hangs,
            Plan::Panics(which, times) if *which == name && *times > 0 => {
                *times -= 1;
                Fault::Panics
            }
            Plan::Panics(..) => Fault::None,
            Plan::AnswerLost(which, times) if *which == name && *times > 0 => {
                *times -= 1;
                Fault::AnswerLost
            }
            Plan::AnswerLost(..) => Fault::None,
            Plan::AtRandom { chance, refused, lost } => match chance.below(100) {
                roll if roll < *refused => Fault::Refused,
                roll if roll < *refused + *lost => Fault::AnswerLost,
                _ => Fault::None,
            },
        }
    }

    async fn pass<T>(
        &self,
        name: &'static str,
        call: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        *self.calls_of.lock().expect("counts").entry(name).or_default() += 1;
        let traced =
            name.bytes().fold(self.trace(), |trace, byte| (trace ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
        self.trace.store(traced, Ordering::Relaxed);
        let gone = || StoreError::Unavailable("as the test wished".to_owned());
        match self.fault(name) {
            Fault::None => call.await,
            Fault::Refused => Err(gone()),
            Fault::Hangs => std::future::pending().await,
            Fault::Panics => panic!("as the test wished"),
            Fault::AnswerLost => {
                call.await?;
                Err(gone())
            }
        }
    }
}

#[async_trait]
impl Store for FaultyStore {
    fn hub(&self) -> &Arc<Hub> {
        self.inner.hub()
    }

    fn guarded(&self, session: &SessionId) -> Arc<dyn Store> {
        self.inner.guarded(session)
    }

    async fn foreign_change(&self) -> ForeignChange {
        if self.is_chattering.load(Ordering::Relaxed) {
            Clock::system().sleep(Duration::from_millis(1)).await;
            return ForeignChange::Topics(vec![Topic::from_text("task/elsewhere")]);
        }
        self.inner.foreign_change().await
    }
}

#[async_trait]
impl TaskStore for FaultyStore {
    async fn insert_task(&self, task: NewTask) -> Result<InsertedTask, StoreError> {
        self.pass("insert_task", self.inner.insert_task(task)).await
    }

    async fn task(&self, id: &TaskId) -> Result<TaskLookup, StoreError> {
        self.pass("task", self.inner.task(id)).await
    }

    async fn tasks(&self, ids: &[TaskId]) -> Result<Vec<Task>, StoreError> {
        self.pass("tasks", self.inner.tasks(ids)).await
    }

    async fn list_tasks(&self, filter: &TaskFilter, page: &PageRequest) -> Result<Page<Task>, StoreError> {
        self.pass("list_tasks", self.inner.list_tasks(filter, page)).await
    }

    async fn unfinished_tasks(&self, owner: &Principal, max: u32) -> Result<u32, StoreError> {
        self.pass("unfinished_tasks", self.inner.unfinished_tasks(owner, max)).await
    }

    async fn set_status(&self, request: SetStatus) -> Result<Task, StoreError> {
        self.pass("set_status", self.inner.set_status(request)).await
    }

    async fn reassign_task(&self, request: Reassign) -> Result<Task, StoreError> {
        self.pass("reassign_task", self.inner.reassign_task(request)).await
    }

    async fn stop_task(&self, request: StopTask) -> Result<StoppedTask, StoreError> {
        self.pass("stop_task", self.inner.stop_task(request)).await
    }

    async fn mark_read(&self, ids: &[TaskId], now: Timestamp) -> Result<(), StoreError> {
        self.pass("mark_read", self.inner.mark_read(ids, now)).await
    }

    async fn set_review(&self, request: SetReview) -> Result<Task, StoreError> {
        self.pass("set_review", self.inner.set_review(request)).await
    }

    async fn expire_tasks(&self, rule: ExpiryRule, rows_max: u32) -> Result<Expired, StoreError> {
        self.pass("expire_tasks", self.inner.expire_tasks(rule, rows_max)).await
    }
}

#[async_trait]
impl JobStore for FaultyStore {
    async fn enqueue(&self, request: Enqueue) -> Result<Enqueued, StoreError> {
        self.pass("enqueue", self.inner.enqueue(request)).await
    }

    async fn finish_and_claim(&self, request: FinishAndClaim) -> Result<ClaimOutcome, StoreError> {
        self.pass("finish_and_claim", self.inner.finish_and_claim(request)).await
    }

    async fn is_lone_job_waiting(&self, claim: &Claim, now: Timestamp) -> Result<bool, StoreError> {
        self.pass("is_lone_job_waiting", self.inner.is_lone_job_waiting(claim, now)).await
    }

    async fn claim_alone(&self, claim: &Claim, now: Timestamp) -> Result<Option<Job>, StoreError> {
        self.pass("claim_alone", self.inner.claim_alone(claim, now)).await
    }

    async fn update_job(&self, lease: &Lease, update: JobUpdate, now: Timestamp) -> Result<(), StoreError> {
        self.pass("update_job", self.inner.update_job(lease, update, now)).await
    }

    async fn note_progress(&self, notes: &[ProgressNote], now: Timestamp) -> Result<Vec<JobId>, StoreError> {
        self.pass("note_progress", self.inner.note_progress(notes, now)).await
    }

    async fn park_for_input(&self, lease: &Lease, question_json: &str, now: Timestamp) -> Result<(), StoreError> {
        self.pass("park_for_input", self.inner.park_for_input(lease, question_json, now)).await
    }

    async fn resume_from_input(&self, lease: &Lease, permits_max: u32, now: Timestamp) -> Result<bool, StoreError> {
        self.pass("resume_from_input", self.inner.resume_from_input(lease, permits_max, now)).await
    }

    async fn requeue_parked(&self, jobs: &[JobId], now: Timestamp) -> Result<Vec<JobId>, StoreError> {
        self.pass("requeue_parked", self.inner.requeue_parked(jobs, now)).await
    }

    async fn job(&self, id: &JobId) -> Result<Job, StoreError> {
        self.pass("job", self.inner.job(id)).await
    }

    async fn list_jobs(&self, filter: &JobFilter, page: &PageRequest) -> Result<Page<Job>, StoreError> {
        self.pass("list_jobs", self.inner.list_jobs(filter, page)).await
    }

    async fn job_summaries(&self, filter: &JobFilter, page: &PageRequest) -> Result<Page<JobSummary>, StoreError> {
        self.pass("job_summaries", self.inner.job_summaries(filter, page)).await
    }

    async fn orders(&self, running: &[Lease]) -> Result<Vec<Order>, StoreError> {
        self.pass("orders", self.inner.orders(running)).await
    }
}

#[async_trait]
impl RunStore for FaultyStore {
    async fn insert_run(&self, task: NewTask, session: Option<SessionClaim>) -> Result<InsertedTask, StoreError> {
        self.pass("insert_run", self.inner.insert_run(task, session)).await
    }

    async fn agent_session(&self, owner: &Principal, name: &str) -> Result<Option<AgentSession>, StoreError> {
        self.pass("agent_session", self.inner.agent_session(owner, name)).await
    }

    async fn note_session(&self, lease: &Lease, note: SessionNote, now: Timestamp) -> Result<(), StoreError> {
        self.pass("note_session", self.inner.note_session(lease, note, now)).await
    }

    async fn append_output(&self, lease: &Lease, parts: Vec<OutputPart>, read_to: u64) -> Result<(), StoreError> {
        self.pass("append_output", self.inner.append_output(lease, parts, read_to)).await
    }

    async fn output_position(&self, job: &JobId, from_attempt: i64) -> Result<OutputPosition, StoreError> {
        self.pass("output_position", self.inner.output_position(job, from_attempt)).await
    }

    async fn read_output(&self, job: &JobId, wish: OutputRange) -> Result<OutputSlice, StoreError> {
        self.pass("read_output", self.inner.read_output(job, wish)).await
    }

    async fn answer_question(&self, job: &JobId, answer: &Answer, now: Timestamp) -> Result<(), StoreError> {
        self.pass("answer_question", self.inner.answer_question(job, answer, now)).await
    }

    async fn keep_work(&self, job: &JobId, work: &KeptWork, now: Timestamp) -> Result<bool, StoreError> {
        self.pass("keep_work", self.inner.keep_work(job, work, now)).await
    }

    async fn note_spent(&self, spent: &Spent) -> Result<(), StoreError> {
        self.pass("note_spent", self.inner.note_spent(spent)).await
    }

    async fn spent(
        &self,
        owner: &Principal,
        from: Timestamp,
        until: Timestamp,
        rows_max: u32,
    ) -> Result<Vec<Spent>, StoreError> {
        self.pass("spent", self.inner.spent(owner, from, until, rows_max)).await
    }

    async fn answer_to(&self, job: &JobId, question: &str) -> Result<Option<Answer>, StoreError> {
        self.pass("answer_to", self.inner.answer_to(job, question)).await
    }
}

#[async_trait]
impl NodeStore for FaultyStore {
    async fn register_node(&self, node: NewNode) -> Result<(), StoreError> {
        self.pass("register_node", self.inner.register_node(node)).await
    }

    async fn beat(&self, id: &NodeId) -> Result<(), StoreError> {
        // As where heartbeats count: a node that was reaped gets an error.
        if !self.inner.nodes().await?.iter().any(|node| node.id == *id) {
            return Err(StoreError::NotFound { what: "node", id: id.to_string() });
        }
        self.pass("beat", self.inner.beat(id)).await
    }

    async fn nodes(&self) -> Result<Vec<Node>, StoreError> {
        self.pass("nodes", self.inner.nodes()).await
    }

    async fn slots(&self) -> Result<Vec<SlotUse>, StoreError> {
        self.pass("slots", self.inner.slots()).await
    }

    async fn dead_nodes(&self, observer: &NodeId) -> Result<Vec<NodeId>, StoreError> {
        self.pass("dead_nodes", self.inner.dead_nodes(observer)).await
    }

    async fn reap_node(&self, id: &NodeId, now: Timestamp) -> Result<Vec<JobId>, StoreError> {
        self.pass("reap_node", self.inner.reap_node(id, now)).await
    }

    async fn left_runs(&self) -> Result<Vec<LeftRun>, StoreError> {
        self.pass("left_runs", self.inner.left_runs()).await
    }

    async fn adopt_run(&self, run: &Lease, node: &NodeId, now: Timestamp) -> Result<Option<Lease>, StoreError> {
        self.pass("adopt_run", self.inner.adopt_run(run, node, now)).await
    }

    async fn lose_run(&self, run: &Lease, message: &str, now: Timestamp) -> Result<bool, StoreError> {
        self.pass("lose_run", self.inner.lose_run(run, message, now)).await
    }
}

#[async_trait]
impl SpendingStore for FaultyStore {
    async fn budget(&self, task: &TaskId) -> Result<Vec<BudgetLine>, StoreError> {
        self.pass("budget", self.inner.budget(task)).await
    }

    async fn reserve(&self, lease: &Lease, unit: BudgetUnit, amount: i64) -> Result<Reservation, StoreError> {
        self.pass("reserve", self.inner.reserve(lease, unit, amount)).await
    }

    async fn settle(&self, lease: &Lease, reservation: &Reservation, spent: i64) -> Result<(), StoreError> {
        self.pass("settle", self.inner.settle(lease, reservation, spent)).await
    }

    async fn take_inner_permit(&self, lease: &Lease, slot: Slot, permits_max: u32) -> Result<bool, StoreError> {
        self.pass("take_inner_permit", self.inner.take_inner_permit(lease, slot, permits_max)).await
    }

    async fn free_inner_permit(&self, lease: &Lease, slot: Slot) -> Result<(), StoreError> {
        self.pass("free_inner_permit", self.inner.free_inner_permit(lease, slot)).await
    }

    async fn lend_permit(&self, lease: &Lease) -> Result<(), StoreError> {
        self.pass("lend_permit", self.inner.lend_permit(lease)).await
    }

    async fn regain_permit(&self, lease: &Lease, permits_max: u32) -> Result<(), StoreError> {
        self.pass("regain_permit", self.inner.regain_permit(lease, permits_max)).await
    }

    async fn take_turn(&self, key: &str, step_ms: i64, now: Timestamp) -> Result<Timestamp, StoreError> {
        self.pass("take_turn", self.inner.take_turn(key, step_ms, now)).await
    }

    async fn hold_turns(&self, key: &str, until: Timestamp) -> Result<(), StoreError> {
        self.pass("hold_turns", self.inner.hold_turns(key, until)).await
    }
}

#[async_trait]
impl ChangeStore for FaultyStore {
    async fn changes_since(&self, cursor: ChangeCursor, rows_max: u32) -> Result<ChangeBatch, StoreError> {
        self.pass("changes_since", self.inner.changes_since(cursor, rows_max)).await
    }

    async fn change_cursor(&self) -> Result<ChangeCursor, StoreError> {
        self.pass("change_cursor", self.inner.change_cursor()).await
    }

    async fn prune(&self, rule: PruneRule, rows_max: u32) -> Result<Pruned, StoreError> {
        self.pass("prune", self.inner.prune(rule, rows_max)).await
    }
}

#[async_trait]
impl TokenStore for FaultyStore {
    async fn insert_token(&self, token: NewToken) -> Result<Token, StoreError> {
        self.pass("insert_token", self.inner.insert_token(token)).await
    }

    async fn token_by_hash(&self, secret_hash: &str) -> Result<Option<Token>, StoreError> {
        self.pass("token_by_hash", self.inner.token_by_hash(secret_hash)).await
    }

    async fn tokens(&self, of: Option<&Principal>, page: &PageRequest) -> Result<Page<Token>, StoreError> {
        self.pass("tokens", self.inner.tokens(of, page)).await
    }

    async fn revoke_token(&self, of: Option<&Principal>, id: &TokenId, now: Timestamp) -> Result<(), StoreError> {
        self.pass("revoke_token", self.inner.revoke_token(of, id, now)).await
    }

    async fn extend_token(&self, id: &TokenId, expires_at: Timestamp) -> Result<(), StoreError> {
        self.pass("extend_token", self.inner.extend_token(id, expires_at)).await
    }

    async fn put_user(&self, user: &Principal, roots: &[PathBuf], now: Timestamp) -> Result<User, StoreError> {
        self.pass("put_user", self.inner.put_user(user, roots, now)).await
    }

    async fn user(&self, user: &Principal) -> Result<Option<User>, StoreError> {
        self.pass("user", self.inner.user(user)).await
    }

    async fn users(&self, page: &PageRequest) -> Result<Page<User>, StoreError> {
        self.pass("users", self.inner.users(page)).await
    }

    async fn remove_user(&self, user: &Principal, now: Timestamp) -> Result<RemovedUser, StoreError> {
        self.pass("remove_user", self.inner.remove_user(user, now)).await
    }
}

#[async_trait]
impl UpkeepStore for FaultyStore {
    async fn check(&self) -> Result<StoreInfo, StoreError> {
        self.pass("check", self.inner.check()).await
    }

    async fn summary(&self, owner: &Principal, failed_since: Timestamp) -> Result<Summary, StoreError> {
        self.pass("summary", self.inner.summary(owner, failed_since)).await
    }

    async fn unfinished_jobs(&self) -> Result<i64, StoreError> {
        self.pass("unfinished_jobs", self.inner.unfinished_jobs()).await
    }

    async fn backup(&self, to: &Path) -> Result<(), StoreError> {
        self.pass("backup", self.inner.backup(to)).await
    }
}
