//! What the routes take that are tools under another name: the tool's own fields, and which of them go together. A tool
//! says the latter in words, for models read them at every call; a description of routes can give it exactly.

use std::borrow::Cow;

use matsu_runtime::tools::TOOLS;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

/// Something else than white space.
const NOT_BLANK: &str = r"\S";
/// A host name as addresses carry it, or everything below one; or a folder of documents.
const DOMAIN_PATTERN: &str =
    r"^((\*\.)?([A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?\.)+[A-Za-z]{2,}|localhost|local:[A-Za-z0-9._-]+)$";
/// Subtags of letters and digits.
const LANGUAGE: &str = "^[A-Za-z0-9]+(-[A-Za-z0-9]+)*$";

/// A type that is nothing but its schema.
macro_rules! described {
    ($(#[doc = $doc:literal] $name:ident = $schema:expr;)*) => {$(
        #[doc = $doc]
        pub struct $name;

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn inline_schema() -> bool {
                true
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                let Value::Object(schema) = $schema else { return Schema::default() };
                schema.into()
            }
        }
    )*};
}

described! {
    /// The body of `POST /tasks`.
    NewTask = json!({ "type": "object", "oneOf": [research(), named_agent(), run()] });
    /// The body of `POST /tasks/{id}/searches`.
    Searches = searches();
    /// The body of `POST /auth-queue/resolve`.
    Resolution = json!({ "type": "object", "oneOf": [item(), domain()] });
    /// The body of `POST /feedback`.
    Correction = json!({ "type": "object", "oneOf": corrections() });
    /// The body of `POST /calibration/rollback`.
    Rollback = fields("calibration_rollback");
    /// The query of `GET /tasks/{id}/searches`.
    StatusFields = without(fields("get_status"), "task_id");
    /// The query of `GET /tasks/{id}/materials`.
    MaterialsFields = fields("get_materials")["properties"]["options"].take();
    /// The query of `GET /auth-queue`.
    AuthFields = fields("get_auth_queue");
}

/// What a tool takes.
fn fields(tool: &str) -> Value {
    TOOLS.iter().find(|entry| entry.name == tool).map(|entry| entry.input_schema().clone()).unwrap_or_default()
}

fn without(mut schema: Value, field: &str) -> Value {
    if let Some(properties) = schema["properties"].as_object_mut() {
        properties.remove(field);
    }
    if let Some(required) = schema["required"].as_array_mut() {
        required.retain(|name| name != field);
    }
    schema
}

/// The same with a field more, which is required.
fn with(mut schema: Value, field: &str, doc: Value) -> Value {
    schema["properties"][field] = doc;
    match schema["required"].as_array_mut() {
        Some(required) => required.push(field.into()),
        None => schema["required"] = json!([field]),
    }
    schema
}

/// Of a tool's fields those that go together: the first ones are required, the others are not.
fn part(tool: &str, required: &[&str], others: &[&str]) -> Value {
    let mut all = fields(tool);
    let names = required.iter().chain(others);
    let properties: Map<String, Value> =
        names.map(|name| ((*name).to_owned(), all["properties"][name].take())).collect();
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

fn research() -> Value {
    let mut schema = with(fields("create_task"), "kind", json!({ "const": "research" }));
    schema["properties"]["query"]["pattern"] = NOT_BLANK.into();
    schema["properties"]["folders"] = json!({
        "type": "array", "items": { "type": "string" }, "description": "Folders that the engine local may search.",
    });
    let config = &mut schema["properties"]["config"]["properties"];
    config["language"]["pattern"] = LANGUAGE.into();
    config["priority_domains"]["items"]["pattern"] = DOMAIN_PATTERN.into();
    schema
}

fn named_agent() -> Value {
    json!({
        "type": "object",
        "properties": {
            "kind": { "const": "agent" },
            "agent_id": { "type": "string" },
            "project_id": { "type": ["string", "null"], "description": "Absent: `default`." },
            "message": { "type": "string", "pattern": NOT_BLANK },
        },
        "required": ["kind", "agent_id", "message"],
        "additionalProperties": false,
    })
}

fn run() -> Value {
    let mut schema = with(fields("use_agent"), "kind", json!({ "const": "agent" }));
    schema["properties"]["message"]["pattern"] = NOT_BLANK.into();
    schema
}

fn searches() -> Value {
    let mut schema = without(fields("queue_searches"), "task_id");
    schema["properties"]["queries"]["items"] =
        json!({ "type": "string", "minLength": 1, "maxLength": 500, "pattern": NOT_BLANK });
    schema
}

fn item() -> Value {
    let mut schema = part("resolve_auth", &["queue_id", "action"], &["target", "success"]);
    schema["properties"]["target"]["enum"] = json!(["item"]);
    no_success_of_a_skip(schema)
}

fn domain() -> Value {
    let mut schema = part("resolve_auth", &["target", "domain", "action"], &["success"]);
    schema["properties"]["target"]["enum"] = json!(["domain"]);
    no_success_of_a_skip(schema)
}

fn no_success_of_a_skip(mut schema: Value) -> Value {
    schema["not"] = json!({
        "required": ["success"],
        "properties": { "action": { "const": "skip" }, "success": { "const": true } },
    });
    schema
}

fn corrections() -> Vec<Value> {
    let about = |actions: &[&str], required: &[&str], others: &[&str]| {
        let mut schema = part("feedback", required, others);
        schema["properties"]["action"]["enum"] = json!(actions);
        if required.contains(&"reason") {
            schema["properties"]["reason"]["pattern"] = NOT_BLANK.into();
        }
        schema
    };
    let domain_actions = ["domain_block", "domain_unblock", "domain_clear_override"];
    let mut domain = about(&domain_actions, &["action", "domain_pattern", "reason"], &[]);
    domain["properties"]["domain_pattern"]["pattern"] = DOMAIN_PATTERN.into();
    vec![
        domain,
        about(&["claim_reject"], &["action", "claim_id", "reason"], &[]),
        about(&["claim_restore"], &["action", "claim_id"], &["reason"]),
        about(&["edge_correct"], &["action", "edge_id", "correct_relation"], &["reason"]),
    ]
}
