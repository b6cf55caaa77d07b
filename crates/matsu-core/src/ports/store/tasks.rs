//! Tasks: create, read, steer, stop, expire.

use crate::clock::Timestamp;
use crate::id::{JobId, TaskId};
use crate::page::{Page, PageRequest};
use crate::principal::Principal;
use crate::task::{NewTask, Review, StopMode, StopReason, Task, TaskKind, TaskStatus};

use super::request;

request! {
    /// Stores a task with its first jobs. A known idempotency key with the same body returns the first task
    /// and stores nothing; with another body it is `Conflict`.
    NewTask => InsertedTask
}

/// Also answers for a task that has expired, while its tombstone stands. Never existed: `NotFound`.
#[derive(Clone, Debug)]
pub struct ReadTask(pub TaskId);
request!(ReadTask => TaskLookup);

/// Those of `ids` that exist, in ascending id order; absent ones are simply missing.
#[derive(Clone, Debug)]
pub struct ReadTasks(pub Vec<TaskId>);
request!(ReadTasks => Vec<Task>);

/// Newest first.
#[derive(Clone, Debug)]
pub struct ListTasks {
    pub filter: TaskFilter,
    pub page: PageRequest,
}
request!(ListTasks => Page<Task>);

/// How many tasks of this owner have not ended, counted up to `max`.
#[derive(Clone, Debug)]
pub struct CountTasks {
    pub owner: Principal,
    pub max: u32,
}
request!(CountTasks => u32);

request! {
    /// Pause, block, resume. Queued jobs are held back or released in the same transaction; running ones learn of it
    /// through their orders. Repeating it changes nothing.
    SetStatus => Task
}

request! {
    /// Gives a task to another agent, or to none. The session that worked on it is interrupted in the same transaction.
    /// Giving it to the agent that has it changes nothing; an ended or running task of Matsu's own is `Closed`.
    Reassign => Task
}

request! {
    /// Asks a task to stop. Idempotent: a later, harder mode replaces a softer one, never the reverse. Queued and
    /// parked jobs are cancelled at once, running ones too if the mode is immediate. The task ends with its last
    /// unfinished job, in this transaction if there is none.
    StopTask => StoppedTask
}

/// Notes that the owner has seen the end of a task. Only the first time counts; an unfinished or
/// unknown task is left alone.
#[derive(Clone, Debug)]
pub struct MarkRead {
    pub ids: Vec<TaskId>,
    pub now: Timestamp,
}
request!(MarkRead => ());

/// The reply that showed these results is lost: those that were first read at this time count as unread again.
#[derive(Clone, Debug)]
pub struct TakeBackRead {
    pub ids: Vec<TaskId>,
    pub read_at: Timestamp,
}
request!(TakeBackRead => ());

request! {
    /// Stores what a person decided about the changes of a run, or that nothing is decided any more.
    SetReview => Task
}

/// Removes finished agent and wait tasks that the rule calls expired, oldest first, leaving tombstones, and
/// tombstones that are themselves too old. At most `rows_max` of each.
#[derive(Clone, Debug)]
pub struct ExpireTasks {
    pub rule: ExpiryRule,
    pub rows_max: u32,
}
request!(ExpireTasks => Expired);

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
