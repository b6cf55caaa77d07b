//! A chat and its messages. Messages belong to the chat, carry a number that grows by one, and outlive sessions.
//! A chat with models is a chat too; what is said in it is kept as entries (`transcript.rs`).
//!
//! Two numbers: `handed_seq`, the last message that was delivered to the agent, and `acked_seq`, the last that it
//! acknowledged.
//! Reading is not acknowledging: a reply may be lost after it was written.

pub mod lines;

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
    /// The sender of a message.
    pub enum Sender {
        Person = "person",
        Agent = "agent",
        /// Matsu itself: errors and the like, for people.
        System = "system",
    }
}

/// Whom people talk with in a chat.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ChatKind {
    /// A named agent, which reads messages in sessions.
    Agent(AgentId),
    /// Models, by their names in the configuration. This process asks them.
    Models(Vec<String>),
}

impl ChatKind {
    #[must_use]
    pub fn agent(&self) -> Option<&AgentId> {
        match self {
            Self::Agent(agent) => Some(agent),
            Self::Models(_) => None,
        }
    }

    /// None for a chat with an agent.
    #[must_use]
    pub fn models(&self) -> Option<&[String]> {
        match self {
            Self::Agent(_) => None,
            Self::Models(models) => Some(models),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Chat {
    pub id: ChatId,
    pub kind: ChatKind,
    pub project_id: ProjectId,
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
    /// From a person's message until there is a reply of the agent or a system message, not merely until it was read.
    #[must_use]
    pub fn awaits_reply(&self) -> bool {
        self.last_person_seq > self.last_reply_seq
    }

    /// Whether there is a message of a person that the agent has not acknowledged.
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
    pub kind: ChatKind,
    pub project_id: ProjectId,
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

/// Checks the content of a new message.
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

/// Cuts a long text into messages, at the last border of a paragraph, a line or a word that fits. At most `parts_max`
/// of them; the flag says that something is missing.
#[must_use]
pub fn split_content(text: &str, parts_max: usize) -> (Vec<String>, bool) {
    let mut parts = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        if parts.len() == parts_max {
            return (parts, true);
        }
        let Some((fits, _)) = rest.char_indices().nth(MESSAGE_CHARS_MAX) else {
            parts.push(rest.to_owned());
            break;
        };
        let head = &rest[..fits];
        // A border near the beginning would make many short messages out of one long one.
        let border = ["\n\n", "\n", " "].iter().find_map(|mark| head.rfind(mark).filter(|at| *at > fits / 2));
        let (part, after) = rest.split_at(border.unwrap_or(fits));
        parts.push(part.trim_end().to_owned());
        rest = after.trim_start();
    }
    (parts, false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_answer_is_cut_at_the_best_border_that_fits() {
        let (short, cut) = split_content("  hello \n", 3);
        assert_eq!((short, cut), (vec!["hello".to_owned()], false));
        assert_eq!(split_content(" \n ", 3), (Vec::new(), false));
        let paragraphs = format!("{}\n\n{}", "a".repeat(3_000), "b b ".repeat(900));
        let (parts, cut) = split_content(&paragraphs, 3);
        assert_eq!((parts.len(), cut), (2, false));
        assert_eq!(parts[0], "a".repeat(3_000));
        let (parts, cut) = split_content(&"待".repeat(MESSAGE_CHARS_MAX * 2 + 1), 2);
        assert!(cut && parts.iter().all(|part| check_content(part).is_ok()), "{}", parts.len());
        let (parts, cut) = split_content(&"word ".repeat(2_000), 9);
        assert!(!cut && parts.iter().all(|part| check_content(part).is_ok() && part.ends_with("word")));
    }

    #[test]
    fn content_is_neither_blank_nor_too_long() {
        assert_eq!(check_content(""), Err(BadContent::Blank));
        assert_eq!(check_content(" \n\u{3000}"), Err(BadContent::Blank));
        assert_eq!(check_content(&"待".repeat(MESSAGE_CHARS_MAX)), Ok(()));
        assert_eq!(check_content(&"x".repeat(MESSAGE_CHARS_MAX + 1)), Err(BadContent::TooLong(MESSAGE_CHARS_MAX + 1)));
    }
}
