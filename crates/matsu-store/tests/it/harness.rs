//! One fresh store per test, and the few steps every case is made of.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use matsu_core::agent::NewAgent;
use matsu_core::chat::{ChatKind, Message, NewChat, NewMessage, Sender};
use matsu_core::clock::{Clock, Timestamp};
use matsu_core::id::{AgentId, ChatId, JobId, MessageId, NodeId, ProjectId, RunId, SessionId, TaskId};
use matsu_core::job::{Job, JobEnd, JobKind, JobState, Lease, NewJob, Priority};
use matsu_core::node::NodeRole;
use matsu_core::ports::store::{
    Claim, Enqueue, Enqueued, EnqueuedJob, Finish, FinishAndClaim, InsertAgent, InsertMessage, NewNode, NewSession,
    OpenChat, OpenedChat, PostMessage, ReadJob, ReadTask, Store, StoreError, TaskLookup, WantedFor,
};
use matsu_core::principal::Principal;
use matsu_core::session::Session;
use matsu_core::slot::{Slot, SlotLimits};
use matsu_core::task::{NewTask, Task, TaskKind};
use matsu_store::{OpenOptions, Synchronous, open};

#[derive(Clone, Copy, Debug)]
#[allow(non_camel_case_types, reason = "the names of the test modules")]
pub enum Backend {
    memory,
    sqlite,
    postgres,
}

/// A store of its own, a clock that only the test moves, and a node.
pub struct TestStore {
    pub store: Arc<dyn Store>,
    pub node: NodeId,
    now: AtomicI64,
    _folder: tempfile::TempDir,
}

pub const OPTIONS: OpenOptions = OpenOptions { synchronous: Synchronous::Normal, clock: Clock::system() };

pub fn postgres_url() -> String {
    let base = std::env::var("MATSU_TEST_POSTGRES")
        .expect("MATSU_TEST_POSTGRES names a server; use `make test` or `scripts/postgres.sh run cargo test`");
    let mark = if base.contains('?') { '&' } else { '?' };
    format!("{base}{mark}schema=t_{}", &JobId::mint(Clock::system().now()).as_str()[2..])
}

impl TestStore {
    pub async fn open(backend: Backend) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let url = match backend {
            Backend::memory => "memory:".to_owned(),
            Backend::sqlite => format!("sqlite:{}", folder.path().join("matsu.db").display()),
            Backend::postgres => postgres_url(),
        };
        let test = Self { _folder: folder, ..Self::open_at(&url).await };
        test.register(&test.node).await;
        test
    }

    /// A store that is where the test says; its node is not registered yet.
    pub async fn open_at(url: &str) -> Self {
        let opened = open(url, OPTIONS).await.unwrap();
        let now = AtomicI64::new(1_700_000_000_000);
        let node = NodeId::mint(Timestamp::from_millis(0));
        Self { store: opened.store, node, now, _folder: tempfile::tempdir().unwrap() }
    }

    pub async fn register(&self, id: &NodeId) {
        self.register_with(id, None).await;
    }

    pub async fn register_with(&self, id: &NodeId, limits: Option<SlotLimits>) {
        let node = NewNode {
            id: id.clone(),
            role: NodeRole::Worker,
            host: "test".to_owned(),
            pid: 1,
            version: "0".to_owned(),
            started_at: self.now(),
            limits,
        };
        self.store.register_node(node).await.unwrap();
    }

    pub async fn second_node(&self) -> NodeId {
        let id = NodeId::mint(self.now());
        self.register(&id).await;
        id
    }

    pub fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.now.load(Ordering::Relaxed))
    }

    pub fn pass(&self, span: Duration) -> Timestamp {
        self.now.fetch_add(span.as_millis() as i64, Ordering::Relaxed);
        self.now()
    }

    pub fn new_task(&self, kind: TaskKind) -> NewTask {
        NewTask {
            id: TaskId::mint(self.now()),
            kind,
            owner: Principal::local_user(),
            project_id: None,
            title: "a task".to_owned(),
            config_json: "{}".to_owned(),
            budget: Vec::new(),
            assignee: None,
            parent_id: None,
            depends_on: Vec::new(),
            jobs: Vec::new(),
            idempotency: None,
            created_at: self.now(),
        }
    }

    pub async fn insert(&self, task: NewTask) -> Task {
        self.store.run(task).await.unwrap().task
    }

    pub async fn research(&self) -> Task {
        self.insert(self.new_task(TaskKind::Research)).await
    }

    /// An agent task with this many jobs.
    pub async fn agent(&self, jobs: usize) -> Task {
        let mut task = self.new_task(TaskKind::Agent);
        task.jobs = (0..jobs).map(|_| self.new_job(JobKind::Noop)).collect();
        self.insert(task).await
    }

    pub fn new_job(&self, kind: JobKind) -> NewJob {
        NewJob {
            id: JobId::mint(self.now()),
            kind,
            priority: Priority::Medium,
            slot: Slot::NetworkClient,
            input_json: "{}".to_owned(),
            cause_id: None,
            run_at: self.now(),
            dedupe_key: None,
        }
    }

    pub async fn try_enqueue(&self, task: &TaskId, jobs: Vec<NewJob>) -> Result<Enqueued, StoreError> {
        let request = Enqueue { task_id: Some(task.clone()), jobs, resume_for: None, now: self.now() };
        self.store.run(request).await
    }

    pub async fn enqueue(&self, task: &TaskId, kind: JobKind) -> JobId {
        let enqueued = self.try_enqueue(task, vec![self.new_job(kind)]).await.unwrap();
        match &enqueued.jobs[0] {
            EnqueuedJob::Queued(id) => id.clone(),
            EnqueuedJob::Duplicate(id) => panic!("{id} is a duplicate"),
        }
    }

    pub fn claim_request(&self, node: &NodeId, jobs_max: u32, permits_max: u32) -> FinishAndClaim {
        let kinds = JobKind::ALL.to_vec();
        let claim =
            Claim { node: node.clone(), slot: Slot::NetworkClient, kinds, jobs_max, permits_max, wakes_due: true };
        FinishAndClaim { finishes: Vec::new(), claim: Some(claim), now: self.now() }
    }

    /// Claims up to `jobs_max`, with permits in plenty.
    pub async fn claim(&self, jobs_max: u32) -> Vec<Job> {
        let request = self.claim_request(&self.node, jobs_max, 100);
        self.store.run(request).await.unwrap().claimed
    }

    pub async fn claim_one(&self) -> Job {
        self.claim(1).await.pop().expect("a job can be claimed")
    }

    pub async fn finish(&self, lease: &Lease, end: JobEnd) -> Result<JobState, StoreError> {
        let finishes = vec![Finish { lease: lease.clone(), end }];
        let request = FinishAndClaim { finishes, claim: None, now: self.now() };
        self.store.run(request).await.unwrap().finished.pop().unwrap()
    }

    pub async fn complete(&self, job: &Job) -> Result<JobState, StoreError> {
        self.finish(&lease(job), completed()).await
    }

    pub async fn task(&self, id: &TaskId) -> Task {
        match self.store.run(ReadTask(id.clone())).await.unwrap() {
            TaskLookup::Found(task) => *task,
            gone @ TaskLookup::Expired { .. } => panic!("{id} is {gone:?}"),
        }
    }

    pub async fn job(&self, id: &JobId) -> Job {
        self.store.run(ReadJob(id.clone())).await.unwrap()
    }
}

/// What the cases about chats and sessions are made of.
impl TestStore {
    pub async fn new_agent(&self, id: &str) {
        self.new_agent_of(id, None).await;
    }

    /// One that is started by this definition, or connects by itself.
    pub async fn new_agent_of(&self, id: &str, definition: Option<&str>) {
        let agent = NewAgent {
            id: AgentId::from_text(id),
            name: id.to_owned(),
            definition: definition.map(str::to_owned),
            system_prompt: None,
            passkey_hash: "a hash".to_owned(),
            created_at: self.now(),
        };
        self.store.run(InsertAgent(agent)).await.unwrap();
    }

    pub async fn open_chat(&self, agent: &str) -> OpenedChat {
        let chat = NewChat {
            id: ChatId::mint(self.now()),
            kind: ChatKind::Agent(AgentId::from_text(agent)),
            project_id: ProjectId::from_text("default"),
            created_at: self.now(),
        };
        self.store.run(OpenChat(chat)).await.unwrap()
    }

    /// A person writes a message.
    pub async fn try_message(&self, chat: &ChatId, content: &str) -> Result<Message, StoreError> {
        let message = NewMessage {
            id: MessageId::mint(self.now()),
            chat_id: chat.clone(),
            sender: Sender::Person,
            sender_id: "user:local".to_owned(),
            content: content.to_owned(),
            reply_to: None,
            created_at: self.now(),
        };
        self.store.run(InsertMessage(message)).await
    }

    pub async fn message(&self, chat: &ChatId, content: &str) -> Message {
        self.try_message(chat, content).await.unwrap()
    }

    pub async fn say(
        &self,
        session: &Session,
        content: &str,
        reply_to: Option<&MessageId>,
        connection: &str,
    ) -> Result<Message, StoreError> {
        let say = PostMessage {
            id: MessageId::mint(self.now()),
            session_id: session.id.clone(),
            content: content.to_owned(),
            reply_to: reply_to.cloned(),
            connection: connection.to_owned(),
            now: self.now(),
        };
        self.store.run(say).await
    }

    /// The agent authenticates and takes whatever is open.
    pub async fn begin(&self, agent: &str) -> Result<Session, StoreError> {
        let id = SessionId::mint(self.now());
        let session = NewSession {
            token_hash: format!("hash of {id}"),
            id,
            owner: Principal::local_user(),
            agent_id: AgentId::from_text(agent),
            project_id: ProjectId::from_text("default"),
            wanted: WantedFor::WhateverIsOpen,
            listening: Vec::new(),
            job_id: None,
            run_id: None,
            mode: None,
            grants: None,
            now: self.now(),
            expires_at: self.now().plus(Duration::from_secs(3_600)),
        };
        self.store.run(session).await
    }

    /// The session of a run without a named agent.
    pub async fn begin_for(&self, job: &Job) -> Result<Session, StoreError> {
        let id = SessionId::mint(self.now());
        let session = NewSession {
            token_hash: format!("hash of {id}"),
            id,
            owner: Principal::local_user(),
            agent_id: AgentId::of_program("echo"),
            project_id: ProjectId::from_text("default"),
            wanted: WantedFor::Task(job.task_id.clone().expect("a run has a task")),
            listening: Vec::new(),
            job_id: Some(job.id.clone()),
            run_id: Some(RunId::mint(self.now())),
            mode: Some("read-only".to_owned()),
            grants: Some("core".to_owned()),
            now: self.now(),
            expires_at: self.now().plus(Duration::from_secs(30 * 86_400)),
        };
        self.store.run(session).await
    }

    /// A task for an agent that connects by itself.
    pub async fn task_for(&self, agent: &str) -> Task {
        let mut task = self.new_task(TaskKind::Agent);
        task.assignee = Some(agent.to_owned());
        task.project_id = Some("default".to_owned());
        self.insert(task).await
    }
}

pub fn lease(job: &Job) -> Lease {
    Lease { job_id: job.id.clone(), attempt: job.attempt }
}

pub fn completed() -> JobEnd {
    JobEnd::Completed { output_json: r#"{"done":true}"#.to_owned() }
}

pub fn ids(jobs: &[Job]) -> Vec<JobId> {
    jobs.iter().map(|job| job.id.clone()).collect()
}

#[track_caller]
pub fn assert_lease_lost<T: std::fmt::Debug>(result: Result<T, StoreError>) {
    assert!(matches!(result, Err(StoreError::LeaseLost(_))), "expected a lost lease, got {result:?}");
}
