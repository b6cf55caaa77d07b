//! Jobs: enqueue, claim, finish, and everything a running job writes under its lease.

use crate::clock::Timestamp;
use crate::id::{JobId, NodeId, TaskId};
use crate::job::{Job, JobEnd, JobKind, JobState, JobSummary, Lease, NewJob};
use crate::page::{Page, PageRequest};
use crate::principal::Principal;
use crate::slot::Slot;
use crate::task::Task;

use super::{StoreError, request};

request! {
    /// All or nothing. A job whose dedupe key is carried by an unfinished job of the task is not queued; the
    /// answer names that one. A stopped, ended, blocked or paused task is `Closed`.
    Enqueue => Enqueued
}

request! {
    /// Settles ended jobs and claims others in one transaction. Each finish stands alone: one that lost its
    /// lease is answered so and changes nothing. Claims follow `priority`, `queued_at`, insertion order, take only
    /// the kinds that are named, and never exceed the slot's permits over all nodes.
    FinishAndClaim => ClaimOutcome
}

/// Whether there is a job that must run alone, whose time has come and which `claim` could take.
#[derive(Clone, Debug)]
pub struct IsLoneJobWaiting {
    pub claim: Claim,
    pub now: Timestamp,
}
request!(IsLoneJobWaiting => bool);

/// Starts the first job that must run alone; no other claim takes one. The node that asks runs nothing that it
/// could take along, and starts nothing beside it.
#[derive(Clone, Debug)]
pub struct ClaimAlone {
    pub claim: Claim,
    pub now: Timestamp,
}
request!(ClaimAlone => Option<Job>);

/// Writes progress or a checkpoint under the fence.
#[derive(Clone, Debug)]
pub struct UpdateJob {
    pub lease: Lease,
    pub update: JobUpdate,
    pub now: Timestamp,
}
request!(UpdateJob => ());

/// Shows where jobs stand, all of it in one transaction: the revision of each task grows by one, however many of
/// its jobs have progress. Returns the jobs whose lease is lost, of which nothing was written.
#[derive(Clone, Debug)]
pub struct NoteProgress {
    pub notes: Vec<ProgressNote>,
    pub now: Timestamp,
}
request!(NoteProgress => Vec<JobId>);

/// A running job asks a question: it keeps its lease and its process, and frees its permit.
#[derive(Clone, Debug)]
pub struct ParkForInput {
    pub lease: Lease,
    pub question_json: String,
    pub now: Timestamp,
}
request!(ParkForInput => ());

/// The question is answered: runs again under the same attempt, if a permit is free. `false`: not yet.
#[derive(Clone, Debug)]
pub struct ResumeFromInput {
    pub lease: Lease,
    pub permits_max: u32,
    pub now: Timestamp,
}
request!(ResumeFromInput => bool);

/// Queues jobs again that waited for a login. Others are left alone. Returns those that moved, in id order.
#[derive(Clone, Debug)]
pub struct RequeueParked {
    pub jobs: Vec<JobId>,
    pub now: Timestamp,
}
request!(RequeueParked => Vec<JobId>);

#[derive(Clone, Debug)]
pub struct ReadJob(pub JobId);
request!(ReadJob => Job);

/// In the filter's order.
#[derive(Clone, Debug)]
pub struct ListJobs {
    pub filter: JobFilter,
    pub page: PageRequest,
}
request!(ListJobs => Page<Job>);

/// As [`ListJobs`], for lists: large texts are not read.
#[derive(Clone, Debug)]
pub struct ListJobSummaries {
    pub filter: JobFilter,
    pub page: PageRequest,
}
request!(ListJobSummaries => Page<JobSummary>);

/// What a node must do about jobs it runs: those not listed go on as they are.
#[derive(Clone, Debug)]
pub struct ReadOrders(pub Vec<Lease>);
request!(ReadOrders => Vec<Order>);

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
