//! The status of a task: which changes are legal, and what its jobs make of it.
//!
//! Tool, REST, page, cascade and recovery all go through [`check_transition`]; none decides for itself.

use serde::Serialize;

use crate::job::JobState;
use crate::words::words;

use super::{Stop, TaskKind};

words! {
    /// Where a task stands.
    pub enum TaskStatus {
        Queued = "queued",
        Running = "running",
        InputRequired = "input_required",
        /// Research with nothing left to do, open for more searches.
        Finished = "finished",
        Paused = "paused",
        Blocked = "blocked",
        Completed = "completed",
        Failed = "failed",
        Cancelled = "cancelled",
    }
}

impl TaskStatus {
    #[must_use]
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }

    /// What was asked for is done, or will not be done: tasks that start after it can decide.
    #[must_use]
    pub fn is_over(self) -> bool {
        self.is_terminal() || self == Self::Finished
    }

    /// A person or the owner holds it back; its queued jobs are not claimed.
    #[must_use]
    pub fn is_held(self) -> bool {
        matches!(self, Self::Paused | Self::Blocked)
    }

    /// Whether arriving here is worth a model's turn.
    #[must_use]
    pub fn is_worth_a_turn(self) -> bool {
        self.is_terminal() || self.is_held() || self == Self::InputRequired
    }
}

/// A change of status that the rules do not allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a task that is {from} cannot become {to}")]
pub struct IllegalTransition {
    pub from: TaskStatus,
    pub to: TaskStatus,
}

/// Whether a task may go from one status to another. Staying is always legal and changes nothing.
///
/// # Errors
/// When the rules do not allow it: a terminal status is never left, and a block is not weakened to a pause.
pub fn check_transition(from: TaskStatus, to: TaskStatus) -> Result<(), IllegalTransition> {
    use TaskStatus::{Blocked, Cancelled, Completed, Failed, Finished, InputRequired, Paused, Queued, Running};
    let legal = match from {
        _ if from == to => true,
        Queued | Running | InputRequired | Finished | Paused => true,
        // A caller that may pause is not always the one that blocked.
        Blocked => to != Paused,
        Completed | Failed | Cancelled => false,
    };
    if legal { Ok(()) } else { Err(IllegalTransition { from, to }) }
}

/// How many jobs of a task are in each state, kept with the task so that its status costs one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize)]
pub struct JobCounts {
    pub queued: i64,
    pub running: i64,
    pub awaiting_auth: i64,
    pub awaiting_input: i64,
    pub completed: i64,
    pub failed: i64,
    pub cancelled: i64,
}

impl JobCounts {
    #[must_use]
    pub fn unfinished(&self) -> i64 {
        self.queued + self.running + self.awaiting_auth + self.awaiting_input
    }

    #[must_use]
    pub fn total(&self) -> i64 {
        self.unfinished() + self.completed + self.failed + self.cancelled
    }

    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        Self {
            queued: self.queued + other.queued,
            running: self.running + other.running,
            awaiting_auth: self.awaiting_auth + other.awaiting_auth,
            awaiting_input: self.awaiting_input + other.awaiting_input,
            completed: self.completed + other.completed,
            failed: self.failed + other.failed,
            cancelled: self.cancelled + other.cancelled,
        }
    }

    fn of(&mut self, state: JobState) -> &mut i64 {
        match state {
            JobState::Queued => &mut self.queued,
            JobState::Running => &mut self.running,
            JobState::AwaitingAuth => &mut self.awaiting_auth,
            JobState::AwaitingInput => &mut self.awaiting_input,
            JobState::Completed => &mut self.completed,
            JobState::Failed => &mut self.failed,
            JobState::Cancelled => &mut self.cancelled,
        }
    }

    pub fn add(&mut self, state: JobState, jobs: i64) {
        *self.of(state) += jobs;
    }

    pub fn moved(&mut self, from: JobState, to: JobState) {
        self.add(from, -1);
        self.add(to, 1);
    }
}

/// The status that a task's jobs give it. `None`: it stays as it is.
///
/// A held or terminal task keeps its status whatever its jobs do. A research task becomes `finished`, which is no end:
/// more searches make it run again. A stop that was asked for ends any task with its last job.
#[must_use]
pub fn status_from_jobs(
    kind: TaskKind,
    current: TaskStatus,
    stop: Option<Stop>,
    counts: &JobCounts,
) -> Option<TaskStatus> {
    if current.is_terminal() {
        return None;
    }
    let next = match stop {
        Some(stop) if counts.unfinished() == 0 => stop.reason.final_status(),
        _ if current.is_held() => return None,
        _ => match kind {
            TaskKind::Agent if counts.unfinished() == 0 && counts.total() > 0 => outcome(counts),
            // The agent that works on it reports its status; there are no jobs that could.
            TaskKind::Agent if counts.total() == 0 => return None,
            TaskKind::Wait => return None,
            TaskKind::Research if counts.unfinished() == 0 && counts.completed + counts.failed > 0 => {
                TaskStatus::Finished
            }
            TaskKind::Agent | TaskKind::Research => activity(counts),
        },
    };
    (next != current).then_some(next)
}

/// One success is a success: of several agents asked the same, one answer is an answer.
fn outcome(counts: &JobCounts) -> TaskStatus {
    if counts.completed > 0 {
        TaskStatus::Completed
    } else if counts.failed > 0 {
        TaskStatus::Failed
    } else {
        TaskStatus::Cancelled
    }
}

fn activity(counts: &JobCounts) -> TaskStatus {
    if counts.awaiting_input > 0 {
        TaskStatus::InputRequired
    } else if counts.running > 0 {
        TaskStatus::Running
    } else {
        TaskStatus::Queued
    }
}

#[cfg(test)]
mod tests;
