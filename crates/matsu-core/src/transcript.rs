//! What a chat with models has besides the chat itself: an owner, a name, a system prompt, entries, and the answers
//! under way.

use serde::Serialize;

use crate::chat::{Chat, ChatState};
use crate::clock::Timestamp;
use crate::history::Entry;
use crate::id::{ChatId, RunId};
use crate::principal::Principal;
use crate::words::words;

words! {
    /// Where a chat is held. One in a terminal that died is offered back there.
    pub enum ChatPlace {
        Terminal = "terminal",
        Page = "page",
        /// In a run of the built-in agent: no person is present, so every call that does more than read needs an
        /// approval.
        Run = "run",
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transcript {
    pub chat: Chat,
    pub owner: Principal,
    /// What a person calls it; unique among the owner's.
    pub name: Option<String>,
    pub system_prompt: Option<String>,
    pub place: ChatPlace,
    /// The run that opened it.
    pub run_id: Option<RunId>,
    pub updated_at: Timestamp,
}

impl Transcript {
    /// The models that may answer.
    #[must_use]
    pub fn models(&self) -> &[String] {
        self.chat.kind.models().unwrap_or_default()
    }

    #[must_use]
    pub fn is_ended(&self) -> bool {
        self.chat.state == ChatState::Ended
    }
}

#[derive(Clone, Debug)]
pub struct NewTranscript {
    pub chat_id: ChatId,
    pub owner: Principal,
    pub models: Vec<String>,
    pub place: ChatPlace,
    /// The run that opens it.
    pub run_id: Option<RunId>,
    pub created_at: Timestamp,
}

/// An entry and its number in the chat.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StoredEntry {
    pub seq: i64,
    #[serde(flatten)]
    pub entry: Entry,
}

/// What a model has answered so far, kept in case the process ends before the rest arrives.
#[derive(Clone, Debug, PartialEq)]
pub struct Draft {
    pub model: String,
    pub entries: Vec<Entry>,
}

/// What a chat cannot be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a name must have 1 to 100 characters on one line")]
pub struct BadName;

/// A name as it is stored. It is a label in the owner's own list and never a path.
///
/// # Errors
/// Empty, too long, or with control characters.
pub fn check_name(name: &str) -> Result<String, BadName> {
    let name = name.trim();
    let fits = (1..=100).contains(&name.chars().count()) && !name.chars().any(char::is_control);
    if fits { Ok(name.to_owned()) } else { Err(BadName) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_labels() {
        assert_eq!(check_name("  ../../etc/passwd "), Ok("../../etc/passwd".to_owned()), "no path, just a label");
        assert_eq!(check_name("天気"), Ok("天気".to_owned()));
        for bad in ["", "   ", "a\nb", &"x".repeat(101)] {
            assert_eq!(check_name(bad), Err(BadName));
        }
    }
}
