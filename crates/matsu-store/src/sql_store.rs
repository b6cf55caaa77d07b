//! The store ports on top of the transitions: each method is one line that names its transition.

mod notify;
mod push;
mod research;
mod schedules;
mod sessions;
mod transcripts;
mod webhooks;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use matsu_core::access::{RemovedUser, User};
use matsu_core::budget::{BudgetLine, BudgetUnit};
use matsu_core::change::ChangeCursor;
use matsu_core::clock::Timestamp;
use matsu_core::error_code::ErrorCode;
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

use crate::memory::Memory;
use crate::postgres::{self, Postgres};
use crate::sql::Transition;
use crate::sqlite::Sqlite;
use crate::transitions::changes::{ChangesSince, CursorNow, Prune};
use crate::transitions::claim_alone::{ClaimAlone, IsLoneJobWaiting};
use crate::transitions::expire::{Expire, MarkRead};
use crate::transitions::guard::Guarded;
use crate::transitions::kept_work::KeepWork;
use crate::transitions::left_runs::{AdoptRun, LoseRun, ReadLeftRuns};
use crate::transitions::nodes::{Beat, ReadNodes, ReadSlots, ReapNode, Register};
use crate::transitions::park::{ParkForInput, RequeueParked, ResumeFromInput};
use crate::transitions::read::{
    CountTasks, CountUnfinished, ListJobs, ListSummaries, ListTasks, ReadInfo, ReadJob, ReadOrders, ReadSummary,
    ReadTask, ReadTasks,
};
use crate::transitions::run_answers::{AnswerQuestion, ReadAnswer};
use crate::transitions::run_output::{AppendOutput, ReadOutput, ReadPosition};
use crate::transitions::run_sessions::{InsertRun, NoteSession, ReadSession};
use crate::transitions::spending::{HoldTurns, MovePermit, PermitStep, ReadBudget, Reserve, Settle, TakeTurn};
use crate::transitions::spent::{NoteSpent, ReadSpent};
use crate::transitions::tokens::{ExtendToken, InsertToken, ListTokens, RevokeToken, TokenByHash};
use crate::transitions::update_job::{NoteProgress, UpdateJob};
use crate::transitions::users::{ListUsers, PutUser, ReadUser, RemoveUser};

/// A driver.
pub enum Backend {
    Memory(Memory),
    Sqlite(Sqlite),
    Postgres(Box<Postgres>),
}

/// Any backend as a [`Store`].
pub struct SqlStore {
    backend: Arc<Backend>,
    hub: Arc<Hub>,
    /// On behalf of which session it writes.
    guard: Option<SessionId>,
}

impl SqlStore {
    pub fn new(backend: Backend, hub: Arc<Hub>) -> Self {
        Self { backend: Arc::new(backend), hub, guard: None }
    }

    async fn write<T: Transition>(&self, transition: T) -> Result<T::Output, StoreError> {
        match &self.guard {
            None => self.commit(transition).await,
            Some(session) => self.commit(Guarded { session: session.clone(), inner: transition }).await,
        }
    }

    async fn commit<T: Transition>(&self, transition: T) -> Result<T::Output, StoreError> {
        match &*self.backend {
            Backend::Memory(memory) => memory.run(&transition),
            Backend::Sqlite(sqlite) => sqlite.write(transition).await,
            Backend::Postgres(postgres) => postgres.write(transition).await,
        }
    }

    async fn read<T: Transition>(&self, transition: T) -> Result<T::Output, StoreError> {
        match &*self.backend {
            Backend::Memory(memory) => memory.run(&transition),
            Backend::Sqlite(sqlite) => sqlite.read(transition).await,
            Backend::Postgres(postgres) => postgres.read(transition).await,
        }
    }
}

#[async_trait]
impl Store for SqlStore {
    fn hub(&self) -> &Arc<Hub> {
        &self.hub
    }

    fn guarded(&self, session: &SessionId) -> Arc<dyn Store> {
        let (backend, hub) = (Arc::clone(&self.backend), Arc::clone(&self.hub));
        Arc::new(Self { backend, hub, guard: Some(session.clone()) })
    }

    async fn foreign_change(&self) -> ForeignChange {
        match &*self.backend {
            Backend::Memory(_) => std::future::pending().await,
            Backend::Sqlite(sqlite) => sqlite.foreign_change().await,
            Backend::Postgres(postgres) => postgres.foreign_change().await,
        }
    }
}

#[async_trait]
impl TaskStore for SqlStore {
    async fn insert_task(&self, task: NewTask) -> Result<InsertedTask, StoreError> {
        self.write(task).await
    }

    async fn task(&self, id: &TaskId) -> Result<TaskLookup, StoreError> {
        self.read(ReadTask(id.clone())).await
    }

    async fn tasks(&self, ids: &[TaskId]) -> Result<Vec<Task>, StoreError> {
        self.read(ReadTasks(ids.to_vec())).await
    }

    async fn list_tasks(&self, filter: &TaskFilter, page: &PageRequest) -> Result<Page<Task>, StoreError> {
        self.read(ListTasks { filter: filter.clone(), page: page.clone() }).await
    }

    async fn unfinished_tasks(&self, owner: &Principal, max: u32) -> Result<u32, StoreError> {
        self.read(CountTasks { owner: owner.clone(), max }).await
    }

    async fn set_status(&self, request: SetStatus) -> Result<Task, StoreError> {
        self.write(request).await
    }

    async fn reassign_task(&self, request: Reassign) -> Result<Task, StoreError> {
        self.write(request).await
    }

    async fn stop_task(&self, request: StopTask) -> Result<StoppedTask, StoreError> {
        self.write(request).await
    }

    async fn mark_read(&self, ids: &[TaskId], now: Timestamp) -> Result<(), StoreError> {
        self.write(MarkRead { ids: ids.to_vec(), now }).await
    }

    async fn set_review(&self, request: SetReview) -> Result<Task, StoreError> {
        self.write(request).await
    }

    async fn expire_tasks(&self, rule: ExpiryRule, rows_max: u32) -> Result<Expired, StoreError> {
        self.write(Expire { rule, rows_max }).await
    }
}

#[async_trait]
impl JobStore for SqlStore {
    async fn enqueue(&self, request: Enqueue) -> Result<Enqueued, StoreError> {
        self.write(request).await
    }

    async fn finish_and_claim(&self, request: FinishAndClaim) -> Result<ClaimOutcome, StoreError> {
        self.write(request).await
    }

    async fn is_lone_job_waiting(&self, claim: &Claim, now: Timestamp) -> Result<bool, StoreError> {
        self.read(IsLoneJobWaiting { claim: claim.clone(), now }).await
    }

    async fn claim_alone(&self, claim: &Claim, now: Timestamp) -> Result<Option<Job>, StoreError> {
        self.write(ClaimAlone { claim: claim.clone(), now }).await
    }

    async fn update_job(&self, lease: &Lease, update: JobUpdate, now: Timestamp) -> Result<(), StoreError> {
        self.write(UpdateJob { lease: lease.clone(), update, now }).await
    }

    async fn note_progress(&self, notes: &[ProgressNote], now: Timestamp) -> Result<Vec<JobId>, StoreError> {
        self.write(NoteProgress { notes: notes.to_vec(), now }).await
    }

    async fn park_for_input(&self, lease: &Lease, question_json: &str, now: Timestamp) -> Result<(), StoreError> {
        self.write(ParkForInput { lease: lease.clone(), question_json: question_json.to_owned(), now }).await
    }

    async fn resume_from_input(&self, lease: &Lease, permits_max: u32, now: Timestamp) -> Result<bool, StoreError> {
        self.write(ResumeFromInput { lease: lease.clone(), permits_max, now }).await
    }

    async fn requeue_parked(&self, jobs: &[JobId], now: Timestamp) -> Result<Vec<JobId>, StoreError> {
        self.write(RequeueParked { jobs: jobs.to_vec(), now }).await
    }

    async fn job(&self, id: &JobId) -> Result<Job, StoreError> {
        self.read(ReadJob(id.clone())).await
    }

    async fn list_jobs(&self, filter: &JobFilter, page: &PageRequest) -> Result<Page<Job>, StoreError> {
        self.read(ListJobs { filter: filter.clone(), page: page.clone() }).await
    }

    async fn job_summaries(&self, filter: &JobFilter, page: &PageRequest) -> Result<Page<JobSummary>, StoreError> {
        self.read(ListSummaries { filter: filter.clone(), page: page.clone() }).await
    }

    async fn orders(&self, running: &[Lease]) -> Result<Vec<Order>, StoreError> {
        self.read(ReadOrders(running.to_vec())).await
    }
}

#[async_trait]
impl RunStore for SqlStore {
    async fn insert_run(&self, task: NewTask, session: Option<SessionClaim>) -> Result<InsertedTask, StoreError> {
        self.write(InsertRun { task, session }).await
    }

    async fn agent_session(&self, owner: &Principal, name: &str) -> Result<Option<AgentSession>, StoreError> {
        self.read(ReadSession { owner: owner.clone(), name: name.to_owned() }).await
    }

    async fn note_session(&self, lease: &Lease, note: SessionNote, now: Timestamp) -> Result<(), StoreError> {
        self.write(NoteSession { lease: lease.clone(), note, now }).await
    }

    async fn append_output(&self, lease: &Lease, parts: Vec<OutputPart>, read_to: u64) -> Result<(), StoreError> {
        self.write(AppendOutput { lease: lease.clone(), parts, read_to }).await
    }

    async fn output_position(&self, job: &JobId, from_attempt: i64) -> Result<OutputPosition, StoreError> {
        self.read(ReadPosition { job: job.clone(), from_attempt }).await
    }

    async fn read_output(&self, job: &JobId, wish: OutputRange) -> Result<OutputSlice, StoreError> {
        self.read(ReadOutput { job: job.clone(), wish }).await
    }

    async fn answer_question(&self, job: &JobId, answer: &Answer, now: Timestamp) -> Result<(), StoreError> {
        self.write(AnswerQuestion { job: job.clone(), answer: answer.clone(), now }).await
    }

    async fn keep_work(&self, job: &JobId, work: &KeptWork, now: Timestamp) -> Result<bool, StoreError> {
        self.write(KeepWork { job: job.clone(), work: work.clone(), now }).await
    }

    async fn note_spent(&self, spent: &Spent) -> Result<(), StoreError> {
        self.write(NoteSpent(spent.clone())).await
    }

    async fn spent(
        &self,
        owner: &Principal,
        from: Timestamp,
        until: Timestamp,
        rows_max: u32,
    ) -> Result<Vec<Spent>, StoreError> {
        self.read(ReadSpent { owner: owner.clone(), from, until, rows_max }).await
    }

    async fn answer_to(&self, job: &JobId, question: &str) -> Result<Option<Answer>, StoreError> {
        self.read(ReadAnswer { job: job.clone(), question: question.to_owned() }).await
    }
}

#[async_trait]
impl NodeStore for SqlStore {
    async fn register_node(&self, node: NewNode) -> Result<(), StoreError> {
        match &*self.backend {
            Backend::Sqlite(sqlite) => sqlite.register_node(node).await,
            Backend::Memory(_) | Backend::Postgres(_) => self.write(Register(node)).await,
        }
    }

    async fn beat(&self, id: &NodeId) -> Result<(), StoreError> {
        match &*self.backend {
            Backend::Postgres(postgres) => postgres.write(Beat(id.clone())).await,
            // A lock, or the process itself, proves it alive.
            Backend::Memory(_) | Backend::Sqlite(_) => Ok(()),
        }
    }

    async fn nodes(&self) -> Result<Vec<Node>, StoreError> {
        self.read(ReadNodes).await
    }

    async fn slots(&self) -> Result<Vec<SlotUse>, StoreError> {
        self.read(ReadSlots).await
    }

    async fn dead_nodes(&self, observer: &NodeId) -> Result<Vec<NodeId>, StoreError> {
        match &*self.backend {
            Backend::Memory(_) => Ok(Memory::dead_nodes()),
            Backend::Sqlite(sqlite) => sqlite.dead_nodes(observer).await,
            Backend::Postgres(postgres) => postgres.dead_nodes(observer).await,
        }
    }

    async fn reap_node(&self, id: &NodeId, now: Timestamp) -> Result<Vec<JobId>, StoreError> {
        let settled = self.write(ReapNode { node: id.clone(), now }).await?;
        if let Backend::Sqlite(sqlite) = &*self.backend {
            sqlite.forget_node(id);
        }
        Ok(settled)
    }

    async fn left_runs(&self) -> Result<Vec<LeftRun>, StoreError> {
        self.read(ReadLeftRuns).await
    }

    async fn adopt_run(&self, run: &Lease, node: &NodeId, now: Timestamp) -> Result<Option<Lease>, StoreError> {
        self.write(AdoptRun { run: run.clone(), node: node.clone(), now }).await
    }

    async fn lose_run(&self, run: &Lease, message: &str, now: Timestamp) -> Result<bool, StoreError> {
        self.write(LoseRun { run: run.clone(), message: message.to_owned(), now }).await
    }
}

#[async_trait]
impl SpendingStore for SqlStore {
    async fn budget(&self, task: &TaskId) -> Result<Vec<BudgetLine>, StoreError> {
        self.read(ReadBudget(task.clone())).await
    }

    async fn reserve(&self, lease: &Lease, unit: BudgetUnit, amount: i64) -> Result<Reservation, StoreError> {
        self.write(Reserve { lease: lease.clone(), unit, amount }).await
    }

    async fn settle(&self, lease: &Lease, reservation: &Reservation, spent: i64) -> Result<(), StoreError> {
        self.write(Settle { lease: lease.clone(), reservation: reservation.clone(), spent }).await
    }

    async fn take_inner_permit(&self, lease: &Lease, slot: Slot, permits_max: u32) -> Result<bool, StoreError> {
        self.write(MovePermit { lease: lease.clone(), step: PermitStep::TakeInner { slot, permits_max } }).await
    }

    async fn free_inner_permit(&self, lease: &Lease, slot: Slot) -> Result<(), StoreError> {
        self.write(MovePermit { lease: lease.clone(), step: PermitStep::FreeInner { slot } }).await.map(drop)
    }

    async fn lend_permit(&self, lease: &Lease) -> Result<(), StoreError> {
        self.write(MovePermit { lease: lease.clone(), step: PermitStep::Lend }).await.map(drop)
    }

    async fn regain_permit(&self, lease: &Lease, permits_max: u32) -> Result<(), StoreError> {
        self.write(MovePermit { lease: lease.clone(), step: PermitStep::Regain { permits_max } }).await.map(drop)
    }

    async fn take_turn(&self, key: &str, step_ms: i64, now: Timestamp) -> Result<Timestamp, StoreError> {
        self.write(TakeTurn { key: key.to_owned(), step_ms, now }).await
    }

    async fn hold_turns(&self, key: &str, until: Timestamp) -> Result<(), StoreError> {
        self.write(HoldTurns { key: key.to_owned(), until }).await
    }
}

#[async_trait]
impl ChangeStore for SqlStore {
    async fn changes_since(&self, cursor: ChangeCursor, rows_max: u32) -> Result<ChangeBatch, StoreError> {
        self.read(ChangesSince { cursor, rows_max }).await
    }

    async fn change_cursor(&self) -> Result<ChangeCursor, StoreError> {
        self.read(CursorNow).await
    }

    async fn prune(&self, rule: PruneRule, rows_max: u32) -> Result<Pruned, StoreError> {
        if let Backend::Sqlite(sqlite) = &*self.backend {
            sqlite.sweep_locks().await?;
        }
        self.write(Prune { rule, rows_max }).await
    }
}

#[async_trait]
impl TokenStore for SqlStore {
    async fn insert_token(&self, token: NewToken) -> Result<Token, StoreError> {
        self.write(InsertToken(token)).await
    }

    async fn token_by_hash(&self, secret_hash: &str) -> Result<Option<Token>, StoreError> {
        self.read(TokenByHash(secret_hash.to_owned())).await
    }

    async fn tokens(&self, of: Option<&Principal>, page: &PageRequest) -> Result<Page<Token>, StoreError> {
        self.read(ListTokens { of: of.cloned(), page: page.clone() }).await
    }

    async fn revoke_token(&self, of: Option<&Principal>, id: &TokenId, now: Timestamp) -> Result<(), StoreError> {
        self.write(RevokeToken { of: of.cloned(), id: id.clone(), now }).await
    }

    async fn extend_token(&self, id: &TokenId, expires_at: Timestamp) -> Result<(), StoreError> {
        self.write(ExtendToken { id: id.clone(), expires_at }).await
    }

    async fn put_user(&self, user: &Principal, roots: &[PathBuf], now: Timestamp) -> Result<User, StoreError> {
        self.write(PutUser { user: user.clone(), roots: roots.to_vec(), now }).await
    }

    async fn user(&self, user: &Principal) -> Result<Option<User>, StoreError> {
        self.read(ReadUser(user.clone())).await
    }

    async fn users(&self, page: &PageRequest) -> Result<Page<User>, StoreError> {
        self.read(ListUsers(page.clone())).await
    }

    async fn remove_user(&self, user: &Principal, now: Timestamp) -> Result<RemovedUser, StoreError> {
        self.write(RemoveUser { user: user.clone(), now }).await
    }
}

#[async_trait]
impl UpkeepStore for SqlStore {
    async fn check(&self) -> Result<StoreInfo, StoreError> {
        let (backend, location, schema_version) = match &*self.backend {
            Backend::Memory(_) => ("memory", "this process".to_owned(), Sqlite::schema_version()),
            Backend::Sqlite(sqlite) => ("sqlite", sqlite.location(), Sqlite::schema_version()),
            Backend::Postgres(server) => ("postgres", server.location(), postgres::connection::SCHEMA_VERSION),
        };
        // A write, so that a full or read-only disk shows.
        self.write(TakeTurn { key: "check".to_owned(), step_ms: 0, now: Timestamp::from_millis(0) }).await?;
        self.read(ReadInfo { backend, location, schema_version }).await
    }

    async fn unfinished_jobs(&self) -> Result<i64, StoreError> {
        self.read(CountUnfinished).await
    }

    async fn summary(&self, owner: &Principal, failed_since: Timestamp) -> Result<Summary, StoreError> {
        self.read(ReadSummary { owner: owner.clone(), failed_since }).await
    }

    async fn backup(&self, to: &Path) -> Result<(), StoreError> {
        match &*self.backend {
            Backend::Sqlite(sqlite) => sqlite.backup(to).await,
            Backend::Memory(_) => Err(no_backup("a memory store has nothing to keep")),
            Backend::Postgres(_) => Err(no_backup("use pg_dump to back up a PostgreSQL store")),
        }
    }
}

fn no_backup(message: &str) -> StoreError {
    StoreError::Refused { code: ErrorCode::InvalidParams, message: message.to_owned() }
}
