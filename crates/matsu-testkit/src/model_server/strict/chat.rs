//! OpenAI chat completions.

use serde_json::Value;

use super::{Checked, ensure, list, name, object_schema, text};

pub fn check(body: &Value) -> Checked {
    for tool in list(body, "tools") {
        let function = tool.get("function").unwrap_or(tool);
        name(text(function, "name"))?;
        object_schema(function.get("parameters").unwrap_or(&Value::Null))?;
    }
    // Ids of the last assistant message that still wait for their result.
    let mut open: Vec<&str> = Vec::new();
    for (at, message) in list(body, "messages").iter().enumerate() {
        let role = text(message, "role");
        if role != "tool" {
            ensure(open.is_empty(), || format!("messages[{at}]: tool_call_ids without a response: {open:?}"))?;
        }
        match role {
            "system" | "developer" | "user" => {
                ensure(!is_empty(message), || format!("messages[{at}] is empty"))?;
                for part in list(message, "content") {
                    user_part(role, part).map_err(|why| format!("messages[{at}]: {why}"))?;
                }
            }
            "assistant" => {
                let calls = list(message, "tool_calls");
                ensure(!calls.is_empty() || !is_empty(message), || format!("messages[{at}]: content is missing"))?;
                for call in calls {
                    check_call(call)?;
                    open.push(text(call, "id"));
                }
            }
            "tool" => {
                let id = text(message, "tool_call_id");
                let place = open.iter().position(|waiting| *waiting == id);
                let place = place.ok_or_else(|| format!("messages[{at}]: no preceding call with id {id:?}"))?;
                open.remove(place);
                ensure(message.get("content").is_some_and(Value::is_string), || "a result is a text".to_owned())?;
            }
            other => return Err(format!("messages[{at}]: unknown role {other:?}")),
        }
    }
    ensure(open.is_empty(), || format!("tool_call_ids without a response: {open:?}"))
}

/// Only what a user says may hold images.
fn user_part(role: &str, part: &Value) -> Checked {
    match text(part, "type") {
        "text" => Ok(()),
        "image_url" if role == "user" => {
            let url = part.pointer("/image_url/url").and_then(Value::as_str).unwrap_or_default();
            ensure(url.starts_with("data:image/") || url.starts_with("https://"), || "image_url: no image".to_owned())
        }
        other => Err(format!("a {role} message cannot hold {other:?}")),
    }
}

fn check_call(call: &Value) -> Checked {
    let function = call.get("function").unwrap_or(call);
    name(text(function, "name"))?;
    let is_json = serde_json::from_str::<Value>(text(function, "arguments")).is_ok();
    ensure(is_json && !text(call, "id").is_empty(), || format!("a call needs an id and JSON arguments: {call}"))
}

fn is_empty(message: &Value) -> bool {
    match message.get("content") {
        Some(Value::String(text)) => text.is_empty(),
        Some(Value::Array(parts)) => parts.is_empty(),
        _ => true,
    }
}
