//! What an agent does next: one pure function of the stored state. All transports and native waits ask it.

use std::time::Duration;

use crate::chat::{Chat, ChatState};
use crate::clock::Timestamp;
use crate::id::TaskId;
use crate::task::{Task, TaskStatus};

use super::{EndReason, Purpose, Session, SessionState, Unread};

/// Everything that decides the next action, as one read saw it.
#[derive(Clone, Debug)]
pub struct SessionView {
    pub session: Session,
    pub unread: Unread,
    pub task: Option<Task>,
    pub chat: Option<Chat>,
    /// Messages for the agent after what it has acknowledged, or after the number it named.
    pub pending: i64,
    /// A task of the agent's that no session works on.
    pub task_waiting: Option<TaskId>,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextAction {
    /// The notice of the gate, as for any tool.
    Interrupted,
    Respond,
    Work,
    Wait,
    End(EndReason),
}

/// Decides. An order to stop comes before everything, an end before work, work before rest.
#[must_use]
pub fn next_action(view: &SessionView, now: Timestamp, idle_end: Duration) -> NextAction {
    let session = &view.session;
    if view.unread.interrupts > 0 && session.state == SessionState::Active {
        return NextAction::Interrupted;
    }
    if session.state != SessionState::Active {
        return NextAction::End(session.end_reason.unwrap_or(EndReason::ClosedByPerson));
    }
    if session.expires_at <= now {
        return NextAction::End(EndReason::Expired);
    }
    match session.purpose {
        Purpose::Task => for_task(session, view.task.as_ref()),
        Purpose::Chat => for_chat(view, now, idle_end),
    }
}

fn for_task(session: &Session, task: Option<&Task>) -> NextAction {
    // Expired tasks had ended long before.
    let Some(task) = task else { return NextAction::End(EndReason::TaskCompleted) };
    match task.status {
        TaskStatus::Completed => NextAction::End(EndReason::TaskCompleted),
        TaskStatus::Failed => NextAction::End(EndReason::TaskFailed),
        TaskStatus::Cancelled => NextAction::End(EndReason::TaskCancelled),
        _ if task.assignee.as_deref().is_some_and(|agent| agent != session.agent_id.as_str()) => {
            NextAction::End(EndReason::Reassigned)
        }
        TaskStatus::Paused | TaskStatus::Blocked => NextAction::Wait,
        TaskStatus::Queued | TaskStatus::Running | TaskStatus::InputRequired | TaskStatus::Finished => NextAction::Work,
    }
}

fn for_chat(view: &SessionView, now: Timestamp, idle_end: Duration) -> NextAction {
    let Some(chat) = &view.chat else { return NextAction::End(EndReason::ClosedByPerson) };
    if chat.state == ChatState::Ended {
        return NextAction::End(EndReason::ClosedByPerson);
    }
    if view.pending > 0 {
        return NextAction::Respond;
    }
    if now >= idle_at(&view.session, chat, idle_end) { NextAction::End(EndReason::Idle) } else { NextAction::Wait }
}

/// When the chat has had no message for too long.
fn idle_at(session: &Session, chat: &Chat, idle_end: Duration) -> Timestamp {
    chat.last_message_at.max(session.created_at).plus(idle_end)
}

/// The next moment at which the clock alone changes the answer.
#[must_use]
pub fn next_turn_at(view: &SessionView, idle_end: Duration) -> Timestamp {
    let expires_at = view.session.expires_at;
    match &view.chat {
        Some(chat) => expires_at.min(idle_at(&view.session, chat, idle_end)),
        None => expires_at,
    }
}

#[cfg(test)]
mod tests;
