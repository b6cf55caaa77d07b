//! Changes: the record that something visible moved, and the topics that waits listen on.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::id::{AgentId, ChatId, ProjectId, TaskId};
use crate::slot::Slot;
use crate::words::words;

/// What a wait can listen on.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Topic(String);

impl Topic {
    #[must_use]
    pub fn task(id: &TaskId) -> Self {
        Self(format!("task/{id}"))
    }

    /// Work for this slot may have appeared, or running work of it must stop.
    #[must_use]
    pub fn queue(slot: Slot) -> Self {
        Self(format!("queue/{slot}"))
    }

    /// A page waits for a person, or was settled.
    #[must_use]
    pub fn auth() -> Self {
        Self("auth".to_owned())
    }

    /// Notices to people may have been stored.
    #[must_use]
    pub fn outbox() -> Self {
        Self("outbox".to_owned())
    }

    /// A schedule was added, changed or fired.
    #[must_use]
    pub fn schedules() -> Self {
        Self("schedules".to_owned())
    }

    /// Something has arrived at a webhook.
    #[must_use]
    pub fn webhooks() -> Self {
        Self("webhooks".to_owned())
    }

    /// Whatever is published, on any topic.
    #[must_use]
    pub fn everything() -> Self {
        Self("*".to_owned())
    }

    /// A message was posted to this chat, or it was opened or ended.
    #[must_use]
    pub fn chat(id: &ChatId) -> Self {
        Self(format!("chat/{id}"))
    }

    /// Something happened to this agent's sessions or notifications in this project.
    #[must_use]
    pub fn agent(agent: &AgentId, project: &ProjectId) -> Self {
        Self(format!("agent/{agent}/{project}"))
    }

    /// What a store wrote down, or another node said.
    #[must_use]
    pub fn from_text(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

words! {
    /// What moved. Of several changes in one transaction the last one listed here is recorded.
    pub enum ChangeKind {
        Progress = "progress",
        JobQueued = "job_queued",
        JobStarted = "job_started",
        JobParked = "job_parked",
        JobFinished = "job_finished",
        TaskCreated = "task_created",
        TaskStatus = "task_status",
        TaskExpired = "task_expired",
        Message = "message",
        ChatState = "chat_state",
        Session = "session",
        Notification = "notification",
    }
}

impl ChangeKind {
    /// Whether the change is worth a model's turn, and so moves `finished_revision`.
    #[must_use]
    pub fn is_worth_a_turn(self) -> bool {
        matches!(self, Self::JobParked | Self::JobFinished)
    }
}

/// Where a reader of changes stands. Opaque; grows. On PostgreSQL commits can overtake each other,
/// so the transaction's own number comes first and the row's second.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
pub struct ChangeCursor {
    pub transaction: i64,
    pub row: i64,
}

/// One recorded change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Change {
    pub cursor: ChangeCursor,
    pub topic: Topic,
    pub kind: ChangeKind,
    pub revision: i64,
    pub at: Timestamp,
}
