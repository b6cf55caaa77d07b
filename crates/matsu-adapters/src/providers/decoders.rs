//! What comes back from each vendor, one file per wire format. Any bytes are answered or refused; none panic, so no
//! value is ever indexed in place.

pub mod anthropic;
pub mod gemini;
pub mod ollama;
pub mod openai_chat;
pub mod openai_responses;
mod slots;
#[cfg(test)]
mod tests;

use matsu_core::history::Item;
use matsu_core::ports::provider::{ModelEvent, ModelTurn, TurnEnd, Usage};
use serde_json::{Value, json};

use super::refusal::Fault;

/// A text below some path, if there is one.
pub(super) fn text_at<'a>(value: &'a Value, pointer: &str) -> Option<&'a str> {
    value.pointer(pointer).and_then(Value::as_str)
}

pub(super) fn number_at(value: &Value, pointer: &str) -> u64 {
    value.pointer(pointer).and_then(Value::as_u64).unwrap_or(0)
}

pub(super) fn list_at<'a>(value: &'a Value, pointer: &str) -> &'a [Value] {
    value.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// What a model meant as arguments: nothing is `{}`; what cannot be parsed stays text, and is never run.
pub fn arguments(text: &str) -> Value {
    if text.trim().is_empty() {
        return json!({});
    }
    match serde_json::from_str(text) {
        Ok(Value::Object(object)) => Value::Object(object),
        Ok(Value::Null) => json!({}),
        _ => Value::String(text.to_owned()),
    }
}

/// Arguments that came as a value.
pub(super) fn argument_value(value: Option<&Value>) -> Value {
    match value {
        None | Some(Value::Null) => json!({}),
        Some(Value::String(text)) => arguments(text),
        Some(Value::Object(object)) => Value::Object(object.clone()),
        Some(other) => Value::String(other.to_string()),
    }
}

/// A call without an id is given one by the loop.
pub(super) fn call(id: &str, name: &str, arguments: Value, signature: Option<String>) -> Item {
    Item::ToolCall { id: id.to_owned(), name: name.to_owned(), arguments, signature }
}

/// A whole turn of a vendor whose thoughts carry no seal.
pub(super) fn plain_turn(
    (thoughts, text): (String, String),
    calls: Vec<Item>,
    usage: Usage,
    end: Option<TurnEnd>,
) -> Result<ModelTurn, Fault> {
    let end = end.ok_or_else(Fault::truncated)?;
    let mut items = Vec::new();
    if !thoughts.is_empty() {
        items.push(Item::Thinking { text: thoughts, signature: None, native: None });
    }
    if !text.is_empty() {
        items.push(Item::text(text));
    }
    items.extend(calls);
    Ok(ModelTurn { items, usage, end })
}

/// Shows a piece of text, unless it is empty.
pub(super) fn show(out: &mut Vec<ModelEvent>, text: &str) {
    if !text.is_empty() {
        out.push(ModelEvent::Text(text.to_owned()));
    }
}

/// Shows a piece of a thought, unless it is empty.
pub(super) fn think(out: &mut Vec<ModelEvent>, text: &str) {
    if !text.is_empty() {
        out.push(ModelEvent::Thinking(text.to_owned()));
    }
}
