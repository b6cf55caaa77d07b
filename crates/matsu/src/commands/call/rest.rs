//! docs/reference/rest.md, written from the routes themselves.

use std::fmt::Write;

use serde_json::Value;

use super::reference::type_of;
use crate::compose::VERSION;

const INTRODUCTION: &str = "\
# Routes

Written by `matsu call --rest-reference`; do not edit.

All routes are below `/api/v1`. [REST and events](../rest.md) says how to sign in, how lists are paged and what a refusal
looks like. The same as a document for programs, with the schemas of all answers: `GET /api/v1/openapi.json`.
";

/// In this order where a path has several.
const METHODS: &[&str] = &["get", "post", "put", "patch", "delete"];

pub fn page() -> String {
    let document = matsu_server::rest_description(VERSION);
    let mut page = INTRODUCTION.to_owned();
    let mut chapter = String::new();
    for (path, operations) in document["paths"].as_object().into_iter().flatten() {
        let name = path.split('/').nth(1).unwrap_or_default();
        if name != chapter {
            name.clone_into(&mut chapter);
            let _ = write!(page, "\n## {name}\n");
        }
        for method in METHODS {
            if let Some(operation) = operations.get(method) {
                add_route(&mut page, &document, &format!("{} {path}", method.to_uppercase()), operation);
            }
        }
    }
    page
}

fn add_route(page: &mut String, document: &Value, route: &str, operation: &Value) {
    let roles = operation["x-roles"].as_array().map(Vec::len);
    let who = match (operation["security"].as_array().is_some_and(Vec::is_empty), roles) {
        (true, _) => " Open to all.",
        (false, Some(1)) => " For admins.",
        (false, Some(2)) => " For members and admins.",
        (false, _) => "",
    };
    let _ = write!(page, "\n### `{route}`\n\n{}{who}\n", operation["summary"].as_str().unwrap_or_default());
    let mut rows = String::new();
    for parameter in operation["parameters"].as_array().into_iter().flatten() {
        let name = parameter["name"].as_str().unwrap_or_default();
        let place = parameter["in"].as_str().unwrap_or_default();
        let needed = parameter["required"] == true;
        add_row(&mut rows, name, place, &parameter["schema"], needed, parameter["description"].as_str());
    }
    add_fields(&mut rows, &operation["requestBody"]["content"]["application/json"]["schema"], "");
    if !rows.is_empty() {
        let _ = write!(page, "\n| parameter | in | type | meaning |\n|---|---|---|---|\n{rows}");
    }
    let answered = operation["responses"].as_object().into_iter().flatten().find(|(status, _)| *status != "default");
    let Some((status, answer)) = answered else { return };
    let fields = answer_fields(document, answer);
    let _ = write!(page, "\nAnswers {status}{fields}.\n");
}

/// The fields of a body, those of its objects behind them.
fn add_fields(rows: &mut String, schema: &Value, path: &str) {
    let required = |name: &str| schema["required"].as_array().is_some_and(|names| names.contains(&name.into()));
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let whole = format!("{path}{name}");
        add_row(rows, &whole, "body", field, required(name), field["description"].as_str());
        add_fields(rows, field, &format!("{whole}."));
    }
}

fn add_row(rows: &mut String, name: &str, place: &str, schema: &Value, needed: bool, meaning: Option<&str>) {
    let needed = if needed { ", required" } else { "" };
    let meaning = meaning.unwrap_or_default().replace('|', "\\|").replace('\n', " ");
    let _ = writeln!(rows, "| `{name}` | {place} | {}{needed} | {meaning} |", plain_type(schema));
}

/// Without the bounds that only say how wide a number is, and without null where a field may be left out.
fn plain_type(schema: &Value) -> String {
    let mut schema = schema.clone();
    if let Value::Object(fields) = &mut schema {
        let is_wide = |bound: &Value| bound.as_i64().is_none_or(|bound| bound.unsigned_abs() > u64::from(u32::MAX / 2));
        fields.retain(|name, bound| !matches!(name.as_str(), "minimum" | "maximum") || !is_wide(bound));
        if let Some(Value::Array(types)) = fields.get("type") {
            let first = types.iter().find(|name| *name != "null").cloned().unwrap_or_default();
            fields.insert("type".to_owned(), first);
        }
        if let Some(Value::Array(choices)) = fields.get_mut("anyOf") {
            choices.retain(|choice| choice["type"] != "null");
        }
    }
    type_of(&schema)
}

fn answer_fields(document: &Value, answer: &Value) -> String {
    let content = &answer["content"];
    let (kind, schema) = match (&content["application/json"], &content["text/event-stream"]) {
        (Value::Null, Value::Null) => return " without a body".to_owned(),
        (Value::Null, stream) => (" with a stream of events", &stream["schema"]["x-event"]),
        (json, _) => ("", &json["schema"]),
    };
    let schema = resolved(document, schema);
    let of_items = resolved(document, &schema["properties"]["items"]["items"]);
    let (what, schema) = match of_items["properties"] {
        Value::Object(_) => (" with a list of items", of_items),
        _ if kind.is_empty() => (" with", schema),
        _ => (", each with", schema),
    };
    let names: Vec<String> =
        schema["properties"].as_object().into_iter().flatten().map(|(name, _)| format!("`{name}`")).collect();
    match (names.is_empty(), what) {
        (true, _) => format!("{kind} with a JSON object"),
        (false, " with a list of items") => format!("{kind}{what}, each with {}", names.join(", ")),
        (false, _) => format!("{kind}{what} {}", names.join(", ")),
    }
}

fn resolved<'a>(document: &'a Value, schema: &'a Value) -> &'a Value {
    let name = schema["$ref"].as_str().and_then(|path| path.strip_prefix("#/components/schemas/"));
    name.map_or(schema, |name| &document["components"]["schemas"][name])
}
