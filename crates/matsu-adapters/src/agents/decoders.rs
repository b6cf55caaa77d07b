//! Stream decoders: from a program's own events to what a run says. One file each, one line in the list.
//!
//! A decoder never fails: what it does not know it ignores, for programs add events with every version. Whether a run
//! succeeded is what its own final event says; a decoder that has seen none says so.

/// A decoder that is kept as what its fields are.
macro_rules! kept {
    () => {
        fn state(&self) -> serde_json::Result<serde_json::Value> {
            serde_json::to_value(self)
        }

        fn restore(&mut self, state: serde_json::Value) -> serde_json::Result<()> {
            *self = serde_json::from_value(state)?;
            Ok(())
        }
    };
}

mod claude;
mod codex;
mod events;
mod gemini;
mod opencode;
mod qwen;
mod shown;
#[cfg(test)]
mod tests_support;

use matsu_core::run::{Answer, Question};
use matsu_core::usage::Usage;
use serde::{Deserialize, Serialize};
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
    fn event(&mut self, event: &Value) -> Vec<Decoded>;

    /// What it must know to go on from here in another process.
    ///
    /// # Errors
    /// It cannot be written as JSON.
    fn state(&self) -> serde_json::Result<Value>;

    /// Goes on from such a state.
    ///
    /// # Errors
    /// It is another decoder's.
    fn restore(&mut self, state: Value) -> serde_json::Result<()>;

    /// What the program itself says came of it.
    fn outcome(&mut self) -> Outcome;

    /// The model that the program says it works with.
    fn model(&self) -> Option<String> {
        None
    }

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
pub enum Decoded {
    /// A line for people who watch.
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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

    /// At whatever event another process takes over, the end is the same.
    #[test]
    fn a_decoder_goes_on_from_its_state() {
        let own =
            "{\"type\":\"text\",\"text\":\"one\"}\n{\"type\":\"text\",\"text\":\" two\"}\n{\"type\":\"result\"}\n";
        let recorded = [
            ("claude", include_str!("decoders/testdata/claude-good.jsonl")),
            ("claude", include_str!("decoders/testdata/claude-401.jsonl")),
            ("codex", include_str!("decoders/testdata/codex-good.jsonl")),
            ("codex", include_str!("decoders/testdata/codex-failed.jsonl")),
            ("events", own),
            ("gemini", include_str!("decoders/testdata/gemini-good.jsonl")),
            ("opencode", include_str!("decoders/testdata/opencode-good.jsonl")),
            ("qwen", include_str!("decoders/testdata/qwen-401.jsonl")),
        ];
        for (name, lines) in recorded {
            let make = of(name).flatten().unwrap();
            let mut whole = make();
            let decoded = tests_support::feed(whole.as_mut(), lines);
            let outcome = whole.outcome();
            let lines: Vec<&str> = lines.lines().collect();
            for cut in 0..=lines.len() {
                let (mut first, mut second) = (make(), make());
                let mut both = tests_support::feed(first.as_mut(), &lines[..cut].join("\n"));
                second.restore(first.state().unwrap()).unwrap();
                both.extend(tests_support::feed(second.as_mut(), &lines[cut..].join("\n")));
                assert_eq!((&both, second.outcome()), (&decoded, outcome.clone()), "{name} after {cut} events");
            }
        }
    }
}
