//! Schemas derived from types: complete ones, which arguments and replies are checked against, and what of them clients
//! list. A listed schema is made from the complete one by leaving out, so it allows whatever the complete one allows.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

/// How deep a listed output schema describes fields: those of a reply, and those of the objects in it.
const OUTPUT_DEPTH_MAX: usize = 2;

/// The schema that arguments are checked against. Unknown fields are refused.
pub fn input<T: JsonSchema>() -> Value {
    let mut schema = derived::<T>(SchemaSettings::draft2020_12());
    without_null(&mut schema);
    if let Value::Object(fields) = &mut schema {
        fields.entry("type").or_insert_with(|| json!("object"));
        fields.entry("properties").or_insert_with(|| json!({}));
        fields.insert("additionalProperties".to_owned(), json!(false));
    }
    schema
}

/// The input schema as clients list it: without lengths, and without bounds that say "not negative" or "not empty".
pub fn listed_input(schema: &Value) -> Value {
    let mut listed = schema.clone();
    drop_bounds(&mut listed);
    listed
}

fn drop_bounds(schema: &mut Value) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(drop_bounds),
        Value::Object(fields) => {
            fields.remove("minLength");
            fields.remove("maxLength");
            fields.remove("maxItems");
            for name in ["minItems", "minimum"] {
                if fields.get(name).and_then(Value::as_f64).is_some_and(|least| (0.0..=1.0).contains(&least)) {
                    fields.remove(name);
                }
            }
            fields.values_mut().for_each(drop_bounds);
        }
        _ => {}
    }
}

/// The complete schema of every reply: the tool's own fields with `ok`, or the error envelope, or an interrupt.
pub fn reply<T: JsonSchema>() -> Value {
    // As it is written, where what is empty may be left out.
    let mut own = derived::<T>(SchemaSettings::draft2020_12().for_serialize());
    only_required_may_be_null(&mut own);
    if let Value::Object(fields) = &mut own {
        let properties = fields.entry("properties").or_insert_with(|| json!({}));
        if let Value::Object(properties) = properties {
            properties.insert("ok".to_owned(), json!({ "const": true }));
        }
        fields.remove("type");
    }
    let error = json!({
        "properties": {
            "ok": { "const": false },
            "error_code": { "type": "string" },
            "error": { "type": "string" },
            "error_id": { "type": "string" },
            "details": { "type": "object" },
        },
        "required": ["ok", "error_code", "error", "error_id", "details"],
    });
    // What every tool answers while its session has an order to stop that it has not acknowledged.
    let interrupt = json!({
        "properties": {
            "ok": { "const": true },
            "interrupted": { "const": true },
            "notification": { "type": "string" },
        },
        "required": ["ok", "interrupted", "notification"],
    });
    json!({
        "type": "object",
        "properties": {
            "ok": { "type": "boolean" },
            "notification": { "type": "string" },
            "news": { "type": "string" },
        },
        "required": ["ok"],
        "anyOf": [own, error, interrupt],
    })
}

/// The output schema as clients list it: one flat list of fields, and which of them come together. Descriptions,
/// bounds and what lies deeper are left out: clients check replies with it, and models do not get to see it.
pub fn listed_output(reply: &Value) -> Value {
    let mut fields = Map::from_iter([("ok".to_owned(), json!({ "type": "boolean" }))]);
    let mut shapes = Vec::new();
    let own = &reply["anyOf"][0];
    let variants = own["anyOf"].as_array().cloned().unwrap_or_default();
    for shape in std::iter::once(own).chain(&variants) {
        for (name, schema) in shape["properties"].as_object().into_iter().flatten() {
            let depth = if is_object(schema) && !requires(shape, name) { OUTPUT_DEPTH_MAX } else { 1 };
            add_field(&mut fields, name, bare(schema, depth));
        }
    }
    let always = own["required"].as_array().cloned().unwrap_or_default();
    for variant in if variants.is_empty() { &[Value::Null][..] } else { &variants[..] } {
        let more = variant["required"].as_array().cloned().unwrap_or_default();
        let required = [always.clone(), more].concat();
        shapes.push(json!({ "required": required }));
    }
    // What both are is the same for every tool, and is not repeated in each.
    shapes.push(json!({ "required": ["error_code"] }));
    shapes.push(json!({ "required": ["interrupted"] }));
    json!({ "type": "object", "properties": fields, "required": ["ok"], "anyOf": shapes })
}

/// Two shapes may use a name for different things: then the list says what both have in common.
fn add_field(fields: &mut Map<String, Value>, name: &str, schema: Value) {
    match fields.get(name) {
        None => drop(fields.insert(name.to_owned(), schema)),
        Some(_) if name == "ok" => {}
        Some(known) if *known == schema => {}
        Some(known) => {
            let common = if known["type"] == schema["type"] { json!({ "type": schema["type"] }) } else { json!({}) };
            fields.insert(name.to_owned(), common);
        }
    }
}

fn is_object(schema: &Value) -> bool {
    schema["type"] == "object"
}

/// Whether what fits the schema always has this field.
fn requires(schema: &Value, name: &str) -> bool {
    schema["required"].as_array().is_some_and(|always| always.iter().any(|known| known == name))
}

/// A schema with types only, and without what is required below the first level. Of an object inside a reply only the
/// fields are listed that it always has, and none if the object itself may be missing: those that may be missing are
/// most of the list, and no client can rely on them.
fn bare(schema: &Value, depth: usize) -> Value {
    let Value::Object(given) = schema else { return schema.clone() };
    let mut kept = Map::new();
    for (keyword, value) in given {
        match keyword.as_str() {
            "type" | "const" | "enum" => drop(kept.insert(keyword.clone(), value.clone())),
            "anyOf" => {
                let choices = value.as_array().into_iter().flatten().map(|choice| bare(choice, depth)).collect();
                kept.insert(keyword.clone(), Value::Array(choices));
            }
            "items" | "additionalProperties" => drop(kept.insert(keyword.clone(), bare(value, depth))),
            "properties" if depth < OUTPUT_DEPTH_MAX => {
                let fields = value.as_object().into_iter().flatten().filter(|(name, _)| requires(schema, name));
                let fields = fields.map(|(name, schema)| (name.clone(), bare(schema, depth + 1))).collect();
                kept.insert(keyword.clone(), Value::Object(fields));
            }
            _ => {}
        }
    }
    Value::Object(kept)
}

fn derived<T: JsonSchema>(settings: SchemaSettings) -> Value {
    let settings = settings.with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    shrink(&mut schema);
    schema
}

/// Takes out what repeats the name or the type.
fn shrink(schema: &mut Value) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(shrink),
        Value::Object(fields) => {
            for name in ["title", "format"] {
                if fields.get(name).is_some_and(Value::is_string) {
                    fields.remove(name);
                }
            }
            if fields.get("default") == Some(&Value::Null) {
                fields.remove("default");
            }
            fields.values_mut().for_each(shrink);
        }
        _ => {}
    }
}

/// In arguments an optional field is one that may be absent.
fn without_null(schema: &mut Value) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(without_null),
        Value::Object(fields) => {
            drop_null(fields);
            fields.values_mut().for_each(without_null);
        }
        _ => {}
    }
}

/// In replies a field that is always written is null where there is nothing to say; others are left out then.
fn only_required_may_be_null(schema: &mut Value) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(only_required_may_be_null),
        Value::Object(fields) => {
            let required: Vec<String> = fields
                .get("required")
                .and_then(Value::as_array)
                .map(|names| names.iter().filter_map(|name| name.as_str().map(str::to_owned)).collect())
                .unwrap_or_default();
            for (name, field) in fields.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten() {
                if let Value::Object(field) = field
                    && !required.contains(name)
                {
                    drop_null(field);
                }
            }
            fields.values_mut().for_each(only_required_may_be_null);
        }
        _ => {}
    }
}

/// `["string", "null"]` without the null, likewise `anyOf: [X, null]`.
fn drop_null(fields: &mut Map<String, Value>) {
    if let Some(Value::Array(words)) = fields.get_mut("enum") {
        words.retain(|word| !word.is_null());
    }
    if let Some(Value::Array(types)) = fields.get_mut("type") {
        types.retain(|name| name != "null");
        if types.len() == 1 {
            let only = types.remove(0);
            fields.insert("type".to_owned(), only);
        }
    }
    let Some(Value::Array(choices)) = fields.get_mut("anyOf") else { return };
    choices.retain(|choice| choice != &json!({ "type": "null" }));
    if choices.len() == 1
        && let Value::Object(only) = choices.remove(0)
    {
        fields.remove("anyOf");
        for (name, value) in only {
            fields.entry(name).or_insert(value);
        }
    }
}

#[cfg(test)]
mod tests;
