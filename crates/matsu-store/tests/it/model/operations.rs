//! What can happen, and how likely it is. Numbers point into what exists at that moment, modulo its length.

use matsu_core::job::{JobKind, Priority};
use matsu_core::ports::store::Steer;
use matsu_core::slot::Slot;
use matsu_core::task::{StopMode, StopReason, TaskKind};
use proptest::prelude::*;

#[derive(Clone, Debug)]
pub enum Step {
    InsertTask { kind: TaskKind, parent: Option<usize>, jobs: Vec<JobSpec> },
    Enqueue { task: Option<usize>, jobs: Vec<JobSpec>, owner_returns: bool },
    FinishAndClaim { finishes: Vec<(usize, End)>, claim: Option<ClaimSpec> },
    Update { lease: usize },
    Park { lease: usize },
    Resume { lease: usize },
    RequeueParked { first: usize, count: usize },
    Stop { task: usize, mode: StopMode, reason: StopReason },
    Steer { task: usize, to: Steer, by_owner: bool },
    ReapNode { node: usize },
    ClaimAlone { node: usize, slot: Slot },
    Lend { lease: usize },
    Regain { lease: usize },
    Pass { ms: u64 },
}

#[derive(Clone, Debug)]
pub struct JobSpec {
    pub kind: JobKind,
    pub priority: Priority,
    pub slot: Slot,
    pub delay_ms: u64,
    pub dedupe: Option<u8>,
}

#[derive(Clone, Debug)]
pub struct ClaimSpec {
    pub node: usize,
    pub slot: Slot,
    pub jobs_max: u32,
}

#[derive(Clone, Copy, Debug)]
pub enum End {
    Completed,
    FailedForGood,
    FailedForNow,
    Cancelled,
    AwaitingAuth,
    Requeue,
    RequeueLater,
    OwnerLost,
    /// Only by reaping.
    OwnerDied,
}

fn job() -> impl Strategy<Value = JobSpec> {
    let kind = prop_oneof![3 => Just(JobKind::Search), 1 => Just(JobKind::AgentRun), 1 => Just(JobKind::Noop)];
    let priority = prop_oneof![1 => Just(Priority::High), 3 => Just(Priority::Medium), 1 => Just(Priority::Low)];
    let delay = prop_oneof![4 => Just(0), 1 => Just(700_u64)];
    let dedupe = prop_oneof![2 => Just(None), 1 => (0..3_u8).prop_map(Some)];
    (kind, priority, slot(), delay, dedupe).prop_map(|(kind, priority, slot, delay_ms, dedupe)| JobSpec {
        kind,
        priority,
        slot,
        delay_ms,
        dedupe,
    })
}

fn slot() -> impl Strategy<Value = Slot> {
    prop_oneof![3 => Just(Slot::NetworkClient), 1 => Just(Slot::Cpu)]
}

fn end() -> impl Strategy<Value = End> {
    prop_oneof![
        4 => Just(End::Completed),
        1 => Just(End::FailedForGood),
        2 => Just(End::FailedForNow),
        1 => Just(End::Cancelled),
        2 => Just(End::AwaitingAuth),
        1 => Just(End::Requeue),
        1 => Just(End::RequeueLater),
        1 => Just(End::OwnerLost),
    ]
}

fn claim() -> impl Strategy<Value = ClaimSpec> {
    (0..2_usize, slot(), 0..5_u32).prop_map(|(node, slot, jobs_max)| ClaimSpec { node, slot, jobs_max })
}

fn index() -> impl Strategy<Value = usize> {
    // Small, and so often the same, so that steps meet on the same things.
    0..12_usize
}

fn insert_task() -> impl Strategy<Value = Step> {
    let kind = prop_oneof![3 => Just(TaskKind::Research), 3 => Just(TaskKind::Agent), 1 => Just(TaskKind::Wait)];
    let parent = prop_oneof![2 => Just(None), 1 => index().prop_map(Some)];
    let jobs = proptest::collection::vec(job(), 0..4);
    (kind, parent, jobs).prop_map(|(kind, parent, jobs)| Step::InsertTask { kind, parent, jobs })
}

fn enqueue() -> impl Strategy<Value = Step> {
    let task = prop_oneof![6 => index().prop_map(Some), 1 => Just(None)];
    let jobs = proptest::collection::vec(job(), 0..4);
    (task, jobs, any::<bool>()).prop_map(|(task, jobs, owner_returns)| Step::Enqueue { task, jobs, owner_returns })
}

fn finish_and_claim() -> impl Strategy<Value = Step> {
    let finishes = proptest::collection::vec((index(), end()), 0..3);
    let claim = prop_oneof![3 => claim().prop_map(Some), 1 => Just(None)];
    (finishes, claim).prop_map(|(finishes, claim)| Step::FinishAndClaim { finishes, claim })
}

fn stop() -> impl Strategy<Value = Step> {
    let mode = prop_oneof![2 => Just(StopMode::Graceful), 1 => Just(StopMode::Immediate)];
    let reason = prop_oneof![Just(StopReason::Completed), Just(StopReason::UserCancelled)];
    (index(), mode, reason).prop_map(|(task, mode, reason)| Step::Stop { task, mode, reason })
}

fn steer() -> impl Strategy<Value = Step> {
    let to = prop_oneof![2 => Just(Steer::Pause), 1 => Just(Steer::Block), 3 => Just(Steer::Resume)];
    (index(), to, any::<bool>()).prop_map(|(task, to, by_owner)| Step::Steer { task, to, by_owner })
}

pub fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => insert_task(),
        5 => enqueue(),
        9 => finish_and_claim(),
        2 => index().prop_map(|lease| Step::Update { lease }),
        2 => index().prop_map(|lease| Step::Park { lease }),
        2 => index().prop_map(|lease| Step::Resume { lease }),
        2 => (index(), 1..6_usize).prop_map(|(first, count)| Step::RequeueParked { first, count }),
        2 => stop(),
        3 => steer(),
        2 => (0..2_usize).prop_map(|node| Step::ReapNode { node }),
        2 => (0..2_usize, slot()).prop_map(|(node, slot)| Step::ClaimAlone { node, slot }),
        2 => index().prop_map(|lease| Step::Lend { lease }),
        2 => index().prop_map(|lease| Step::Regain { lease }),
        3 => prop_oneof![Just(1), Just(300), Just(2_000)].prop_map(|ms| Step::Pass { ms }),
    ]
}
