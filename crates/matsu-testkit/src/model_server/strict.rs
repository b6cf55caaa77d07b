//! What the real vendors refuse with 400, checked: calls and results that are not paired, names and schemas they do
//! not take, empty messages, roles out of order. One file per wire format.

mod anthropic;
mod chat;
mod gemini;
mod ollama;
mod responses;

use serde_json::Value;

use super::request::Format;

/// Why a vendor would refuse this request; `None` if it would not.
#[must_use]
pub fn complaint(format: Format, body: &Value) -> Option<String> {
    let checked = match format {
        Format::AnthropicMessages => anthropic::check(body),
        Format::OpenaiResponses => responses::check(body),
        Format::OpenaiChat => chat::check(body),
        Format::Gemini => gemini::check(body),
        Format::Ollama => ollama::check(body),
    };
    checked.err()
}

type Checked = Result<(), String>;

fn ensure(holds: bool, words: impl FnOnce() -> String) -> Checked {
    if holds { Ok(()) } else { Err(words()) }
}

fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// `^[A-Za-z0-9_-]{1,64}$`.
fn name(name: &str) -> Checked {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
    ensure((1..=64).contains(&name.len()) && name.bytes().all(legal), || format!("the name {name:?} does not match"))
}

/// An object at the top, with properties and without a choice.
fn object_schema(schema: &Value) -> Checked {
    ensure(text(schema, "type") == "object", || format!("a schema must be of type object, got {schema}"))?;
    ensure(schema.get("properties").is_some_and(Value::is_object), || "object schema missing properties".to_owned())?;
    for word in ["anyOf", "oneOf", "allOf", "enum", "not", "$schema"] {
        ensure(schema.get(word).is_none(), || format!("schema must not have {word} at the top level"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_vendor_refuses_a_result_without_its_call() {
        let chat = json!({ "messages": [{ "role": "tool", "tool_call_id": "a", "content": "x" }] });
        let responses =
            json!({ "store": false, "input": [{ "type": "function_call_output", "call_id": "a", "output": "x" }] });
        let block = json!({ "type": "tool_result", "tool_use_id": "a", "content": "x" });
        let anthropic = json!({ "max_tokens": 9, "messages": [{ "role": "user", "content": [block] }] });
        let part = json!({ "functionResponse": { "name": "a", "response": {} } });
        let gemini = json!({ "contents": [{ "role": "user", "parts": [part] }] });
        let ollama = json!({ "messages": [{ "role": "tool", "content": "x", "tool_name": "a" }] });
        let cases = [
            (Format::OpenaiChat, chat),
            (Format::OpenaiResponses, responses),
            (Format::AnthropicMessages, anthropic),
            (Format::Gemini, gemini),
            (Format::Ollama, ollama),
        ];
        for (format, body) in cases {
            assert!(complaint(format, &body).is_some(), "{format:?}");
        }
    }

    #[test]
    fn each_vendor_refuses_a_call_without_its_result() {
        let call = json!({ "id": "a", "type": "function", "function": { "name": "f", "arguments": "{}" } });
        let assistant = json!({ "role": "assistant", "content": null, "tool_calls": [call] });
        let chat = json!({ "messages": [assistant, { "role": "user", "content": "x" }] });
        let responses = json!({ "store": false, "input": [{ "type": "function_call", "call_id": "a", "name": "f", "arguments": "{}" }] });
        let block = json!({ "type": "tool_use", "id": "a", "name": "f", "input": {} });
        let user = json!({ "role": "user", "content": [{ "type": "text", "text": "x" }] });
        let anthropic =
            json!({ "max_tokens": 9, "messages": [user, { "role": "assistant", "content": [block] }, user] });
        let part = json!({ "functionCall": { "name": "f", "args": {} }, "thoughtSignature": "s" });
        let user = json!({ "role": "user", "parts": [{ "text": "x" }] });
        let gemini = json!({ "contents": [user, { "role": "model", "parts": [part] }, user] });
        let cases = [
            (Format::OpenaiChat, chat),
            (Format::OpenaiResponses, responses),
            (Format::AnthropicMessages, anthropic),
            (Format::Gemini, gemini),
        ];
        for (format, body) in cases {
            assert!(complaint(format, &body).is_some(), "{format:?}");
        }
    }
}
