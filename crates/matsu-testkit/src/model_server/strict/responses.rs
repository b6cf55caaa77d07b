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
                if text(item, "role") == "user" {
                    list(item, "content").iter().try_for_each(input_part)?;
                }
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
                let is_text = item.get("output").is_some_and(Value::is_string);
                let parts = list(item, "output");
                ensure(is_text || !parts.is_empty(), || "an output is a text, or a list of parts".to_owned())?;
                parts.iter().try_for_each(input_part)?;
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

fn input_part(part: &Value) -> Checked {
    match text(part, "type") {
        "input_text" => Ok(()),
        "input_image" => {
            ensure(text(part, "image_url").starts_with("data:image/"), || "image_url: no image".to_owned())
        }
        other => Err(format!("input cannot hold {other:?}")),
    }
}
