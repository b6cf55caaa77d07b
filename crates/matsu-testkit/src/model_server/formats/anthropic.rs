//! Anthropic Messages: `POST /v1/messages`, events with names, content in numbered blocks.

use serde_json::{Value, json};

use super::{Answer, INPUT_TOKENS, OUTPUT_TOKENS, WireFormat, array, event, slices, string, text_of};
use crate::model_server::request::{Asked, Format};
use crate::model_server::script::Part;

pub struct AnthropicMessages;

impl WireFormat for AnthropicMessages {
    fn format(&self) -> Format {
        Format::AnthropicMessages
    }

    fn claims(&self, path: &str) -> bool {
        path.ends_with("/v1/messages")
    }

    fn asked(&self, _path: &str, body: &Value) -> Asked {
        let messages = array(body, "messages");
        let last = messages.last().map(|message| array(message, "content")).unwrap_or_default();
        Asked {
            format: self.format(),
            model: string(&body["model"]),
            stream: body["stream"] == true,
            system: text_of(&body["system"]),
            messages: messages.iter().map(|message| text_of(&message["content"])).collect(),
            tools: array(body, "tools").iter().map(|tool| string(&tool["name"])).collect(),
            results: last.iter().filter(|block| block["type"] == "tool_result").map(text_of).collect(),
        }
    }

    fn pieces(&self, answer: &Answer<'_>) -> Vec<String> {
        let mut pieces = vec![start(answer)];
        for (index, part) in answer.parts.iter().enumerate() {
            let (block, deltas) = block(answer, index, part);
            pieces.push(named("content_block_start", json!({ "index": index, "content_block": block })));
            for delta in deltas {
                pieces.push(named("content_block_delta", json!({ "index": index, "delta": delta })));
            }
            pieces.push(named("content_block_stop", json!({ "index": index })));
        }
        let delta = json!({ "stop_reason": stop_reason(answer), "stop_sequence": null });
        let usage = json!({ "output_tokens": OUTPUT_TOKENS });
        pieces.push(named("message_delta", json!({ "delta": delta, "usage": usage })));
        pieces.push(named("message_stop", json!({})));
        pieces
    }

    fn opening(&self, answer: &Answer<'_>) -> Vec<String> {
        let delta = json!({ "type": "text_delta", "text": answer.text() });
        vec![
            start(answer),
            named("content_block_start", json!({ "index": 0, "content_block": { "type": "text", "text": "" } })),
            named("content_block_delta", json!({ "index": 0, "delta": delta })),
        ]
    }

    fn whole(&self, answer: &Answer<'_>) -> Value {
        let content = answer.parts.iter().enumerate().map(|(index, part)| match part {
            Part::Text(text) => json!({ "type": "text", "text": text }),
            Part::Tool { name, arguments } => {
                json!({ "type": "tool_use", "id": answer.part_id("toolu", index), "name": name, "input": arguments })
            }
        });
        let mut message = message(answer);
        message["content"] = content.collect();
        message["stop_reason"] = json!(stop_reason(answer));
        message["usage"]["output_tokens"] = json!(OUTPUT_TOKENS);
        message
    }

    fn refusal(&self, status: u16, message: &str) -> Value {
        let kind = match status {
            401 => "authentication_error",
            403 => "permission_error",
            404 => "not_found_error",
            429 => "rate_limit_error",
            529 => "overloaded_error",
            500.. => "api_error",
            _ => "invalid_request_error",
        };
        json!({ "type": "error", "error": { "type": kind, "message": message } })
    }
}

/// Events carry their name inside, too.
fn named(name: &str, mut data: Value) -> String {
    data["type"] = json!(name);
    event(name, &data)
}

fn start(answer: &Answer<'_>) -> String {
    named("message_start", json!({ "message": message(answer) }))
}

fn message(answer: &Answer<'_>) -> Value {
    let usage = json!({ "input_tokens": INPUT_TOKENS, "output_tokens": 1, "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0 });
    json!({ "id": answer.id("msg"), "type": "message", "role": "assistant", "model": answer.model, "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": usage })
}

fn stop_reason(answer: &Answer<'_>) -> &'static str {
    if answer.calls_tools() { "tool_use" } else { "end_turn" }
}

/// A block as it begins, and what is added to it.
fn block(answer: &Answer<'_>, index: usize, part: &Part) -> (Value, Vec<Value>) {
    match part {
        Part::Text(text) => {
            let deltas = slices(text).into_iter().map(|slice| json!({ "type": "text_delta", "text": slice }));
            (json!({ "type": "text", "text": "" }), deltas.collect())
        }
        Part::Tool { name, arguments } => {
            let arguments = arguments.to_string();
            let deltas = slices(&arguments).into_iter();
            let deltas = deltas.map(|slice| json!({ "type": "input_json_delta", "partial_json": slice }));
            let id = answer.part_id("toolu", index);
            (json!({ "type": "tool_use", "id": id, "name": name, "input": {} }), deltas.collect())
        }
    }
}
