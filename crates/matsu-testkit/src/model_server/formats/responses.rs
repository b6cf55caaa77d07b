//! OpenAI Responses: `POST /v1/responses`, numbered events about output items.

use serde_json::{Value, json};

use super::{Answer, INPUT_TOKENS, OUTPUT_TOKENS, WireFormat, array, event, openai_refusal, slices, string, text_of};
use crate::model_server::request::{Asked, Format};
use crate::model_server::script::Part;

pub struct OpenaiResponses;

impl WireFormat for OpenaiResponses {
    fn format(&self) -> Format {
        Format::OpenaiResponses
    }

    fn claims(&self, path: &str) -> bool {
        path.ends_with("/responses")
    }

    fn asked(&self, _path: &str, body: &Value) -> Asked {
        let single = json!([{ "role": "user", "content": body["input"] }]);
        let items = if body["input"].is_string() { single.as_array() } else { body["input"].as_array() };
        let items = items.map_or(&[][..], Vec::as_slice);
        let is_system = |item: &&Value| matches!(item["role"].as_str(), Some("system" | "developer"));
        let mut system = vec![string(&body["instructions"])];
        system.extend(items.iter().filter(is_system).map(text_of));
        let results = items.iter().rev().take_while(|item| is_result(item));
        Asked {
            format: self.format(),
            model: string(&body["model"]),
            stream: body["stream"] == true,
            system: system.join("\n").trim().to_owned(),
            messages: items.iter().filter(|item| !is_system(item)).map(text_of).collect(),
            tools: tools(array(body, "tools")),
            results: results.map(text_of).collect(),
        }
    }

    fn pieces(&self, answer: &Answer<'_>) -> Vec<String> {
        let mut events = Events::begun(answer);
        for (index, part) in answer.parts.iter().enumerate() {
            match part {
                Part::Text(text) => events.text(answer, index, text),
                Part::Tool { name, arguments } => events.call(answer, index, (name, &arguments.to_string())),
            }
        }
        events.push("response.completed", json!({ "response": self.whole(answer) }));
        events.pieces
    }

    fn opening(&self, answer: &Answer<'_>) -> Vec<String> {
        let mut events = Events::begun(answer);
        let place = events.text_begun(answer, 0);
        events.push("response.output_text.delta", with(&place, &json!({ "delta": answer.text() })));
        events.pieces
    }

    fn whole(&self, answer: &Answer<'_>) -> Value {
        let output = answer.parts.iter().enumerate().map(|(index, part)| item(answer, index, part));
        let usage = json!({ "input_tokens": INPUT_TOKENS, "input_tokens_details": { "cached_tokens": 0 },
            "output_tokens": OUTPUT_TOKENS, "output_tokens_details": { "reasoning_tokens": 0 },
            "total_tokens": INPUT_TOKENS + OUTPUT_TOKENS });
        let mut response = response(answer, "completed");
        response["output"] = output.collect();
        response["usage"] = usage;
        response
    }

    fn refusal(&self, status: u16, message: &str) -> Value {
        openai_refusal(status, message)
    }
}

fn is_result(item: &Value) -> bool {
    item["type"].as_str().is_some_and(|kind| kind.ends_with("_call_output"))
}

/// Tools lie flat or in namespaces.
fn tools(list: &[Value]) -> Vec<String> {
    list.iter()
        .flat_map(|tool| match (tool["name"].as_str(), tool["tools"].as_array()) {
            (Some(space), Some(inner)) => tools(inner).into_iter().map(|name| format!("{space}/{name}")).collect(),
            (Some(name), None) => vec![name.to_owned()],
            _ => vec![string(&tool["type"])],
        })
        .collect()
}

fn response(answer: &Answer<'_>, status: &str) -> Value {
    json!({ "id": answer.id("resp"), "object": "response", "created_at": 1_700_000_000, "status": status,
        "model": answer.model, "output": [], "error": null, "incomplete_details": null, "usage": null,
        "parallel_tool_calls": false, "tool_choice": "auto", "tools": [], "metadata": {} })
}

fn item(answer: &Answer<'_>, index: usize, part: &Part) -> Value {
    match part {
        Part::Text(text) => json!({ "id": answer.part_id("msg", index), "type": "message", "role": "assistant",
            "status": "completed", "content": [{ "type": "output_text", "text": text, "annotations": [] }] }),
        Part::Tool { name, arguments } => call_item(answer, index, (name, &arguments.to_string()), "completed"),
    }
}

/// A tool in a namespace is written `namespace/name` in scripts.
fn call_item(answer: &Answer<'_>, index: usize, (name, arguments): (&str, &str), status: &str) -> Value {
    let mut item = json!({ "id": answer.part_id("fc", index), "type": "function_call", "status": status,
        "call_id": answer.part_id("call", index), "name": name, "arguments": arguments });
    if let Some((space, name)) = name.split_once('/') {
        item["namespace"] = json!(space);
        item["name"] = json!(name);
    }
    item
}

fn with(place: &Value, more: &Value) -> Value {
    let mut all = place.clone();
    for (key, value) in more.as_object().into_iter().flatten() {
        all[key] = value.clone();
    }
    all
}

struct Events {
    pieces: Vec<String>,
}

impl Events {
    fn begun(answer: &Answer<'_>) -> Self {
        let mut events = Self { pieces: Vec::new() };
        for name in ["response.created", "response.in_progress"] {
            events.push(name, json!({ "response": response(answer, "in_progress") }));
        }
        events
    }

    fn push(&mut self, name: &str, mut data: Value) {
        data["type"] = json!(name);
        data["sequence_number"] = json!(self.pieces.len());
        self.pieces.push(event(name, &data));
    }

    /// Where the text of this item goes.
    fn text_begun(&mut self, answer: &Answer<'_>, index: usize) -> Value {
        let id = answer.part_id("msg", index);
        let item = json!({ "id": id, "type": "message", "role": "assistant", "status": "in_progress", "content": [] });
        self.push("response.output_item.added", json!({ "output_index": index, "item": item }));
        let place = json!({ "item_id": id, "output_index": index, "content_index": 0 });
        let part = json!({ "part": { "type": "output_text", "text": "", "annotations": [] } });
        self.push("response.content_part.added", with(&place, &part));
        place
    }

    fn text(&mut self, answer: &Answer<'_>, index: usize, text: &str) {
        let place = self.text_begun(answer, index);
        for slice in slices(text) {
            self.push("response.output_text.delta", with(&place, &json!({ "delta": slice })));
        }
        self.push("response.output_text.done", with(&place, &json!({ "text": text })));
        let part = json!({ "part": { "type": "output_text", "text": text, "annotations": [] } });
        self.push("response.content_part.done", with(&place, &part));
        let item = item(answer, index, &Part::Text(text.to_owned()));
        self.push("response.output_item.done", json!({ "output_index": index, "item": item }));
    }

    fn call(&mut self, answer: &Answer<'_>, index: usize, call: (&str, &str)) {
        let begun = call_item(answer, index, (call.0, ""), "in_progress");
        self.push("response.output_item.added", json!({ "output_index": index, "item": begun }));
        let place = json!({ "item_id": answer.part_id("fc", index), "output_index": index });
        for slice in slices(call.1) {
            self.push("response.function_call_arguments.delta", with(&place, &json!({ "delta": slice })));
        }
        self.push("response.function_call_arguments.done", with(&place, &json!({ "arguments": call.1 })));
        let done = call_item(answer, index, call, "completed");
        self.push("response.output_item.done", json!({ "output_index": index, "item": done }));
    }
}
