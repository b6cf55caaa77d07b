//! What is derived, and what of it clients list.

use super::*;
use crate::tool::reply_check;

#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is looked at")]
struct Example {
    /// How long.
    #[schemars(range(min = 0, max = 60))]
    wait: Option<u32>,
    word: Option<Word>,
    #[schemars(length(min = 1, max = 100))]
    id: String,
    #[schemars(length(min = 1, max = 2000))]
    text: String,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "lowercase")]
#[expect(dead_code, reason = "only its schema is looked at")]
enum Word {
    One,
    Two,
}

#[test]
fn an_optional_parameter_is_described_by_its_own_type() {
    assert_eq!(
        input::<Example>(),
        json!({
            "type": "object",
            "properties": {
                "wait": { "type": "integer", "minimum": 0, "maximum": 60, "description": "How long." },
                "word": { "type": "string", "enum": ["one", "two"] },
                "id": { "type": "string", "minLength": 1, "maxLength": 100 },
                "text": { "type": "string", "minLength": 1, "maxLength": 2000 },
            },
            "required": ["id", "text"],
            "additionalProperties": false,
        })
    );
}

#[test]
fn a_list_leaves_lengths_out() {
    let listed = listed_input(&input::<Example>());
    assert_eq!(listed["properties"]["id"], json!({ "type": "string" }));
    assert_eq!(listed["properties"]["text"], json!({ "type": "string" }));
    assert_eq!(listed["properties"]["wait"], json!({ "type": "integer", "maximum": 60, "description": "How long." }));
}

#[derive(serde::Serialize, JsonSchema)]
struct Report {
    /// Written as null where it is not known.
    version: Option<String>,
    login: Option<Login>,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
    each: Vec<Login>,
}

#[derive(serde::Serialize, JsonSchema)]
struct Login {
    name: Option<String>,
}

fn written(report: &Report) -> Value {
    let mut body = serde_json::to_value(report).unwrap();
    body["ok"] = json!(true);
    body
}

#[test]
fn a_field_that_is_always_written_may_be_null_and_no_other() {
    let reply = reply::<Report>();
    let listed = listed_output(&reply);
    for schema in [&reply, &listed] {
        let mut body = written(&Report { version: None, login: None, note: None, each: vec![Login { name: None }] });
        reply_check::check(schema, &body).unwrap();
        body["note"] = Value::Null;
        reply_check::check(schema, &body).unwrap_err();
        body["note"] = json!("here");
        reply_check::check(schema, &body).unwrap();
        body["version"] = json!(7);
        reply_check::check(schema, &body).unwrap_err();
    }
    let mut without = written(&Report { version: None, login: None, note: None, each: Vec::new() });
    without.as_object_mut().unwrap().remove("each");
    reply_check::check(&listed, &without).unwrap_err();
}

#[test]
fn a_listed_schema_knows_an_error_and_an_interrupt() {
    let listed = listed_output(&reply::<Report>());
    let error =
        json!({ "ok": false, "error_code": "X", "error": "why", "error_id": "err_1", "details": {}, "news": "1" });
    reply_check::check(&listed, &error).unwrap();
    reply_check::check(&listed, &json!({ "ok": true, "interrupted": true, "notification": "stop" })).unwrap();
    reply_check::check(&listed, &json!({ "ok": true })).unwrap_err();
    assert!(!listed.to_string().contains("description"), "{listed}");
}
