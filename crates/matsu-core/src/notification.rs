//! A notification: something an agent must learn at its next tool call.
//!
//! Given is not acknowledged: the reply that carries one may be lost. Unread means not acknowledged.

pub mod texts;

use serde::Serialize;

use crate::clock::Timestamp;
use crate::id::{AgentId, NotificationId, ProjectId, SessionId, TaskId};
use crate::words::words;

words! {
    /// How urgent it is.
    pub enum NotificationKind {
        /// No other tool runs until it is acknowledged.
        Interrupt = "interrupt",
        Message = "message",
        StatusChange = "status_change",
    }
}

words! {
    /// What it is about.
    pub enum NotificationAction {
        Cancel = "cancel",
        Pause = "pause",
        Block = "block",
        Resume = "resume",
        UserMessage = "user_message",
    }
}

words! {
    /// What made it; decides its words.
    pub enum Cause {
        TaskBlocked = "task_blocked",
        TaskPaused = "task_paused",
        TaskCancelled = "task_cancelled",
        TaskReassigned = "task_reassigned",
        TaskResumed = "task_resumed",
        /// A person wrote in the chat of an agent that is busy with a task.
        PersonWrote = "person_wrote",
        /// A person sent it to this very session, in words of their own.
        Notice = "notice",
    }
}

impl Cause {
    /// Its kind and its action, where the cause decides them.
    #[must_use]
    pub fn meaning(self) -> (NotificationKind, NotificationAction) {
        match self {
            Self::TaskBlocked => (NotificationKind::Interrupt, NotificationAction::Block),
            Self::TaskPaused => (NotificationKind::Interrupt, NotificationAction::Pause),
            Self::TaskCancelled | Self::TaskReassigned => (NotificationKind::Interrupt, NotificationAction::Cancel),
            Self::TaskResumed => (NotificationKind::StatusChange, NotificationAction::Resume),
            Self::PersonWrote | Self::Notice => (NotificationKind::Message, NotificationAction::UserMessage),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Notification {
    pub id: NotificationId,
    pub agent_id: AgentId,
    pub project_id: ProjectId,
    pub session_id: Option<SessionId>,
    pub kind: NotificationKind,
    pub action: NotificationAction,
    pub cause: Cause,
    pub task_id: Option<TaskId>,
    /// A person's own words, where there are any.
    pub text: Option<String>,
    pub instruction: Option<String>,
    /// How many of the same it stands for.
    pub times: i64,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
    pub delivered_at: Option<Timestamp>,
    pub acknowledged_at: Option<Timestamp>,
    /// What it ordered no longer holds.
    pub voided_at: Option<Timestamp>,
    /// Position in the list of all notifications.
    pub seq: i64,
}

/// What a person sends to a session.
#[derive(Clone, Debug)]
pub struct NewNotice {
    pub id: NotificationId,
    pub session_id: SessionId,
    pub kind: NotificationKind,
    pub action: NotificationAction,
    pub text: String,
    pub instruction: Option<String>,
    pub now: Timestamp,
}
