//! What the model makes of a call: the answer it expects, and the state afterwards.

use matsu_core::clock::Timestamp;
use matsu_core::error_code::ErrorCode;
use matsu_core::id::NodeId;
use matsu_core::job::{JobState, Lease};
use matsu_core::ports::store::Steer;
use matsu_core::principal::Principal;
use matsu_core::slot::Slot;
use matsu_core::task::{StopMode, StopReason, TaskStatus};

use super::world::{ModelJob, Permit, World};

impl World {
    /// Why a task takes no work.
    fn closed(&self, task: usize) -> Result<(), ErrorCode> {
        let task = &self.tasks[task];
        match task.status {
            _ if task.stop.is_some() => Err(ErrorCode::TaskStopped),
            status if status.is_terminal() => Err(ErrorCode::TaskStopped),
            TaskStatus::Blocked => Err(ErrorCode::TaskBlocked),
            TaskStatus::Paused => Err(ErrorCode::TaskPaused),
            _ => Ok(()),
        }
    }

    /// How deep a child of this task is.
    pub fn depth_below(&self, parent: usize) -> Result<u32, ErrorCode> {
        self.closed(parent)?;
        let children = self.tasks.iter().filter(|task| task.parent == Some(parent)).count();
        let depth = self.tasks[parent].depth + 1;
        if depth > 3 || children >= 10 { Err(ErrorCode::LimitExceeded) } else { Ok(depth) }
    }

    /// For each job given: `None` if it is queued, else the one it doubles.
    pub fn enqueue(
        &mut self,
        task: Option<usize>,
        jobs: Vec<ModelJob>,
        returns: Option<&Principal>,
    ) -> Result<Vec<Option<ModelJob>>, ErrorCode> {
        if let Some(task) = task {
            let before = self.tasks[task].clone();
            if before.status == TaskStatus::Paused && returns.is_some() && before.held_by.as_ref() == returns {
                self.tasks[task].status = TaskStatus::Queued;
                self.tasks[task].held_by = None;
            }
            if let Err(code) = self.closed(task) {
                self.tasks[task] = before;
                return Err(code);
            }
        }
        let mut doubles = Vec::new();
        for job in jobs {
            let double = self.jobs.iter().find(|known| {
                task.is_some()
                    && known.task == task
                    && known.dedupe.is_some()
                    && known.dedupe == job.dedupe
                    && !known.state.is_finished()
            });
            let double = double.cloned();
            if double.is_none() {
                self.jobs.push(job);
            }
            doubles.push(double);
        }
        Ok(doubles)
    }

    /// The jobs that start, in order. `ready_before`: how many stood ready when the call came in.
    pub fn claim(&mut self, node: &NodeId, slot: Slot, wanted: usize, now: Timestamp) -> Vec<usize> {
        let count = wanted.min(self.free_permits(slot));
        let started: Vec<usize> = self.ready(slot, now).into_iter().take(count).collect();
        for at in &started {
            let job = &mut self.jobs[*at];
            job.state = JobState::Running;
            job.attempt += 1;
            job.owner = Some(node.clone());
            job.permit = Permit::Regular;
            self.leases.push(Lease { job_id: job.id.clone(), attempt: job.attempt });
        }
        started
    }

    /// `None`: the lease is lost. A job that is parked already stays so: its next owner asks again.
    pub fn park(&mut self, lease: &Lease) -> Option<()> {
        let at = self.held(lease)?;
        self.jobs[at].state = JobState::AwaitingInput;
        self.jobs[at].permit = Permit::None;
        Some(())
    }

    pub fn resume(&mut self, lease: &Lease) -> Option<bool> {
        let at = self.held(lease).filter(|at| self.jobs[*at].state == JobState::AwaitingInput)?;
        if self.free_permits(self.jobs[at].slot) == 0 {
            return Some(false);
        }
        self.jobs[at].state = JobState::Running;
        self.jobs[at].permit = Permit::Regular;
        Some(true)
    }

    /// Whether the job holds its permit afterwards; so too below.
    pub fn lend(&mut self, lease: &Lease) -> Option<bool> {
        let at = self.held(lease)?;
        self.jobs[at].permit = Permit::None;
        Some(false)
    }

    pub fn regain(&mut self, lease: &Lease) -> Option<bool> {
        let at = self.held(lease)?;
        // A job that waits for an answer takes its permit when it runs again, not before.
        let is_running = self.jobs[at].state == JobState::Running;
        if self.jobs[at].permit == Permit::None && is_running {
            let none_free = self.free_permits(self.jobs[at].slot) == 0;
            self.jobs[at].permit = if none_free { Permit::Extra } else { Permit::Regular };
        }
        Some(is_running)
    }

    /// Those of `jobs` that waited for a login.
    pub fn requeue(&mut self, jobs: &[usize], now: Timestamp) -> Vec<usize> {
        let parked = |at: &&usize| self.jobs[**at].state == JobState::AwaitingAuth;
        let moved: Vec<usize> = jobs.iter().filter(parked).copied().collect();
        for at in &moved {
            self.jobs[*at].state = JobState::Queued;
            self.jobs[*at].run_at = now;
        }
        moved
    }

    pub fn steer(&mut self, task: usize, to: Steer, by: &Principal) -> Result<(), ErrorCode> {
        let task = &mut self.tasks[task];
        let target = match to {
            Steer::Pause => TaskStatus::Paused,
            Steer::Block => TaskStatus::Blocked,
            Steer::Resume if task.status.is_terminal() => return Err(ErrorCode::IllegalTransition),
            Steer::Resume => {
                if task.status.is_held() {
                    (task.status, task.held_by) = (TaskStatus::Queued, None);
                }
                return Ok(());
            }
        };
        let weakens = task.status == TaskStatus::Blocked && target == TaskStatus::Paused;
        if task.status.is_terminal() || weakens {
            return Err(ErrorCode::IllegalTransition);
        }
        if task.status != target {
            (task.status, task.held_by) = (target, Some(by.clone()));
        }
        Ok(())
    }

    /// How many waiting and how many running jobs were cancelled; `None`: it had ended before.
    pub fn stop(&mut self, root: usize, mode: StopMode, reason: StopReason) -> Option<(i64, i64)> {
        if self.tasks[root].status.is_terminal() {
            return None;
        }
        let (mut waiting, mut running) = (0, 0);
        for at in self.family(root) {
            if self.tasks[at].status.is_terminal() {
                continue;
            }
            let (old_mode, reason) = self.tasks[at].stop.unwrap_or((mode, reason));
            let mode = old_mode.max(mode);
            self.tasks[at].stop = Some((mode, reason));
            for job in self.jobs.iter_mut().filter(|job| job.task == Some(at)) {
                match job.state {
                    JobState::Running if mode == StopMode::Immediate => running += 1,
                    JobState::Queued | JobState::AwaitingAuth | JobState::AwaitingInput => waiting += 1,
                    _ => continue,
                }
                (job.state, job.owner, job.permit) = (JobState::Cancelled, None, Permit::None);
            }
        }
        Some((waiting, running))
    }
}
