//! Whether what is known of some tasks is worth an answer now. Pure, so that every rule is a line of a table.

use serde::{Deserialize, Serialize};

use matsu_core::task::{Task, TaskKind, TaskStatus};

/// What a caller waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitFor {
    /// Something that is worth a model's turn; what follows within a moment comes along.
    #[default]
    Finished,
    /// Nothing left unfinished in any of the tasks, or a question.
    All,
    /// Whatever can be seen, progress too.
    Any,
}

/// Why a wait was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ReturnedBecause {
    Changed,
    Timeout,
    /// All of the tasks have ended.
    Terminal,
    /// Nothing is left in any of the tasks that could change by itself.
    Idle,
    Interrupt,
}

impl ReturnedBecause {
    /// The word a caller reads.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Changed => "changed",
            Self::Timeout => "timeout",
            Self::Terminal => "terminal",
            Self::Idle => "idle",
            Self::Interrupt => "interrupt",
        }
    }
}

/// What to do about what was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    Answer(ReturnedBecause),
    /// Worth an answer, but more may follow within a moment.
    Collect,
    Sleep,
}

/// Decides over all tasks of one wait, each with the revision its caller was last sent.
///
/// A task that has ended, and whose end the caller knows, does not answer a wait in which others still run:
/// a caller that keeps naming it would otherwise never sleep again.
#[must_use]
pub fn decide(tasks: &[(&Task, i64)], wait_for: WaitFor) -> Decision {
    if tasks.iter().all(|(task, _)| task.status.is_terminal()) {
        return Decision::Answer(ReturnedBecause::Terminal);
    }
    if tasks.iter().all(|(task, _)| is_idle(task)) {
        return Decision::Answer(ReturnedBecause::Idle);
    }
    let mut decision = Decision::Sleep;
    for (task, since) in tasks {
        match decide_one(task, *since, wait_for) {
            answer @ Decision::Answer(_) => return answer,
            Decision::Collect => decision = Decision::Collect,
            Decision::Sleep => {}
        }
    }
    decision
}

/// Where a wait begins whose caller knows nothing of the task: at what is there now, unless a person or a model has to
/// see that: an end that was not read, a question, a login.
#[must_use]
pub fn start(task: &Task) -> i64 {
    let is_asked =
        task.status == TaskStatus::InputRequired || task.counts.awaiting_auth + task.counts.awaiting_input > 0;
    let is_unread = task.status.is_terminal() && task.first_read_at.is_none();
    if is_asked || is_unread { 0 } else { task.revision }
}

fn decide_one(task: &Task, since: i64, wait_for: WaitFor) -> Decision {
    let changed = Decision::Answer(ReturnedBecause::Changed);
    // Nothing is known: the whole state is news. A question cannot wait.
    if since <= 0 || task.attention_revision > since {
        return changed;
    }
    match wait_for {
        WaitFor::Any if task.revision > since => changed,
        WaitFor::Finished if task.finished_revision > since && is_idle(task) => changed,
        WaitFor::Finished if task.finished_revision > since => Decision::Collect,
        WaitFor::Any | WaitFor::Finished | WaitFor::All => Decision::Sleep,
    }
}

/// A wait that became a task has no jobs; it ends on request.
fn is_idle(task: &Task) -> bool {
    task.status.is_terminal() || (task.kind != TaskKind::Wait && task.is_idle())
}

#[cfg(test)]
mod tests;
