//! Tool and output schemas as the vendors take them. MCP servers send whatever JSON Schema knows; each vendor refuses
//! some of it, and refuses the whole request for it.

use serde_json::{Map, Value, json};

/// How deep references are followed; a schema that refers to itself ends there.
const DEPTH_MAX: usize = 12;

/// An object schema without what OpenAI and Anthropic refuse at the top: `$schema`, and a choice instead of
/// properties. The properties of all choices are offered instead.
pub fn object(schema: &Value) -> Value {
    let mut fields = schema.as_object().cloned().unwrap_or_default();
    fields.remove("$schema");
    fields.remove("$id");
    let mut properties = fields.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
    for choice in ["anyOf", "oneOf", "allOf"] {
        let Some(Value::Array(branches)) = fields.remove(choice) else { continue };
        for branch in &branches {
            for (name, property) in branch.get("properties").and_then(Value::as_object).into_iter().flatten() {
                properties.entry(name.clone()).or_insert_with(|| property.clone());
            }
        }
    }
    for refused in ["enum", "not", "const"] {
        fields.remove(refused);
    }
    fields.insert("type".to_owned(), json!("object"));
    fields.insert("properties".to_owned(), Value::Object(properties));
    Value::Object(fields)
}

/// The few words that Gemini's older `parameters` field knows; references are replaced by what they name.
pub fn openapi_subset(schema: &Value) -> Value {
    let root = object(schema);
    let mut clean = subset(&root, &root, 0);
    // An object without properties is refused; without a type it is any object.
    if clean.get("properties").and_then(Value::as_object).is_some_and(Map::is_empty)
        && let Some(fields) = clean.as_object_mut()
    {
        fields.remove("properties");
    }
    clean
}

fn subset(schema: &Value, root: &Value, depth: usize) -> Value {
    let Some(fields) = schema.as_object() else { return json!({ "type": "string" }) };
    if depth > DEPTH_MAX {
        return json!({ "type": "object" });
    }
    if let Some(target) = fields.get("$ref").and_then(Value::as_str) {
        let target = target.strip_prefix('#').and_then(|pointer| root.pointer(pointer));
        return target.map_or_else(|| json!({ "type": "object" }), |target| subset(target, root, depth + 1));
    }
    let mut clean = Map::new();
    for (name, value) in fields {
        match (name.as_str(), value) {
            ("type", Value::Array(types)) => {
                let named = types.iter().find(|name| name.as_str() != Some("null"));
                clean.insert("type".to_owned(), named.cloned().unwrap_or_else(|| json!("string")));
                if types.iter().any(|name| name.as_str() == Some("null")) {
                    clean.insert("nullable".to_owned(), json!(true));
                }
            }
            ("type" | "required" | "description", value) => {
                clean.insert(name.clone(), value.clone());
            }
            // Only texts can be listed there.
            ("enum", Value::Array(values)) if values.iter().all(Value::is_string) => {
                clean.insert(name.clone(), value.clone());
            }
            ("const", Value::String(text)) => {
                clean.insert("enum".to_owned(), json!([text]));
            }
            ("properties", Value::Object(properties)) => {
                let properties = properties.iter().map(|(name, value)| (name.clone(), subset(value, root, depth + 1)));
                clean.insert("properties".to_owned(), Value::Object(properties.collect()));
            }
            ("items", value) => {
                clean.insert("items".to_owned(), subset(value, root, depth + 1));
            }
            ("anyOf" | "oneOf", Value::Array(branches)) => {
                let branches = branches.iter().map(|branch| subset(branch, root, depth + 1)).collect();
                clean.insert("anyOf".to_owned(), Value::Array(branches));
            }
            _ => {}
        }
    }
    if !clean.contains_key("type") && !clean.contains_key("anyOf") {
        clean.insert("type".to_owned(), json!(if clean.contains_key("properties") { "object" } else { "string" }));
    }
    Value::Object(clean)
}

/// Whether OpenAI's strict mode takes it: every object closed, every property required, no `oneOf`.
pub fn is_strict(schema: &Value) -> bool {
    match schema {
        Value::Object(fields) => {
            let closed = match fields.get("properties").and_then(Value::as_object) {
                None => fields.get("type").and_then(Value::as_str) != Some("object"),
                Some(properties) => {
                    let required: Vec<&str> = fields
                        .get("required")
                        .and_then(Value::as_array)
                        .into_iter()
                        .flatten()
                        .filter_map(Value::as_str)
                        .collect();
                    fields.get("additionalProperties") == Some(&json!(false))
                        && properties.keys().all(|name| required.contains(&name.as_str()))
                }
            };
            closed && !fields.contains_key("oneOf") && fields.values().all(is_strict)
        }
        Value::Array(values) => values.iter().all(is_strict),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn odd() -> Value {
        json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "additionalProperties": false,
            "properties": {
                "path": { "type": "string", "pattern": "^/", "minLength": 1 },
                "tags": { "type": "array", "items": { "type": "array", "items": { "type": ["string", "null"] } } },
                "node": { "$ref": "#/$defs/node" },
                "when": { "anyOf": [{ "type": "string", "format": "date" }, { "type": "integer" }] },
            },
            "required": ["path"],
            "$defs": { "node": { "type": "object", "properties": { "next": { "$ref": "#/$defs/node" } } } },
        })
    }

    #[test]
    fn the_top_is_an_object_with_properties() {
        for schema in [json!(null), json!({}), json!({"type": "object"}), json!({"enum": [1]}), json!(true)] {
            assert_eq!(object(&schema)["type"], "object");
            assert!(object(&schema)["properties"].is_object(), "{schema}");
        }
        let choice = json!({"anyOf": [{"properties": {"a": {"type": "string"}}}, {"properties": {"b": {}}}]});
        assert_eq!(object(&choice), json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {}}}));
        assert_eq!(object(&odd()).get("$schema"), None);
        assert_eq!(object(&odd())["properties"]["path"]["pattern"], "^/");
    }

    #[test]
    fn the_older_gemini_field_gets_only_words_it_knows() {
        let clean = openapi_subset(&odd());
        let text = clean.to_string();
        for refused in ["$ref", "$defs", "$schema", "pattern", "minLength", "additionalProperties", "format"] {
            assert!(!text.contains(refused), "{refused}: {text}");
        }
        assert_eq!(clean["properties"]["tags"]["items"]["items"], json!({"type": "string", "nullable": true}));
        assert_eq!(clean["properties"]["node"]["type"], "object");
        assert_eq!(clean["required"], json!(["path"]));
    }

    #[test]
    fn strict_is_claimed_only_where_it_holds() {
        let closed =
            json!({"type": "object", "properties": {"a": {}}, "required": ["a"], "additionalProperties": false});
        assert!(is_strict(&closed));
        assert!(!is_strict(&odd()));
        assert!(!is_strict(&json!({"type": "object"})));
    }
}
