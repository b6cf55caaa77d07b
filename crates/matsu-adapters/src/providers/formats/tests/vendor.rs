//! Matsu's requests against those that the vendors' own SDKs send for the same conversation, as
//! `scripts/vendor-shapes.py` wrote them down. What may differ is listed here, case by case.

use serde_json::{Map, Value, json};

use matsu_core::history::{Entry, Item};
use matsu_core::ports::provider::{Danger, ModelRequest, OutputShape, ToolSpec};

use super::{NOW, call, maker, result, wire};
use crate::providers::config::ProviderConfig;

/// The conversation of the script, made by the model that is asked again.
fn conversation(wire: &str, model: &str) -> ModelRequest {
    let looking =
        vec![Item::text("Looking."), call("call_1", json!({ "n": 1 }), None), call("call_2", json!({ "n": 2 }), None)];
    let history = vec![
        Entry::system("Be brief.", NOW),
        Entry::user("look twice", NOW),
        Entry::assistant("m", looking, NOW).made_by(maker(wire, model)),
        Entry::tool(vec![result("call_1", "{\"a\":1}", false), result("call_2", "no such place", true)], NOW),
        Entry::user("go on", NOW),
    ];
    let input = json!({ "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"],
        "additionalProperties": false });
    let schema = json!({ "type": "object", "properties": { "a": { "type": "string" } }, "required": ["a"],
        "additionalProperties": false });
    let tool = ToolSpec::new("look", "Looks.", input, Danger::ReadOnly);
    ModelRequest {
        history: history.into(),
        tools: vec![tool].into(),
        output: Some(OutputShape { name: "answer".into(), schema }),
    }
}

/// Where a vendor takes two spellings of a name, one of them.
fn one_spelling(value: &Value) -> Value {
    let camel = |name: &str| match name {
        "parameters_json_schema" => "parametersJsonSchema".to_owned(),
        other => other.to_owned(),
    };
    match value {
        Value::Object(fields) => {
            let fields: Map<String, Value> =
                fields.iter().map(|(name, value)| (camel(name), one_spelling(value))).collect();
            Value::Object(fields)
        }
        Value::Array(items) => items.iter().map(one_spelling).collect(),
        other => other.clone(),
    }
}

/// What was sent, and to where.
fn ours(name: &str, model: &str) -> (String, Value) {
    let config = ProviderConfig { output_tokens: Some(500), ..ProviderConfig::new("m", name, model) };
    (wire(name).path(model), wire(name).body(&config, &conversation(name, model)))
}

fn theirs(recorded: &str) -> (String, Value) {
    let recorded: Value = serde_json::from_str(recorded).unwrap();
    (recorded["path"].as_str().unwrap().to_owned(), one_spelling(&recorded["body"]))
}

#[test]
fn openai_chat_is_what_the_sdk_sends() {
    let (path, body) = ours("openai_chat", "gpt-4o");
    let sdk = theirs(include_str!("vendor/openai_chat.json"));
    assert_eq!((format!("/v1{path}"), format!("{body:#}")), (sdk.0, format!("{:#}", sdk.1)));
}

#[test]
fn openai_responses_are_what_the_sdk_sends() {
    let (path, body) = ours("openai", "gpt-4o");
    let sdk = theirs(include_str!("vendor/openai.json"));
    assert_eq!((format!("/v1{path}"), format!("{body:#}")), (sdk.0, format!("{:#}", sdk.1)));
}

#[test]
fn anthropic_is_what_the_sdk_sends() {
    let (path, body) = ours("anthropic", "claude-x");
    let sdk = theirs(include_str!("vendor/anthropic.json"));
    assert_eq!((path, format!("{body:#}")), (sdk.0, format!("{:#}", sdk.1)));
}

#[test]
fn gemini_is_what_the_sdk_sends() {
    let (path, body) = ours("gemini", "gemini-2.5-pro");
    let sdk = theirs(include_str!("vendor/gemini.json"));
    // The newest fields are in the vendor's beta first; its own SDK lets the caller choose.
    assert_eq!(path.replace("/v1beta/", "/v1/"), sdk.0);
    assert_eq!(format!("{body:#}"), format!("{:#}", sdk.1));
}

#[test]
fn ollama_is_what_the_sdk_sends() {
    let (path, mut body) = ours("ollama", "qwen3");
    // The SDK knows only some words of JSON Schema in tools, and drops the others.
    let input = body.pointer_mut("/tools/0/function/parameters").and_then(Value::as_object_mut).unwrap();
    assert_eq!(input.remove("additionalProperties"), Some(json!(false)));
    let sdk = theirs(include_str!("vendor/ollama.json"));
    assert_eq!((path, format!("{body:#}")), (sdk.0, format!("{:#}", sdk.1)));
}
