//! Ollama's own chat.

use serde_json::Value;

use super::{Checked, ensure, list, name, object_schema, text};

pub fn check(body: &Value) -> Checked {
    for tool in list(body, "tools") {
        let function = tool.get("function").unwrap_or(tool);
        name(text(function, "name"))?;
        object_schema(function.get("parameters").unwrap_or(&Value::Null))?;
    }
    let mut open: Vec<&str> = Vec::new();
    for (at, message) in list(body, "messages").iter().enumerate() {
        ensure(message.get("content").is_some_and(Value::is_string), || format!("messages[{at}]: content is a text"))?;
        let role = text(message, "role");
        if role != "tool" {
            ensure(open.is_empty(), || format!("messages[{at}]: calls without a result: {open:?}"))?;
        }
        // Templates look for images in what a user says.
        ensure(role == "user" || list(message, "images").is_empty(), || {
            format!("messages[{at}]: images are the user's")
        })?;
        match role {
            "system" | "user" => {}
            "assistant" => {
                for call in list(message, "tool_calls") {
                    let function = call.get("function").unwrap_or(call);
                    let is_object = function.get("arguments").is_some_and(Value::is_object);
                    ensure(is_object, || format!("messages[{at}]: arguments is an object"))?;
                    open.push(text(function, "name"));
                }
            }
            "tool" => {
                let asked = open.iter().position(|asked| *asked == text(message, "tool_name"));
                let asked = asked.ok_or_else(|| format!("messages[{at}]: a result that no call asked for"))?;
                open.remove(asked);
            }
            other => return Err(format!("messages[{at}]: unknown role {other:?}")),
        }
    }
    ensure(open.is_empty(), || format!("calls without a result: {open:?}"))
}
