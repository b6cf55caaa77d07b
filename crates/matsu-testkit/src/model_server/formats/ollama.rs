//! Ollama's own chat: `POST /api/chat`, one JSON document to a line, ended by `"done": true`.

use serde_json::{Value, json};

use super::{Answer, INPUT_TOKENS, OUTPUT_TOKENS, WireFormat, array, slices, string, text_of};
use crate::model_server::request::{Asked, Format};
use crate::model_server::script::Part;

pub struct Ollama;

impl WireFormat for Ollama {
    fn format(&self) -> Format {
        Format::Ollama
    }

    fn claims(&self, path: &str) -> bool {
        path.ends_with("/api/chat")
    }

    fn asked(&self, _path: &str, body: &Value) -> Asked {
        let messages = array(body, "messages");
        let is_system = |message: &&Value| message["role"] == "system";
        let content = |message: &Value| text_of(&message["content"]);
        let results = messages.iter().rev().take_while(|message| message["role"] == "tool");
        Asked {
            format: self.format(),
            model: string(&body["model"]),
            stream: body["stream"] != false,
            system: messages.iter().filter(is_system).map(content).collect::<Vec<_>>().join("\n"),
            messages: messages.iter().filter(|message| !is_system(message)).map(content).collect(),
            tools: array(body, "tools").iter().map(|tool| string(&tool["function"]["name"])).collect(),
            results: results.map(content).collect(),
        }
    }

    fn pieces(&self, answer: &Answer<'_>) -> Vec<String> {
        let mut lines = Vec::new();
        for part in answer.parts {
            match part {
                Part::Text(text) => {
                    lines.extend(slices(text).into_iter().map(|slice| line(answer, &json!({ "content": slice }))));
                }
                Part::Tool { name, arguments } => {
                    let call = json!({ "function": { "name": name, "arguments": arguments } });
                    lines.push(line(answer, &json!({ "content": "", "tool_calls": [call] })));
                }
            }
        }
        lines.push(format!("{}\n", end(answer, &json!({ "role": "assistant", "content": "" }))));
        lines
    }

    fn opening(&self, answer: &Answer<'_>) -> Vec<String> {
        vec![line(answer, &json!({ "content": answer.text() }))]
    }

    fn whole(&self, answer: &Answer<'_>) -> Value {
        let calls = answer.parts.iter().filter_map(|part| match part {
            Part::Text(_) => None,
            Part::Tool { name, arguments } => Some(json!({ "function": { "name": name, "arguments": arguments } })),
        });
        let calls: Vec<Value> = calls.collect();
        end(answer, &json!({ "role": "assistant", "content": answer.text(), "tool_calls": calls }))
    }

    fn refusal(&self, _status: u16, message: &str) -> Value {
        json!({ "error": message })
    }
}

fn line(answer: &Answer<'_>, message: &Value) -> String {
    let mut message = message.clone();
    message["role"] = json!("assistant");
    format!("{}\n", json!({ "model": answer.model, "message": message, "done": false }))
}

fn end(answer: &Answer<'_>, message: &Value) -> Value {
    json!({ "model": answer.model, "message": message, "done": true, "done_reason": "stop",
        "prompt_eval_count": INPUT_TOKENS, "eval_count": OUTPUT_TOKENS })
}
