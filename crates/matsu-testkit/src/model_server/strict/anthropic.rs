//! Anthropic messages.

use serde_json::Value;

use super::{Checked, ensure, list, name, object_schema, text};

pub fn check(body: &Value) -> Checked {
    ensure(body.get("max_tokens").and_then(Value::as_u64).is_some(), || "max_tokens: field required".to_owned())?;
    for tool in list(body, "tools") {
        name(text(tool, "name"))?;
        object_schema(tool.get("input_schema").unwrap_or(&Value::Null))?;
    }
    let messages = list(body, "messages");
    ensure(messages.first().is_some_and(|first| text(first, "role") == "user"), || {
        "the first message must be the user's".to_owned()
    })?;
    let (mut role, mut open): (&str, Vec<&str>) = ("assistant", Vec::new());
    for (at, message) in messages.iter().enumerate() {
        ensure(text(message, "role") != role, || format!("messages.{at}: roles must alternate"))?;
        role = text(message, "role");
        ensure(["user", "assistant"].contains(&role), || format!("messages.{at}: unknown role {role:?}"))?;
        // A bare text is a message of one block.
        let blocks = list(message, "content");
        let bare = message.get("content").is_some_and(|content| content.as_str().is_some_and(|text| !text.is_empty()));
        ensure(bare || !blocks.is_empty(), || format!("messages.{at}: all messages must have content"))?;
        let asked = std::mem::take(&mut open);
        open = check_blocks(at, role, blocks, asked)?;
    }
    ensure(open.is_empty(), || format!("tool_use ids without tool_result blocks: {open:?}"))
}

/// The calls of this message; those of the one before must be answered in it.
fn check_blocks<'a>(at: usize, role: &str, blocks: &'a [Value], mut asked: Vec<&str>) -> Result<Vec<&'a str>, String> {
    let mut calls = Vec::new();
    for (nth, block) in blocks.iter().enumerate() {
        let place = || format!("messages.{at}.content.{nth}");
        match (text(block, "type"), role) {
            ("text", _) => ensure(!text(block, "text").trim().is_empty(), || format!("{}: text is empty", place()))?,
            ("image", "user") => image(block).map_err(|why| format!("{}: {why}", place()))?,
            ("thinking", "assistant") => {
                ensure(!text(block, "signature").is_empty(), || format!("{}: signature required", place()))?;
            }
            ("redacted_thinking", "assistant") => {
                ensure(!text(block, "data").is_empty(), || format!("{}: data required", place()))?;
            }
            ("tool_use", "assistant") => {
                name(text(block, "name"))?;
                name(text(block, "id"))?;
                ensure(block.get("input").is_some_and(Value::is_object), || format!("{}: input", place()))?;
                calls.push(text(block, "id"));
            }
            ("tool_result", "user") => {
                let id = text(block, "tool_use_id");
                let found = asked.iter().position(|waiting| *waiting == id);
                let found = found.ok_or_else(|| format!("{}: unexpected tool_use_id {id:?}", place()))?;
                asked.remove(found);
                result(block).map_err(|why| format!("{}: {why}", place()))?;
            }
            (kind, _) => return Err(format!("{}: a {role} message cannot hold {kind:?}", place())),
        }
    }
    ensure(asked.is_empty(), || format!("messages.{at}: tool_use ids without tool_result blocks: {asked:?}"))?;
    Ok(calls)
}

/// A text, or texts and images; only text if it is an error.
fn result(block: &Value) -> Checked {
    for part in list(block, "content") {
        match text(part, "type") {
            "text" => ensure(!text(part, "text").trim().is_empty(), || "text is empty".to_owned())?,
            "image" if block.get("is_error") == Some(&true.into()) => {
                return Err("all content must be type \"text\" if `is_error` is true".to_owned());
            }
            "image" => image(part)?,
            other => return Err(format!("a tool_result cannot hold {other:?}")),
        }
    }
    Ok(())
}

fn image(block: &Value) -> Checked {
    let source = block.get("source").unwrap_or(&Value::Null);
    let known = ["image/jpeg", "image/png", "image/gif", "image/webp"].contains(&text(source, "media_type"));
    ensure(known && text(source, "type") == "base64" && !text(source, "data").is_empty(), || {
        format!("source: not an image: {source}")
    })
}
