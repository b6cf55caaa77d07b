//! Gemini. The model's name is in the address, so the newest generation is taken for granted: the first call of a
//! turn must be signed.

use serde_json::Value;

use super::{Checked, ensure, list, name, object_schema, text};

/// What the older field knows of JSON Schema.
const KNOWN: &[&str] =
    &["type", "properties", "required", "description", "items", "enum", "anyOf", "nullable", "format"];

pub fn check(body: &Value) -> Checked {
    for declaration in list(body, "tools").iter().flat_map(|tool| list(tool, "functionDeclarations")) {
        name(text(declaration, "name"))?;
        match (declaration.get("parameters"), declaration.get("parametersJsonSchema")) {
            (Some(_), Some(_)) => return Err("parameters and parametersJsonSchema exclude each other".to_owned()),
            (Some(schema), None) => only_known(schema)?,
            (None, Some(schema)) => object_schema(schema)?,
            (None, None) => {}
        }
    }
    let mut open: Vec<&Value> = Vec::new();
    for (at, content) in list(body, "contents").iter().enumerate() {
        let (role, parts) = (text(content, "role"), list(content, "parts"));
        ensure(["user", "model"].contains(&role), || format!("contents[{at}]: use a valid role: user, model"))?;
        ensure(!parts.is_empty(), || format!("contents[{at}]: parts must not be empty"))?;
        let asked = std::mem::take(&mut open);
        check_responses(at, parts, &asked)?;
        parts.iter().filter_map(|part| part.get("inlineData")).try_for_each(check_image)?;
        open = parts.iter().filter_map(|part| part.get("functionCall")).collect();
        ensure(open.is_empty() || role == "model", || format!("contents[{at}]: only a model calls"))?;
        let first = parts.iter().find(|part| part.get("functionCall").is_some());
        let signed = first.is_none_or(|part| !text(part, "thoughtSignature").is_empty());
        ensure(signed, || format!("contents[{at}]: function call is missing a thought_signature"))?;
        for call in &open {
            name(text(call, "name"))?;
            ensure(call.get("args").is_none_or(Value::is_object), || format!("contents[{at}]: args is an object"))?;
        }
    }
    ensure(open.is_empty(), || "a function call turn must be followed by a function response turn".to_owned())
}

/// As many answers as calls in the turn before, of the same names in the same order.
fn check_responses(at: usize, parts: &[Value], asked: &[&Value]) -> Checked {
    let answers: Vec<&Value> = parts.iter().filter_map(|part| part.get("functionResponse")).collect();
    ensure(answers.len() == asked.len(), || {
        format!("contents[{at}]: {} function responses for {} function calls", answers.len(), asked.len())
    })?;
    for (answer, call) in answers.iter().zip(asked) {
        let same = text(answer, "name") == text(call, "name") && answer.get("id") == call.get("id");
        ensure(same, || format!("contents[{at}]: a response that fits no call: {answer}"))?;
        ensure(answer.get("response").is_some_and(Value::is_object), || {
            format!("contents[{at}]: response must be an object")
        })?;
    }
    Ok(())
}

/// The vendor takes fewer kinds than others.
fn check_image(blob: &Value) -> Checked {
    let known = ["image/png", "image/jpeg", "image/webp"].contains(&text(blob, "mimeType"));
    ensure(known && !text(blob, "data").is_empty(), || format!("Unsupported MIME type: {}", text(blob, "mimeType")))
}

fn only_known(schema: &Value) -> Checked {
    for (word, value) in schema.as_object().into_iter().flatten() {
        ensure(KNOWN.contains(&word.as_str()), || format!("Unknown name {word:?} in parameters"))?;
        match word.as_str() {
            "properties" => value.as_object().into_iter().flatten().try_for_each(|(_, value)| only_known(value))?,
            "items" => only_known(value)?,
            "anyOf" => value.as_array().into_iter().flatten().try_for_each(only_known)?,
            _ => {}
        }
    }
    Ok(())
}
