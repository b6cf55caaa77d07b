//! The OpenAPI 3.1 document of all resources. Schemas come from the types that are read and written.

use matsu_core::error_code::ErrorCode;
use schemars::generate::{Contract, SchemaSettings};
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

use crate::resource::{Operation, ResponseShape, SchemaOf, Who};

/// The body of every reply to a refused or failed request.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "written by `Problem`; here for its schema")]
struct ProblemBody {
    r#type: String,
    title: ErrorCode,
    status: u16,
    /// A sentence that says what to do.
    detail: String,
    error_code: ErrorCode,
    /// Finds the full record in the log.
    error_id: String,
}

/// Any JSON object: where a route answers as a tool does, the tool's own schema is the contract.
pub struct AnyObject;

impl JsonSchema for AnyObject {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "AnyObject".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "object" })
    }
}

pub fn document(version: &str, operations: &[Operation]) -> Value {
    let mut answers = shared(Contract::Serialize);
    let problem = answers.subschema_for::<ProblemBody>();
    let mut paths = Map::new();
    for operation in operations {
        let path = paths.entry(operation.path).or_insert_with(|| json!({}));
        path[operation.method] = described(operation, &mut answers);
    }
    let schemas = answers.take_definitions(true);
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Matsu",
            "version": version,
            "description": "Asynchronous work for AI agents, and for the people who run them.",
            "license": { "name": "MIT OR Apache-2.0" },
        },
        "servers": [{ "url": "/api/v1" }],
        "security": [{ "bearer": [] }, { "cookie": [], "key": [] }],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "responses": { "Problem": {
                "description": "Refused or failed: problem details as in RFC 9457.",
                "content": { "application/problem+json": { "schema": problem } },
            } },
            "securitySchemes": {
                "bearer": { "type": "http", "scheme": "bearer", "description": "A named token: `matsu token new`." },
                "cookie": { "type": "apiKey", "in": "cookie", "name": "matsu_7878", "description": "Session cookie; its name has the port." },
                "key": { "type": "apiKey", "in": "header", "name": "X-Matsu-Key", "description": "Session key, sent in the header X-Matsu-Key with the cookie." },
            },
        },
    })
}

fn described(operation: &Operation, answers: &mut SchemaGenerator) -> Value {
    let doc = &operation.doc;
    let mut described = json!({
        "operationId": doc.id,
        "summary": doc.summary,
        "tags": [operation.path.split('/').nth(1).unwrap_or_default()],
        "responses": {
            doc.status.to_string(): answer(&doc.answer, answers),
            "default": { "$ref": "#/components/responses/Problem" },
        },
    });
    let mut parameters = path_parameters(operation.path);
    parameters.extend(doc.query.map(query_parameters).unwrap_or_default());
    if !parameters.is_empty() {
        described["parameters"] = parameters.into();
    }
    if let Some(body) = doc.body {
        described["requestBody"] =
            json!({ "required": true, "content": { "application/json": { "schema": inlined(body) } } });
    }
    if doc.is_open {
        described["security"] = json!([]);
    }
    described["x-roles"] = match doc.who {
        Who::Everybody => json!(["viewer", "member", "admin"]),
        Who::Writers => json!(["member", "admin"]),
        Who::Admins => json!(["admin"]),
    };
    described
}

fn answer(answer: &ResponseShape, answers: &mut SchemaGenerator) -> Value {
    match answer {
        ResponseShape::Nothing => json!({ "description": "Done." }),
        ResponseShape::Json(schema) => {
            json!({ "description": "Done.", "content": { "application/json": { "schema": schema(answers) } } })
        }
        ResponseShape::Events(schema) => {
            let schema = schema(answers);
            json!({ "description": "A stream.", "content": { "text/event-stream": { "schema": { "type": "string", "x-event": schema } } } })
        }
    }
}

fn path_parameters(path: &str) -> Vec<Value> {
    let names = path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    names.map(|name| json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } })).collect()
}

/// Each field of the type is a parameter.
fn query_parameters(query: SchemaOf) -> Vec<Value> {
    let mut schema = inlined(query);
    let required: Vec<String> = serde_json::from_value(schema["required"].take()).unwrap_or_default();
    let Value::Object(fields) = schema["properties"].take() else { return Vec::new() };
    let parameter = |(name, mut field): (String, Value)| {
        let description = field.as_object_mut().and_then(|field| field.remove("description"));
        let mut parameter =
            json!({ "name": name, "in": "query", "required": required.contains(&name), "schema": present(field) });
        if let Some(description) = description {
            parameter["description"] = description;
        }
        parameter
    };
    fields.into_iter().map(parameter).collect()
}

/// A query cannot say null: a parameter is there or it is not.
fn present(mut schema: Value) -> Value {
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            schema["type"] = only.clone();
        }
    }
    if let Some(Value::Array(choices)) = schema.get_mut("anyOf") {
        choices.retain(|choice| choice["type"] != "null");
        if let [only] = choices.as_slice() {
            return only.clone();
        }
    }
    if let Some(Value::Array(words)) = schema.get_mut("enum") {
        words.retain(|word| !word.is_null());
    }
    if let Value::Object(fields) = &mut schema {
        fields.retain(|name, value| name != "default" || !value.is_null());
    }
    schema
}

/// What is read: whole where it is used, for the same type may be written in another shape.
fn inlined(schema: SchemaOf) -> Value {
    let mut settings = settings(Contract::Deserialize);
    settings.inline_subschemas = true;
    let mut schema = schema(&mut settings.into_generator()).to_value();
    bound_integers(&mut schema);
    schema
}

/// A format names the width of an integer, and few readers know it; the bounds say it to all.
fn bound_integers(schema: &mut Value) {
    let bounds = match schema.get("format").and_then(Value::as_str) {
        Some("int64") => Some((json!(i64::MIN), json!(i64::MAX))),
        Some("uint64") => Some((json!(0), json!(u64::MAX))),
        Some("uint32") => Some((json!(0), json!(u32::MAX))),
        _ => None,
    };
    if let (Some((least, most)), Value::Object(fields)) = (bounds, &mut *schema) {
        fields.entry("minimum").or_insert(least);
        fields.entry("maximum").or_insert(most);
    }
    match schema {
        Value::Object(fields) => fields.values_mut().for_each(bound_integers),
        Value::Array(items) => items.iter_mut().for_each(bound_integers),
        _ => {}
    }
}

fn shared(contract: Contract) -> SchemaGenerator {
    settings(contract).into_generator()
}

fn settings(contract: Contract) -> SchemaSettings {
    SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
        settings.contract = contract;
    })
}
