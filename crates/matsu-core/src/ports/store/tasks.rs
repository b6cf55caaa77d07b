//! Tasks: create, read, steer, stop, expire.

use async_trait::async_trait;

use crate::clock::Timestamp;
use crate::id::{JobId, TaskId};
use crate::page::{Page, PageRequest};
use crate::principal::Principal;
use crate::task::{NewTask, Review, StopMode, StopReason, Task, TaskKind, TaskStatus};

use super::StoreError;

#[async_trait]
pub trait TaskStore {
    /// Stores a task with its first jobs. A known idempotency key with the same body returns the first task
    /// and stores nothing; with another body it is `Conflict`.
    async fn insert_task(&self, task: NewTask) -> Result<InsertedTask, StoreError>;

    /// Also answers for a task that has expired, while its tombstone stands. Never existed: `NotFound`.
    async fn task(&self, id: &TaskId) -> Result<TaskLookup, StoreError>;

    /// Those of `ids` that exist, in ascending id order; absent ones are simply missing.
    async fn tasks(&self, ids: &[TaskId]) -> Result<Vec<Task>, StoreError>;

    /// Newest first.
    async fn list_tasks(&self, filter: &TaskFilter, page: &PageRequest) -> Result<Page<Task>, StoreError>;

    /// How many tasks of this owner have not ended, counted up to `max`.
    async fn unfinished_tasks(&self, owner: &Principal, max: u32) -> Result<u32, StoreError>;

    /// Pause, block, resume. Queued jobs are held back or released in the same transaction; running ones learn of it
    /// through their orders. Repeating it changes nothing.
    async fn set_status(&self, request: SetStatus) -> Result<Task, StoreError>;

    /// Gives a task to another agent, or to none. The session that worked on it is interrupted in the same transaction.
    /// Giving it to the agent that has it changes nothing; an ended or running task of Matsu's own is `Closed`.
    async fn reassign_task(&self, request: Reassign) -> Result<Task, StoreError>;

    /// Asks a task to stop. Idempotent: a later, harder mode replaces a softer one, never the reverse. Queued and
    /// parked jobs are cancelled at once, running ones too if the mode is immediate. The task ends with its last
    /// unfinished job, in this transaction if there is none.
    async fn stop_task(&self, request: StopTask) -> Result<StoppedTask, StoreError>;

    /// Notes that the owner has seen the end of a task. Only the first time counts; an unfinished or
    /// unknown task is left alone.
    async fn mark_read(&self, ids: &[TaskId], now: Timestamp) -> Result<(), StoreError>;

    /// Stores what a person decided about the changes of a run, or that nothing is decided any more.
    async fn set_review(&self, request: SetReview) -> Result<Task, StoreError>;

    /// Removes finished agent and wait tasks that the rule calls expired, oldest first, leaving tombstones, and
    /// tombstones that are themselves too old. At most `rows_max` of each.
    async fn expire_tasks(&self, rule: ExpiryRule, rows_max: u32) -> Result<Expired, StoreError>;
}

/// What came of an insertion.
#[derive(Clone, Debug)]
pub struct InsertedTask {
    pub task: Task,
    /// The jobs in the order they were given; those of the first call when `existed`.
    pub job_ids: Vec<JobId>,
    pub existed: bool,
}

/// A decision about the changes of a run.
#[derive(Clone, Debug)]
pub struct SetReview {
    pub task_id: TaskId,
    pub job_id: JobId,
    /// `None`: an earlier decision is taken back.
    pub review: Option<Review>,
    pub now: Timestamp,
}

/// A task, or what is left of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskLookup {
    Found(Box<Task>),
    Expired { owner: Principal, status: TaskStatus, expired_at: Timestamp },
}

#[derive(Clone, Debug, Default)]
pub struct TaskFilter {
    pub owner: Option<Principal>,
    pub kind: Option<TaskKind>,
    pub status: Option<TaskStatus>,
    pub parent: Option<TaskId>,
    /// Only unfinished ones, and finished ones that were not read before this moment.
    pub open_or_unread_since: Option<Timestamp>,
    /// Each of these, at most `SEARCH_WORDS_MAX`, is found in its title, in what was asked of its jobs or in their
    /// results, however its ASCII letters are written.
    pub words: Vec<String>,
}

/// A person or an owner steers a task.
#[derive(Clone, Debug)]
pub struct SetStatus {
    pub task_id: TaskId,
    pub to: Steer,
    pub by: Principal,
    pub message: Option<String>,
    pub now: Timestamp,
}

/// The orders that a task can be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Steer {
    Pause,
    Block,
    Resume,
}

/// A person gives a task to another agent.
#[derive(Clone, Debug)]
pub struct Reassign {
    pub task_id: TaskId,
    pub to: Option<String>,
    pub now: Timestamp,
}

#[derive(Clone, Debug)]
pub struct StopTask {
    pub task_id: TaskId,
    pub mode: StopMode,
    pub reason: StopReason,
    pub now: Timestamp,
}

#[derive(Clone, Debug)]
pub struct StoppedTask {
    pub task: Task,
    pub cancelled_queued: i64,
    pub cancelled_running: i64,
    /// It had already ended, and nothing was changed.
    pub was_terminal: bool,
}

/// When a finished agent or wait task is old enough to go.
#[derive(Clone, Copy, Debug)]
pub struct ExpiryRule {
    pub now: Timestamp,
    /// Native waits that ended and were first read before this.
    pub waits_read_before: Timestamp,
    /// Finished before this, read or not.
    pub finished_before: Timestamp,
    /// Native waits that were made before this, and that no client asked about again, are over.
    pub waits_before: Timestamp,
    /// Tombstones made before this go too.
    pub tombstones_before: Timestamp,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expired {
    pub tasks: Vec<TaskId>,
    pub tombstones: u64,
}
