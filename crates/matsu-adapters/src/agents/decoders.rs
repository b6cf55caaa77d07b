//! Stream decoders: from a program's own events to what a run says. One file each, one line in the list.
//!
//! A decoder never fails: what it does not know it ignores, for programs add events with every version. Whether a run
//! succeeded is what its own final event says; a decoder that has seen none says so.

mod claude;
mod codex;
mod events;
mod gemini;
mod opencode;
mod qwen;
mod shown;
#[cfg(test)]
mod tests_support;

use matsu_core::run::{Answer, Question, Usage};
use serde_json::Value;

/// Not a stream: everything on stdout is the result.
pub const TEXT: &str = "text";

/// Makes a fresh decoder.
pub type Make = fn() -> Box<dyn Decoder>;

const DECODERS: &[(&str, Make)] = &[
    ("claude", || Box::new(claude::Claude::default())),
    ("codex", || Box::new(codex::Codex::default())),
    ("events", || Box::new(events::Events::default())),
    ("gemini", || Box::new(gemini::Gemini::default())),
    ("opencode", || Box::new(opencode::Opencode::default())),
    ("qwen", || Box::new(qwen::Qwen::default())),
];

/// `None`: no such decoder. `Some(None)`: plain text.
#[must_use]
pub fn of(name: &str) -> Option<Option<Make>> {
    if name == TEXT {
        return Some(None);
    }
    DECODERS.iter().find(|(known, _)| *known == name).map(|(_, make)| Some(*make))
}

#[must_use]
pub fn names() -> Vec<&'static str> {
    std::iter::once(TEXT).chain(DECODERS.iter().map(|(name, _)| *name)).collect()
}

/// Reads the events of one run, in order.
pub trait Decoder: Send {
    fn event(&mut self, event: &Value) -> Vec<Said>;

    /// What the program itself says came of it.
    fn outcome(&mut self) -> Outcome;

    /// Whether it can be spoken to while it runs.
    fn listens(&self) -> Listens {
        Listens::Never
    }

    /// The line that carries the prompt to a program that listens.
    fn prompt(&self, text: &str) -> String {
        text.to_owned()
    }

    /// The line that carries an answer; `None`: nothing of that name was asked.
    fn answer(&mut self, _answer: &Answer) -> Option<String> {
        None
    }
}

/// When a program reads its stdin for as long as it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listens {
    Never,
    /// In the modes whose definition says that it asks.
    WhereItAsks,
    Always,
}

/// Something an event says.
#[derive(Clone, Debug, PartialEq)]
pub enum Said {
    /// A line for whoever watches.
    Line(String),
    /// The vendor's name for the conversation.
    Session(String),
    Usage(Usage),
    /// It asked its model once more.
    Request,
    Question(Question),
    /// It has said its last word, and waits for its stdin to be closed.
    Finished,
    /// It will never end by itself.
    Hopeless(String),
}

/// How a run ended by its own account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Success(String),
    Failed(String),
    /// There was no final event.
    Missing,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_known_by_name() {
        assert!(of(TEXT).is_some_and(|make| make.is_none()));
        assert!(of("claude").is_some_and(|make| make.is_some()));
        assert!(of("smoke").is_none());
    }

    /// Whatever comes, no decoder breaks: every event of every other one, and shapes that none has.
    #[test]
    fn strange_events_are_ignored() {
        let strange = [
            "null",
            "3",
            "[]",
            "{}",
            r#"{"type":3}"#,
            r#"{"type":"result"}"#,
            r#"{"type":"assistant","message":7}"#,
            r#"{"type":"item.completed","item":{}}"#,
            r#"{"type":"step_finish"}"#,
            r#"{"type":"question"}"#,
            r#"{"type":"message","role":"assistant"}"#,
            r#"{"type":"error","error":[]}"#,
        ];
        for (name, make) in DECODERS {
            let mut decoder = make();
            for event in strange {
                decoder.event(&serde_json::from_str(event).unwrap());
            }
            assert!(!matches!(decoder.outcome(), Outcome::Success(text) if !text.is_empty()), "{name}");
        }
    }
}
