//! A chat and its messages. Messages belong to the chat, carry a number that grows by one, and outlive sessions.
//!
//! Three marks say how far the agent is: what was handed out to it at least once, and what it has acknowledged.
//! Reading is not acknowledging: a reply may be lost after it was written.

use serde::Serialize;

use crate::clock::Timestamp;
use crate::id::{AgentId, ChatId, MessageId, ProjectId};
use crate::limits::MESSAGE_CHARS_MAX;
use crate::words::words;

words! {
    pub enum ChatState {
        Open = "open",
        Ended = "ended",
    }
}

words! {
    /// Who speaks.
    pub enum Sender {
        Person = "person",
        Agent = "agent",
        /// The house itself: errors and the like, for people.
        System = "system",
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Chat {
    pub id: ChatId,
    /// Absent for a chat with models.
    pub agent_id: Option<AgentId>,
    pub project_id: ProjectId,
    /// The models of a chat without an agent.
    pub models_json: Option<String>,
    pub state: ChatState,
    /// The last message's number; the chat's revision.
    pub last_seq: i64,
    /// Up to here the agent has acknowledged.
    pub acked_seq: i64,
    /// Up to here something was handed out at least once.
    pub handed_seq: i64,
    pub last_person_seq: i64,
    pub last_reply_seq: i64,
    /// Since when an agent is expected that has not come.
    pub connecting_since: Option<Timestamp>,
    /// The last message, or the beginning.
    pub last_message_at: Timestamp,
    pub created_at: Timestamp,
    pub ended_at: Option<Timestamp>,
    /// Position in the list of all chats.
    pub seq: i64,
}

impl Chat {
    /// From a person's message until an agent or the house has said something, not merely until it was read.
    #[must_use]
    pub fn awaits_reply(&self) -> bool {
        self.last_person_seq > self.last_reply_seq
    }

    /// Whether a person has said something that the agent has not acknowledged.
    #[must_use]
    pub fn has_unread(&self) -> bool {
        self.last_person_seq > self.acked_seq
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Message {
    pub id: MessageId,
    pub chat_id: ChatId,
    pub seq: i64,
    pub sender: Sender,
    pub sender_id: String,
    pub content: String,
    pub reply_to: Option<MessageId>,
    pub created_at: Timestamp,
}

#[derive(Clone, Debug)]
pub struct NewChat {
    pub id: ChatId,
    pub agent_id: Option<AgentId>,
    pub project_id: ProjectId,
    pub models_json: Option<String>,
    pub created_at: Timestamp,
}

#[derive(Clone, Debug)]
pub struct NewMessage {
    pub id: MessageId,
    pub chat_id: ChatId,
    pub sender: Sender,
    pub sender_id: String,
    pub content: String,
    pub reply_to: Option<MessageId>,
    pub created_at: Timestamp,
}

/// What a message may not be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadContent {
    #[error("content is blank; write 1 to {MESSAGE_CHARS_MAX} characters")]
    Blank,
    #[error("content has {0} characters; write 1 to {MESSAGE_CHARS_MAX}")]
    TooLong(usize),
}

/// Checks what somebody wants to say.
///
/// # Errors
/// Blank, or longer than a message may be.
pub fn check_content(content: &str) -> Result<(), BadContent> {
    let chars = content.chars().count();
    match chars {
        _ if content.trim().is_empty() => Err(BadContent::Blank),
        chars if chars > MESSAGE_CHARS_MAX => Err(BadContent::TooLong(chars)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_is_neither_blank_nor_too_long() {
        assert_eq!(check_content(""), Err(BadContent::Blank));
        assert_eq!(check_content(" \n\u{3000}"), Err(BadContent::Blank));
        assert_eq!(check_content(&"待".repeat(MESSAGE_CHARS_MAX)), Ok(()));
        assert_eq!(check_content(&"x".repeat(MESSAGE_CHARS_MAX + 1)), Err(BadContent::TooLong(MESSAGE_CHARS_MAX + 1)));
    }
}
