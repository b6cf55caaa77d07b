//! What a client asked, as all wire formats have it in common.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

/// The wire formats, by the names the vendors gave them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    AnthropicMessages,
    OpenaiResponses,
    OpenaiChat,
    Gemini,
    Ollama,
}

/// A request to a model.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Asked {
    pub format: Format,
    pub model: String,
    /// Whether the answer shall come in pieces.
    pub stream: bool,
    /// The system text, however the format carries it.
    pub system: String,
    /// All text of the conversation but the system's, in order, one entry for each message.
    pub messages: Vec<String>,
    /// The names of the tools on offer.
    pub tools: Vec<String>,
    /// Results of tools in the last message or messages: what the client did on the model's behalf.
    pub results: Vec<String>,
}

impl Asked {
    /// The text that came last: a person's message, or a tool's answer.
    #[must_use]
    pub fn last(&self) -> &str {
        self.messages.last().map_or("", String::as_str)
    }
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// The answer is still under way.
    Open,
    /// All of the answer was handed over.
    Answered,
    /// The client went away before its answer was complete.
    ClientLeft,
}

/// A request as it came, and how it ended.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Recorded {
    pub method: String,
    pub path: String,
    /// Names in lower case.
    pub headers: BTreeMap<String, String>,
    pub body: Value,
    /// Absent: not a request to a model.
    pub asked: Option<Asked>,
    pub fate: Fate,
}
