//! Jobs: enqueue, claim, finish, and everything a running job writes under its lease.

use async_trait::async_trait;

use crate::clock::Timestamp;
use crate::id::{JobId, NodeId, TaskId};
use crate::job::{Job, JobEnd, JobKind, JobState, JobSummary, Lease, NewJob};
use crate::page::{Page, PageRequest};
use crate::principal::Principal;
use crate::slot::Slot;
use crate::task::Task;

use super::StoreError;

#[async_trait]
pub trait JobStore {
    /// All or nothing. A job whose dedupe key is carried by an unfinished job of the task is not queued; the
    /// answer names that one. A stopped, ended, blocked or paused task is `Closed`.
    async fn enqueue(&self, request: Enqueue) -> Result<Enqueued, StoreError>;

    /// Settles ended jobs and claims others in one transaction. Each finish stands alone: one that lost its
    /// lease is answered so and changes nothing. Claims follow `priority`, `queued_at`, insertion order, take only
    /// the kinds that are named, and never exceed the slot's permits over all nodes.
    async fn finish_and_claim(&self, request: FinishAndClaim) -> Result<ClaimOutcome, StoreError>;

    /// Whether there is a job that must run alone, whose time has come and which `claim` could take.
    async fn is_lone_job_waiting(&self, claim: &Claim, now: Timestamp) -> Result<bool, StoreError>;

    /// Starts the first job that must run alone; no other claim takes one. The node that asks runs nothing that it
    /// could take along, and starts nothing beside it.
    async fn claim_alone(&self, claim: &Claim, now: Timestamp) -> Result<Option<Job>, StoreError>;

    /// Writes progress or a checkpoint under the fence.
    async fn update_job(&self, lease: &Lease, update: JobUpdate, now: Timestamp) -> Result<(), StoreError>;

    /// Shows where jobs stand, all of it in one transaction: the revision of each task grows by one, however many of
    /// its jobs have progress. Returns the jobs whose lease is lost, of which nothing was written.
    async fn note_progress(&self, notes: &[ProgressNote], now: Timestamp) -> Result<Vec<JobId>, StoreError>;

    /// A running job asks a question: it keeps its lease and its process, and frees its permit.
    async fn park_for_input(&self, lease: &Lease, question_json: &str, now: Timestamp) -> Result<(), StoreError>;

    /// The question is answered: runs again under the same attempt, if a permit is free. `false`: not yet.
    async fn resume_from_input(&self, lease: &Lease, permits_max: u32, now: Timestamp) -> Result<bool, StoreError>;

    /// Queues jobs again that waited for a login. Others are left alone. Returns those that moved, in id order.
    async fn requeue_parked(&self, jobs: &[JobId], now: Timestamp) -> Result<Vec<JobId>, StoreError>;

    async fn job(&self, id: &JobId) -> Result<Job, StoreError>;

    /// In the filter's order.
    async fn list_jobs(&self, filter: &JobFilter, page: &PageRequest) -> Result<Page<Job>, StoreError>;

    /// As [`JobStore::list_jobs`], for lists: large texts are not read.
    async fn job_summaries(&self, filter: &JobFilter, page: &PageRequest) -> Result<Page<JobSummary>, StoreError>;

    /// What a node must do about jobs it runs: those not listed go on as they are.
    async fn orders(&self, running: &[Lease]) -> Result<Vec<Order>, StoreError>;
}

#[derive(Clone, Debug)]
pub struct Enqueue {
    /// `None`: system jobs.
    pub task_id: Option<TaskId>,
    pub jobs: Vec<NewJob>,
    /// If this principal paused the task, it resumes: a caller that hands over work wants it done.
    pub resume_for: Option<Principal>,
    pub now: Timestamp,
}

#[derive(Clone, Debug)]
pub struct Enqueued {
    /// As it stands afterwards; absent for system jobs.
    pub task: Option<Task>,
    /// In the order they were given.
    pub jobs: Vec<EnqueuedJob>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EnqueuedJob {
    Queued(JobId),
    /// An unfinished job with the same dedupe key.
    Duplicate(JobId),
}

#[derive(Clone, Debug, Default)]
pub struct FinishAndClaim {
    pub finishes: Vec<Finish>,
    pub claim: Option<Claim>,
    pub now: Timestamp,
}

#[derive(Clone, Debug)]
pub struct Finish {
    pub lease: Lease,
    pub end: JobEnd,
}

#[derive(Clone, Debug)]
pub struct Claim {
    pub node: NodeId,
    pub slot: Slot,
    /// What this node can run. Jobs of other kinds are left to nodes that can.
    pub kinds: Vec<JobKind>,
    /// How many more this node wants.
    pub jobs_max: u32,
    /// The slot's permits over all nodes.
    pub permits_max: u32,
    /// Whether delayed jobs whose time has come get in line first. While there is always a next job, that need not be
    /// looked for every time.
    pub wakes_due: bool,
}

#[derive(Debug, Default)]
pub struct ClaimOutcome {
    /// One answer per finish, in order: the state it settled in, or why it was refused.
    pub finished: Vec<Result<JobState, StoreError>>,
    /// In start order.
    pub claimed: Vec<Job>,
    /// When the next delayed job of the slot becomes ready, if nothing ready was left.
    pub next_run_at: Option<Timestamp>,
}

/// Where a job stands.
#[derive(Clone, Debug)]
pub struct ProgressNote {
    pub lease: Lease,
    pub progress_json: String,
}

/// What a running job may write about itself.
#[derive(Clone, Debug)]
pub enum JobUpdate {
    /// Shown to callers that wait; bumps the revision.
    Progress(String),
    /// Progress of a job whose end is about to be written, and is shown with that.
    LastProgress(String),
    /// Where the next attempt would go on. Not visible.
    Checkpoint(String),
    /// Output so far, kept if the owner dies. Not visible.
    PartialOutput(String),
}

#[derive(Clone, Debug, Default)]
pub struct JobFilter {
    /// Only jobs of this principal's tasks.
    pub owner: Option<Principal>,
    pub task_id: Option<TaskId>,
    pub state: Option<JobState>,
    pub slot: Option<Slot>,
    pub order: JobOrder,
    /// Only those that are running or parked, and those that were queued, started or finished at or after this
    /// moment: what a reader who was up to date then has missed.
    pub moved_since: Option<Timestamp>,
}

/// In which order jobs are listed; by insertion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum JobOrder {
    #[default]
    OldestFirst,
    NewestFirst,
}

/// Something a node must do about a job it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    pub lease: Lease,
    pub kind: OrderKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderKind {
    /// Its task is being stopped gracefully: end soon, the result counts.
    EndSoon,
    /// Its task was paused or blocked: end at the next checkpoint; the job goes back to the queue or, for an
    /// agent's run, is cancelled.
    Yield,
    /// The lease is lost, by an immediate stop or otherwise: abort, nothing more can be written.
    Abort,
}
