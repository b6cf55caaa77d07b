//! The wire formats. Adding one is a file in `formats/`, a `mod` line, a variant of [`Format`] and an entry here.

mod anthropic;
mod chat;
mod gemini;
mod ollama;
mod responses;

use serde_json::{Value, json};

use super::request::{Asked, Format};
use super::script::Part;

/// One vendor's way of asking a model and being answered.
pub trait WireFormat: Send + Sync {
    fn format(&self) -> Format;

    /// Whether a POST to this path (without its query) is a request to a model in this format.
    fn claims(&self, path: &str) -> bool;

    fn asked(&self, path: &str, body: &Value) -> Asked;

    /// The answer in pieces, each as it goes over the wire.
    fn pieces(&self, answer: &Answer<'_>) -> Vec<String>;

    /// The beginning of an answer that will not be finished.
    fn opening(&self, answer: &Answer<'_>) -> Vec<String>;

    /// The answer in one.
    fn whole(&self, answer: &Answer<'_>) -> Value;

    /// The body of an HTTP error.
    fn refusal(&self, status: u16, message: &str) -> Value;
}

pub static FORMATS: &[&dyn WireFormat] =
    &[&anthropic::AnthropicMessages, &responses::OpenaiResponses, &chat::OpenaiChat, &gemini::Gemini, &ollama::Ollama];

/// One answer, and the model that gives it.
pub struct Answer<'a> {
    pub model: &'a str,
    /// Which answer of this server it is; ids are made from it.
    pub number: usize,
    pub parts: &'a [Part],
}

/// The cost that every answer reports.
pub const INPUT_TOKENS: u64 = 120;
pub const OUTPUT_TOKENS: u64 = 15;

impl Answer<'_> {
    fn id(&self, prefix: &str) -> String {
        format!("{prefix}_{:08}", self.number)
    }

    fn part_id(&self, prefix: &str, index: usize) -> String {
        format!("{prefix}_{:08}_{index}", self.number)
    }

    fn calls_tools(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Tool { .. }))
    }

    fn text(&self) -> String {
        self.parts
            .iter()
            .filter_map(|part| match part {
                Part::Text(text) => Some(text.as_str()),
                Part::Tool { .. } => None,
            })
            .collect()
    }
}

/// A text in the pieces it is sent in: enough to see whether a client joins them.
fn slices(text: &str) -> Vec<&str> {
    const CHARS: usize = 40;
    let mut cuts: Vec<usize> = text.char_indices().map(|(at, _)| at).step_by(CHARS).collect();
    cuts.push(text.len());
    cuts.windows(2).map(|cut| &text[cut[0]..cut[1]]).collect()
}

fn event(name: &str, data: &Value) -> String {
    format!("event: {name}\ndata: {data}\n\n")
}

fn data(data: &Value) -> String {
    format!("data: {data}\n\n")
}

/// Text wherever it lies in a content value: a string, or blocks with a `text`.
fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            blocks.iter().map(text_of).filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n")
        }
        Value::Object(block) => {
            ["text", "content", "output"].iter().find_map(|key| block.get(*key)).map(text_of).unwrap_or_default()
        }
        _ => String::new(),
    }
}

fn array<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map_or(&[], Vec::as_slice)
}

fn string(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// What OpenAI's formats answer to an error.
fn openai_refusal(status: u16, message: &str) -> Value {
    let kind = match status {
        401 => "invalid_api_key",
        429 => "rate_limit_exceeded",
        500.. => "server_error",
        _ => "invalid_request_error",
    };
    json!({ "error": { "message": message, "type": kind, "code": kind, "param": null } })
}
