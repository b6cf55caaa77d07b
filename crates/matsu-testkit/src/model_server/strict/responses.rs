//! OpenAI responses.

use serde_json::Value;

use super::{Checked, ensure, list, name, object_schema, text};

pub fn check(body: &Value) -> Checked {
    for tool in list(body, "tools") {
        name(text(tool, "name"))?;
        object_schema(tool.get("parameters").unwrap_or(&Value::Null))?;
    }
    let (mut open, mut seen): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
    for (at, item) in list(body, "input").iter().enumerate() {
        let id = text(item, "call_id");
        match text(item, "type") {
            "message" => {
                let known = ["user", "assistant", "system", "developer"].contains(&text(item, "role"));
                ensure(known && !list(item, "content").is_empty(), || format!("input[{at}]: not a message: {item}"))?;
            }
            "function_call" => {
                name(text(item, "name"))?;
                let fits = (1..=64).contains(&id.len()) && !seen.contains(&id);
                ensure(fits, || format!("input[{at}]: call_id {id:?} is too long, empty or used"))?;
                let is_json = serde_json::from_str::<Value>(text(item, "arguments")).is_ok();
                ensure(is_json, || format!("input[{at}]: arguments are not JSON"))?;
                open.push(id);
                seen.push(id);
            }
            "function_call_output" => {
                let place = open.iter().position(|waiting| *waiting == id);
                let place = place.ok_or_else(|| format!("input[{at}]: no tool call found for call_id {id:?}"))?;
                open.remove(place);
                ensure(item.get("output").is_some_and(Value::is_string), || "an output is a text".to_owned())?;
            }
            "reasoning" => {
                let sealed = !text(item, "encrypted_content").is_empty() || body.get("store") != Some(&false.into());
                ensure(sealed, || format!("input[{at}]: item {} was not found", text(item, "id")))?;
            }
            other => return Err(format!("input[{at}]: unknown type {other:?}")),
        }
    }
    ensure(open.is_empty(), || format!("no tool output found for function calls {open:?}"))
}
