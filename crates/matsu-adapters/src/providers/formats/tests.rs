//! Each format letter for letter against a recorded request: one transcript that three models made, with parallel
//! calls, a missing result, a late one, a note, thoughts and signatures.

mod vendor;

use matsu_core::clock::Timestamp;
use matsu_core::history::{Entry, Item, Maker, validate};
use matsu_core::id::EntryId;
use matsu_core::ports::provider::{Danger, ModelRequest, OutputShape, ToolSpec};
use serde_json::{Value, json};

use crate::providers::config::ProviderConfig;
use crate::providers::wire::{Reader, WIRES, Wire};

const NOW: Timestamp = Timestamp::from_millis(1);

fn call(id: &str, arguments: Value, signature: Option<&str>) -> Item {
    Item::ToolCall { id: id.into(), name: "look".into(), arguments, signature: signature.map(str::to_owned) }
}

fn result(id: &str, content: &str, is_error: bool) -> Item {
    Item::result(id, "look", content, is_error)
}

fn maker(wire: &str, model: &str) -> Maker {
    Maker { wire: wire.into(), model: model.into() }
}

/// What gemini, claude and chatgpt made of one conversation.
pub fn transcript() -> Vec<Entry> {
    let thought = Item::Thinking { text: "hm".into(), signature: Some("c2ln".into()), native: None };
    let sealed = json!({ "type": "redacted_thinking", "data": "xx" });
    let sealed = Item::Thinking { text: String::new(), signature: None, native: Some(sealed) };
    let reasoning = json!({ "type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA" });
    let reasoning = Item::Thinking { text: String::new(), signature: None, native: Some(reasoning) };
    let signed = call("call_g1", json!({ "n": 1 }), Some("s1"));
    let history = vec![
        Entry::system("Be brief.", NOW),
        Entry::user("a note", NOW),
        Entry::user("@gemini look", NOW),
        Entry::assistant("gemini", vec![Item::text("Looking."), signed, call("call_g2", json!({ "n": 2 }), None)], NOW)
            .made_by(maker("gemini", "gemini-3-pro")),
        Entry::tool(vec![result("call_g2", "[1,2]", false), result("call_g1", "{\"a\":1}", false)], NOW),
        Entry::assistant("gemini", vec![Item::text("Seen.")], NOW).made_by(maker("gemini", "gemini-3-pro")),
        Entry::user("@claude and you?", NOW),
        Entry::assistant("claude", vec![thought, sealed, call("toolu_1", json!({}), None)], NOW)
            .made_by(maker("anthropic", "claude-x")),
        Entry::tool(vec![result("toolu_1", "no such place", true)], NOW),
        Entry::user("@chatgpt?", NOW),
        Entry::assistant("chatgpt", vec![reasoning, call("call_o1", json!("{broken"), None)], NOW)
            .made_by(maker("openai", "gpt-5")),
        Entry::assistant("chatgpt", vec![Item::text("It runs.")], NOW).made_by(maker("openai", "gpt-5")),
        Entry::tool(vec![result("call_o1", "", false)], NOW),
        Entry::user("go on", NOW),
    ];
    let numbered = history.into_iter().enumerate();
    numbered.map(|(n, entry)| Entry { id: EntryId::from_text(format!("entry_{n}")), ..entry }).collect()
}

fn wire(name: &str) -> &'static dyn Wire {
    *WIRES.iter().find(|wire| wire.name() == name).unwrap()
}

#[track_caller]
fn check(name: &str, model: &str, speaker: &str, recorded: &str) {
    validate(&transcript()).unwrap();
    let reader = Reader { name: speaker.into(), maker: maker(name, model) };
    let formatted = wire(name).format_history(&transcript(), &reader);
    let recorded: Value = serde_json::from_str(recorded).unwrap();
    assert_eq!(format!("{formatted:#}"), format!("{recorded:#}"));
}

#[test]
fn openai_chat_tool_role_with_tool_call_id() {
    check("openai_chat", "gpt-4o", "gpt", include_str!("tests/openai_chat.json"));
}

#[test]
fn openai_responses_items() {
    check("openai", "gpt-5", "chatgpt", include_str!("tests/openai_responses.json"));
}

#[test]
fn anthropic_messages() {
    check("anthropic", "claude-x", "claude", include_str!("tests/anthropic.json"));
}

#[test]
fn gemini_function_response_is_an_object() {
    check("gemini", "gemini-3-pro", "gemini", include_str!("tests/gemini.json"));
}

#[test]
fn ollama_messages() {
    check("ollama", "qwen3", "qwen", include_str!("tests/ollama.json"));
}

#[test]
fn whatever_a_tool_says_gemini_gets_an_object() {
    let cases = [
        ("plain", json!({ "result": "plain" })),
        ("", json!({ "result": "" })),
        ("null", json!({ "result": null })),
        ("7", json!({ "result": 7 })),
        ("[1,\"a\"]", json!({ "result": [1, "a"] })),
        ("{\"k\":[]}", json!({ "k": [] })),
    ];
    for (content, response) in cases {
        let history = [
            Entry::assistant("gemini", vec![call("c", json!({}), None)], NOW),
            Entry::tool(vec![result("c", content, false)], NOW),
        ];
        let reader = Reader { name: "gemini".into(), maker: maker("gemini", "gemini-2.5-pro") };
        let formatted = wire("gemini").format_history(&history, &reader);
        assert_eq!(formatted[1]["parts"][0]["functionResponse"]["response"], response, "{content:?}");
    }
}

fn request() -> ModelRequest {
    let input = json!({ "$schema": "x", "type": "object", "properties": { "n": { "$ref": "#/$defs/n" } },
        "$defs": { "n": { "anyOf": [{ "type": "integer" }, { "type": "string" }] } } });
    let tool = ToolSpec::new("look", "Looks.", input, Danger::ReadOnly);
    let schema = json!({ "type": "object", "properties": { "a": { "type": "string" } }, "required": ["a"],
        "additionalProperties": false });
    ModelRequest {
        history: vec![Entry::user("hi", NOW)].into(),
        tools: vec![tool].into(),
        output: Some(OutputShape { name: "answer".into(), schema }),
    }
}

#[test]
fn model_names_go_out_letter_for_letter() {
    for model in ["qwen3-max", "a/b:c", "x::y"] {
        for wire in WIRES {
            let config = ProviderConfig::new("m", wire.name(), model);
            let sent = format!("{}{}", wire.path(model), wire.body(&config, &request()));
            assert!(sent.contains(model), "{}: {sent}", wire.name());
        }
    }
}

#[test]
fn the_shape_of_the_answer_and_the_tools_reach_each_vendor_in_its_own_place() {
    let places = [
        ("openai", "/text/format/schema", "/tools/0/parameters"),
        ("openai_chat", "/response_format/json_schema/schema", "/tools/0/function/parameters"),
        ("anthropic", "/output_config/format/schema", "/tools/0/input_schema"),
        ("gemini", "/generationConfig/responseJsonSchema", "/tools/0/functionDeclarations/0/parametersJsonSchema"),
        ("ollama", "/format", "/tools/0/function/parameters"),
    ];
    for (name, shape, tool) in places {
        let body = wire(name).body(&ProviderConfig::new("m", name, "m"), &request());
        assert_eq!(body.pointer(shape).unwrap()["required"], json!(["a"]), "{name}");
        let tool = body.pointer(tool).unwrap();
        assert_eq!((tool.get("$schema"), &tool["type"]), (None, &json!("object")), "{name}");
        assert_eq!(tool["properties"]["n"]["$ref"], "#/$defs/n", "{name}");
    }
    let old = wire("gemini").body(&ProviderConfig::new("m", "gemini", "gemini-2.0-flash"), &request());
    let tool = old.pointer("/tools/0/functionDeclarations/0/parameters").unwrap();
    assert_eq!(tool["properties"]["n"], json!({ "anyOf": [{ "type": "integer" }, { "type": "string" }] }));
}
