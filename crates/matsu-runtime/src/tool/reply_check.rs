//! Replies against their schemas, as a strict client checks them. Debug builds check every reply, so that every test
//! that sees a reply has checked it; release builds do not pay for it.

use serde_json::{Map, Value};

/// What of JSON Schema the output schemas use. A test holds them to it: a keyword that is not here would check nothing.
#[cfg(test)]
const KEYWORDS: &[&str] =
    &["type", "const", "enum", "anyOf", "properties", "required", "items", "additionalProperties"];

/// Checks a whole reply.
///
/// # Errors
/// The first place that does not fit, and the schema it should fit.
pub fn check(schema: &Value, given: &Value) -> Result<(), String> {
    value(schema, "reply", given)
}

fn value(schema: &Value, path: &str, given: &Value) -> Result<(), String> {
    let misfit = || Err(format!("{path} is {given}, its schema is {schema}"));
    if let Some(choices) = schema["anyOf"].as_array()
        && !choices.iter().any(|choice| value(choice, path, given).is_ok())
    {
        return misfit();
    }
    let types = match &schema["type"] {
        Value::String(name) => vec![name.as_str()],
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let is_typed = types.is_empty() || types.iter().any(|name| is(name, given));
    let is_const = schema.get("const").is_none_or(|only| only == given);
    let is_listed = schema["enum"].as_array().is_none_or(|words| words.contains(given));
    if !(is_typed && is_const && is_listed) {
        return misfit();
    }
    match given {
        Value::Object(fields) => object(schema, path, fields),
        Value::Array(items) => {
            items.iter().enumerate().try_for_each(|(at, item)| value(&schema["items"], &format!("{path}[{at}]"), item))
        }
        _ => Ok(()),
    }
}

fn object(schema: &Value, path: &str, fields: &Map<String, Value>) -> Result<(), String> {
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if !fields.contains_key(name) {
            return Err(format!("{path} has no {name}"));
        }
    }
    for (name, given) in fields {
        let known = schema["properties"].get(name);
        let rest = Some(&schema["additionalProperties"]).filter(|rest| rest.is_object());
        if let Some(schema) = known.or(rest) {
            value(schema, &format!("{path}.{name}"), given)?;
        }
    }
    Ok(())
}

fn is(name: &str, given: &Value) -> bool {
    match name {
        "null" => given.is_null(),
        "boolean" => given.is_boolean(),
        "string" => given.is_string(),
        "integer" => given.is_i64() || given.is_u64(),
        "number" => given.is_number(),
        "array" => given.is_array(),
        "object" => given.is_object(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::tools::TOOLS;

    fn keywords(schema: &Value, found: &mut Vec<String>) {
        let Value::Object(fields) = schema else { return };
        for (keyword, value) in fields {
            found.push(keyword.clone());
            match keyword.as_str() {
                "properties" => value.as_object().into_iter().flatten().for_each(|(_, each)| keywords(each, found)),
                "anyOf" => value.as_array().into_iter().flatten().for_each(|each| keywords(each, found)),
                "items" | "additionalProperties" => keywords(value, found),
                _ => {}
            }
        }
    }

    #[test]
    fn every_keyword_of_the_listed_schemas_is_checked() {
        for tool in TOOLS.iter() {
            let mut found = Vec::new();
            keywords(tool.output_schema(), &mut found);
            let unknown: Vec<_> = found.iter().filter(|word| !KEYWORDS.contains(&word.as_str())).collect();
            assert!(unknown.is_empty(), "{}: {unknown:?}", tool.name);
        }
    }

    #[test]
    fn a_misfit_is_named_by_its_place() {
        let schema = json!({
            "type": "object",
            "properties": { "list": { "type": "array", "items": { "type": ["integer", "null"] } } },
            "required": ["list"],
            "additionalProperties": { "type": "string" },
        });
        check(&schema, &json!({ "list": [1, null], "other": "text" })).unwrap();
        assert!(check(&schema, &json!({})).unwrap_err().contains("no list"));
        assert!(check(&schema, &json!({ "list": [1.5] })).unwrap_err().starts_with("reply.list[0] is 1.5"));
        assert!(check(&schema, &json!({ "list": [], "other": 1 })).unwrap_err().starts_with("reply.other"));
    }
}
