//! OpenAI chat completions: `POST /v1/chat/completions`, chunks of one choice, ended by `[DONE]`.

use serde_json::{Value, json};

use super::{Answer, INPUT_TOKENS, OUTPUT_TOKENS, WireFormat, array, data, openai_refusal, slices, string, text_of};
use crate::model_server::request::{Asked, Format};
use crate::model_server::script::Part;

pub struct OpenaiChat;

impl WireFormat for OpenaiChat {
    fn format(&self) -> Format {
        Format::OpenaiChat
    }

    fn claims(&self, path: &str) -> bool {
        path.ends_with("/chat/completions")
    }

    fn asked(&self, _path: &str, body: &Value) -> Asked {
        let messages = array(body, "messages");
        let is_system = |message: &&Value| matches!(message["role"].as_str(), Some("system" | "developer"));
        let content = |message: &Value| text_of(&message["content"]);
        let results = messages.iter().rev().take_while(|message| message["role"] == "tool");
        Asked {
            format: self.format(),
            model: string(&body["model"]),
            stream: body["stream"] == true,
            system: messages.iter().filter(is_system).map(content).collect::<Vec<_>>().join("\n"),
            messages: messages.iter().filter(|message| !is_system(message)).map(content).collect(),
            tools: array(body, "tools").iter().map(|tool| string(&tool["function"]["name"])).collect(),
            results: results.map(content).collect(),
        }
    }

    fn pieces(&self, answer: &Answer<'_>) -> Vec<String> {
        let mut pieces = vec![chunk(answer, &json!({ "role": "assistant", "content": "" }), &Value::Null)];
        let mut calls = 0;
        for (index, part) in answer.parts.iter().enumerate() {
            match part {
                Part::Text(text) => {
                    let deltas = slices(text).into_iter().map(|slice| json!({ "content": slice }));
                    pieces.extend(deltas.map(|delta| chunk(answer, &delta, &Value::Null)));
                }
                Part::Tool { name, arguments } => {
                    let deltas = call_deltas(answer, (index, calls), name, &arguments.to_string());
                    pieces.extend(deltas.iter().map(|delta| chunk(answer, delta, &Value::Null)));
                    calls += 1;
                }
            }
        }
        pieces.push(chunk(answer, &json!({}), &json!(finish_reason(answer))));
        let mut last = head(answer, "chat.completion.chunk");
        last["choices"] = json!([]);
        last["usage"] = usage();
        pieces.push(data(&last));
        pieces.push("data: [DONE]\n\n".to_owned());
        pieces
    }

    fn opening(&self, answer: &Answer<'_>) -> Vec<String> {
        vec![
            chunk(answer, &json!({ "role": "assistant", "content": "" }), &Value::Null),
            chunk(answer, &json!({ "content": answer.text() }), &Value::Null),
        ]
    }

    fn whole(&self, answer: &Answer<'_>) -> Value {
        let calls = answer.parts.iter().enumerate().filter_map(|(index, part)| match part {
            Part::Text(_) => None,
            Part::Tool { name, arguments } => Some(json!({ "id": answer.part_id("call", index), "type": "function",
                "function": { "name": name, "arguments": arguments.to_string() } })),
        });
        let mut message = json!({ "role": "assistant", "content": answer.text() });
        if answer.calls_tools() {
            message["tool_calls"] = calls.collect();
        }
        let mut completion = head(answer, "chat.completion");
        completion["choices"] = json!([{ "index": 0, "message": message, "finish_reason": finish_reason(answer) }]);
        completion["usage"] = usage();
        completion
    }

    fn refusal(&self, status: u16, message: &str) -> Value {
        openai_refusal(status, message)
    }
}

fn head(answer: &Answer<'_>, object: &str) -> Value {
    json!({ "id": answer.id("chatcmpl"), "object": object, "created": 1_700_000_000, "model": answer.model })
}

fn chunk(answer: &Answer<'_>, delta: &Value, finish_reason: &Value) -> String {
    let mut chunk = head(answer, "chat.completion.chunk");
    chunk["choices"] = json!([{ "index": 0, "delta": delta, "finish_reason": finish_reason }]);
    data(&chunk)
}

/// The name comes first and once; the arguments follow in slices.
fn call_deltas(answer: &Answer<'_>, (part, call): (usize, usize), name: &str, arguments: &str) -> Vec<Value> {
    let id = answer.part_id("call", part);
    let function = json!({ "name": name, "arguments": "" });
    let opening = json!({ "index": call, "id": id, "type": "function", "function": function });
    let rest = slices(arguments).into_iter().map(|slice| json!({ "index": call, "function": { "arguments": slice } }));
    std::iter::once(opening).chain(rest).map(|call| json!({ "tool_calls": [call] })).collect()
}

fn finish_reason(answer: &Answer<'_>) -> &'static str {
    if answer.calls_tools() { "tool_calls" } else { "stop" }
}

fn usage() -> Value {
    json!({ "prompt_tokens": INPUT_TOKENS, "completion_tokens": OUTPUT_TOKENS,
        "total_tokens": INPUT_TOKENS + OUTPUT_TOKENS })
}
