//! What the model believes: plain lists, nothing kept that can be counted.

use matsu_core::clock::Timestamp;
use matsu_core::id::{JobId, NodeId, TaskId};
use matsu_core::job::{JobKind, JobState, Lease, Priority};
use matsu_core::principal::Principal;
use matsu_core::slot::Slot;
use matsu_core::task::{JobCounts, StopMode, StopReason, TaskKind, TaskStatus};

#[derive(Clone, Debug)]
pub struct ModelTask {
    pub id: TaskId,
    pub kind: TaskKind,
    pub parent: Option<usize>,
    pub depth: u32,
    pub status: TaskStatus,
    pub held_by: Option<Principal>,
    pub stop: Option<(StopMode, StopReason)>,
}

#[derive(Clone, Debug)]
pub struct ModelJob {
    pub id: JobId,
    pub task: Option<usize>,
    pub kind: JobKind,
    pub priority: Priority,
    pub slot: Slot,
    pub state: JobState,
    pub queued_at: Timestamp,
    pub run_at: Timestamp,
    pub attempt: i64,
    pub failures: u32,
    pub deaths: u32,
    pub owner: Option<NodeId>,
    pub dedupe: Option<String>,
    pub permit: Permit,
}

impl ModelJob {
    pub fn is_lone(&self) -> bool {
        self.deaths >= 3
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permit {
    None,
    Regular,
    /// Beyond the limit, for one that came back from waiting for its descendants.
    Extra,
}

#[derive(Clone, Debug, Default)]
pub struct World {
    pub tasks: Vec<ModelTask>,
    /// In the order they were stored, which breaks ties in the queue.
    pub jobs: Vec<ModelJob>,
    /// Every lease that was ever given out, lost ones too.
    pub leases: Vec<Lease>,
}

pub fn permits_max(slot: Slot) -> u32 {
    if slot == Slot::Cpu { 1 } else { 3 }
}

impl World {
    pub fn counts(&self, task: usize) -> JobCounts {
        let mut counts = JobCounts::default();
        for job in self.jobs.iter().filter(|job| job.task == Some(task)) {
            counts.add(job.state, 1);
        }
        counts
    }

    /// The job this lease really holds.
    pub fn held(&self, lease: &Lease) -> Option<usize> {
        self.jobs.iter().position(|job| job.id == lease.job_id && job.attempt == lease.attempt && job.state.is_held())
    }

    pub fn free_permits(&self, slot: Slot) -> usize {
        let taken = self.jobs.iter().filter(|job| job.slot == slot && job.permit == Permit::Regular).count();
        (permits_max(slot) as usize).checked_sub(taken).expect("the model never exceeds a limit")
    }

    pub fn is_ready(&self, job: &ModelJob, slot: Slot, now: Timestamp) -> bool {
        let task_is_held = job.task.is_some_and(|task| self.tasks[task].status.is_held());
        job.slot == slot && job.state == JobState::Queued && job.run_at <= now && !task_is_held && !job.is_lone()
    }

    /// The first that must run alone.
    pub fn lone(&self, slot: Slot, now: Timestamp) -> Option<usize> {
        let is_held = |job: &ModelJob| job.task.is_some_and(|task| self.tasks[task].status.is_held());
        let is_next = |job: &ModelJob| {
            job.is_lone() && job.slot == slot && job.state == JobState::Queued && job.run_at <= now && !is_held(job)
        };
        let lone = (0..self.jobs.len()).filter(|at| is_next(&self.jobs[*at]));
        lone.min_by_key(|at| (self.jobs[*at].priority.rank(), self.jobs[*at].queued_at, *at))
    }

    /// The order in which jobs start.
    pub fn ready(&self, slot: Slot, now: Timestamp) -> Vec<usize> {
        let mut ready: Vec<usize> =
            (0..self.jobs.len()).filter(|at| self.is_ready(&self.jobs[*at], slot, now)).collect();
        ready.sort_by_key(|at| (self.jobs[*at].priority.rank(), self.jobs[*at].queued_at, *at));
        ready
    }

    pub fn next_delayed(&self, slot: Slot, now: Timestamp) -> Option<Timestamp> {
        let delayed = self.jobs.iter().filter(|job| {
            let task_is_held = job.task.is_some_and(|task| self.tasks[task].status.is_held());
            job.slot == slot && job.state == JobState::Queued && job.run_at > now && !task_is_held && !job.is_lone()
        });
        delayed.map(|job| job.run_at).min()
    }

    /// The task and everything below it, ended ones too.
    pub fn family(&self, root: usize) -> Vec<usize> {
        let mut family = vec![root];
        let mut at = 0;
        while at < family.len() {
            let parent = family[at];
            family.extend((0..self.tasks.len()).filter(|task| self.tasks[*task].parent == Some(parent)));
            at += 1;
        }
        family
    }

    /// Every status follows from the jobs; called after each step.
    pub fn refresh(&mut self) {
        for task in 0..self.tasks.len() {
            let counts = self.counts(task);
            let task = &mut self.tasks[task];
            task.status = match (task.status, task.stop) {
                (ended, _) if ended.is_terminal() => ended,
                (_, Some((_, StopReason::UserCancelled))) if counts.unfinished() == 0 => TaskStatus::Cancelled,
                (_, Some(_)) if counts.unfinished() == 0 => TaskStatus::Completed,
                (held, _) if held.is_held() => held,
                _ if task.kind == TaskKind::Wait => TaskStatus::Running,
                _ if task.kind == TaskKind::Agent && counts.total() > 0 && counts.unfinished() == 0 => {
                    match (counts.completed, counts.failed) {
                        (0, 0) => TaskStatus::Cancelled,
                        (0, _) => TaskStatus::Failed,
                        _ => TaskStatus::Completed,
                    }
                }
                _ if task.kind == TaskKind::Research
                    && counts.unfinished() == 0
                    && counts.completed + counts.failed > 0 =>
                {
                    TaskStatus::Finished
                }
                _ if counts.awaiting_input > 0 => TaskStatus::InputRequired,
                _ if counts.running > 0 => TaskStatus::Running,
                _ => TaskStatus::Queued,
            };
            if task.status.is_terminal() {
                task.held_by = None;
            }
        }
    }
}
