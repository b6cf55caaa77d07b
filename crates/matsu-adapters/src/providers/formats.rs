//! A history in each vendor's shape. Pure functions; one file per wire format, and here what they share.
//!
//! All of them walk the steps of [`matsu_core::history::steps`], in which every call has exactly one result, so none of
//! them can separate the two, whatever the source of the transcript.

pub mod anthropic;
pub mod gemini;
pub mod ollama;
pub mod openai_chat;
pub mod openai_responses;
#[cfg(test)]
pub(super) mod tests;

use std::borrow::Cow;

use matsu_core::history::{CallWithResult, Entry, Image, Item, Maker, Role, UserPart, system_prompt};
use serde_json::{Map, Value, json};

use super::wire::Reader;

/// The instruction about the other models of the chat.
const ABOUT_OTHERS: &str = "Several models share this conversation. Answers of the others begin with their name in \
     square brackets. Speak only for yourself, and do not begin your answers with a name.";

/// The system prompt, with a word about the other models if there are any.
pub(super) fn instructions(history: &[Entry], reader: &Reader) -> Option<String> {
    let others = history
        .iter()
        .any(|entry| entry.role == Role::Assistant && entry.model.as_deref().is_some_and(|model| model != reader.name));
    match (system_prompt(history), others) {
        (Some(prompt), true) => Some(format!("{prompt}\n\n{ABOUT_OTHERS}")),
        (None, true) => Some(ABOUT_OTHERS.to_owned()),
        (prompt, false) => prompt,
    }
}

/// The system prompt as a message, where the format has no other place for it.
pub(super) fn system_message(history: &[Entry], reader: &Reader) -> Option<Value> {
    instructions(history, reader).map(|text| json!({ "role": "system", "content": text }))
}

/// A text with its author. Only the texts of other models carry a name.
pub(super) fn attributed<'a>(text: &'a str, model: &str, reader: &Reader) -> Cow<'a, str> {
    if model == reader.name { Cow::Borrowed(text) } else { Cow::Owned(format!("[{model}] {text}")) }
}

/// Whether the reader's own vendor and model made it: then seals and signatures go back as they came.
pub(super) fn is_own(maker: Option<&Maker>, reader: &Reader) -> bool {
    maker == Some(&reader.maker)
}

/// A name that every vendor takes. Only names that a model made up need it.
pub(super) fn legal_name(name: &str) -> String {
    let legal =
        |character: char| if character.is_ascii_alphanumeric() || "_-".contains(character) { character } else { '_' };
    let mut name: String = name.chars().map(legal).take(64).collect();
    if !name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_') {
        name.insert(0, '_');
        name.truncate(64);
    }
    name
}

/// Arguments as an object, which is what every vendor wants to see again.
pub(super) fn object_arguments(arguments: &Value) -> Value {
    match arguments {
        Value::Object(_) => arguments.clone(),
        other => json!({ "unreadable": other }),
    }
}

/// A result where the format has no field for an error.
pub(super) fn plain_result(call: &CallWithResult<'_>) -> String {
    match (call.is_error, call.result) {
        (true, text) => format!("Error: {text}"),
        // Nothing at all is refused by some.
        (false, "") => "(no output)".to_owned(),
        (false, text) => text.to_owned(),
    }
}

/// A result that comes when its call is long past.
pub(super) fn late_text(call: &CallWithResult<'_>) -> String {
    format!("[The tool {} ({}), called earlier, has now answered:]\n{}", call.name, call.id, plain_result(call))
}

/// What stands before the images of a result where they cannot be a part of it.
pub(super) fn shown_by(call: &CallWithResult<'_>) -> String {
    format!("[What the tool {} ({}) showed with its result:]", call.name, call.id)
}

/// An image in its text.
pub(super) fn data_url(image: &Image) -> String {
    format!("data:{};base64,{}", image.media_type, image.data)
}

/// What a person said and the images with it, in the order of the transcript, each as the format writes it.
fn user_parts(said: &[UserPart<'_>], text: impl Fn(&str) -> Value, image: impl Fn(&Image) -> Value) -> Vec<Value> {
    let mut parts = Vec::new();
    for said in said {
        match said {
            UserPart::Image(shown) => parts.push(image(shown)),
            other => parts.extend(user_text(other).map(|words| text(&words))),
        }
        if let UserPart::Late(call) = said {
            parts.extend(call.images.iter().map(&image));
        }
    }
    parts
}

/// The words of a user's step; images apart.
pub(super) fn user_text(said: &UserPart<'_>) -> Option<String> {
    match said {
        UserPart::Text(text) if text.trim().is_empty() => None,
        UserPart::Text(text) => Some((*text).to_owned()),
        UserPart::Late(call) => Some(late_text(call)),
        UserPart::Image(_) => None,
    }
}

/// Text of an item that has any.
pub(super) fn spoken(item: &Item) -> Option<&str> {
    match item {
        Item::Text { text, .. } if !text.trim().is_empty() => Some(text),
        _ => None,
    }
}

/// Adds what there is to a request.
pub(super) fn put(body: &mut Map<String, Value>, name: &str, value: Option<Value>) {
    if let Some(value) = value {
        body.insert(name.to_owned(), value);
    }
}

/// Appends a message, or its parts to the last one if that has the same role: two in a row are refused by some.
pub(super) fn push_merged(messages: &mut Vec<Value>, role: &str, field: &str, parts: Vec<Value>) {
    if parts.is_empty() {
        return;
    }
    if let Some(last) = messages.last_mut()
        && last.get("role").and_then(Value::as_str) == Some(role)
        && let Some(Value::Array(before)) = last.get_mut(field)
    {
        before.extend(parts);
        return;
    }
    messages.push(json!({ "role": role, field: parts }));
}
