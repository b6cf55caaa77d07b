//! Schemas derived from types, made small: no titles, no nulls, nothing a model does not need to read.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

/// The schema that arguments are checked against. Unknown fields are refused.
pub fn input<T: JsonSchema>() -> Value {
    let mut schema = derived::<T>(SchemaSettings::draft2020_12());
    if let Value::Object(fields) = &mut schema {
        fields.entry("type").or_insert_with(|| json!("object"));
        fields.entry("properties").or_insert_with(|| json!({}));
        fields.insert("additionalProperties".to_owned(), json!(false));
    }
    schema
}

/// The schema of every reply: the tool's own fields with `ok`, or the error envelope.
pub fn output<T: JsonSchema>() -> Value {
    // As it is written, where what is empty may be left out.
    let mut own = derived::<T>(SchemaSettings::draft2020_12().for_serialize());
    if let Value::Object(fields) = &mut own {
        let properties = fields.entry("properties").or_insert_with(|| json!({}));
        if let Value::Object(properties) = properties {
            properties.insert("ok".to_owned(), json!({ "const": true }));
        }
        fields.remove("type");
        fields.remove("description");
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

/// For a field that is written as null where there is nothing to say: any type will do.
pub fn nullable(_generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({})
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

/// Takes out what only says "may be absent", and what repeats the name.
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
            if let Some(Value::Array(words)) = fields.get_mut("enum") {
                words.retain(|word| !word.is_null());
            }
            drop_null_type(fields);
            drop_null_choice(fields);
            fields.values_mut().for_each(shrink);
        }
        _ => {}
    }
}

/// `["string", "null"]` is a string that may be absent.
fn drop_null_type(fields: &mut Map<String, Value>) {
    let Some(Value::Array(types)) = fields.get_mut("type") else { return };
    types.retain(|name| name != "null");
    if types.len() == 1 {
        let only = types.remove(0);
        fields.insert("type".to_owned(), only);
    }
}

/// Likewise `anyOf: [X, null]`.
fn drop_null_choice(fields: &mut Map<String, Value>) {
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
mod tests {
    use super::*;

    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    struct Example {
        /// How long.
        #[schemars(range(min = 0, max = 60))]
        wait: Option<u32>,
        word: Option<Word>,
    }

    #[derive(JsonSchema)]
    #[schemars(rename_all = "lowercase")]
    #[expect(dead_code, reason = "only its schema is looked at")]
    enum Word {
        One,
        Two,
    }

    #[test]
    fn an_optional_field_is_described_by_its_own_type() {
        assert_eq!(
            input::<Example>(),
            json!({
                "type": "object",
                "properties": {
                    "wait": { "type": "integer", "minimum": 0, "maximum": 60, "description": "How long." },
                    "word": { "type": "string", "enum": ["one", "two"] },
                },
                "additionalProperties": false,
            })
        );
    }
}
