//! Ollama's own chat: one message per result, arguments as objects, no ids.

use matsu_core::history::{AssistantPart, CallWithResult, Entry, HistoryStep, Image, Item, UserPart, steps};
use matsu_core::ports::provider::{ModelRequest, ToolSpec};
use serde_json::{Map, Value, json};

use super::{
    attributed, is_own, legal_name, object_arguments, plain_result, put, shown_by, spoken, system_message, user_text,
};
use crate::providers::config::ProviderConfig;
use crate::providers::decoders::ollama::OllamaDecoder;
use crate::providers::schema;
use crate::providers::wire::{Decoder, Framing, Reader, Wire};

pub struct Ollama;

impl Wire for Ollama {
    fn name(&self) -> &'static str {
        "ollama"
    }

    fn base_url(&self) -> &'static str {
        "http://127.0.0.1:11434"
    }

    fn path(&self, _model: &str) -> String {
        "/api/chat".to_owned()
    }

    fn format_history(&self, history: &[Entry], reader: &Reader) -> Value {
        let mut messages: Vec<Value> = system_message(history, reader).into_iter().collect();
        for step in steps(history) {
            match &step {
                HistoryStep::User(said) => messages.push(user(said)),
                HistoryStep::Assistant { model, maker, parts } => {
                    messages.extend(assistant(&step, model, is_own(*maker, reader), parts, reader));
                    messages.extend(step.calls().map(result));
                    messages.extend(step.calls().filter_map(shown));
                }
            }
        }
        Value::Array(messages)
    }

    fn body(&self, config: &ProviderConfig, request: &ModelRequest) -> Value {
        let mut body = Map::new();
        body.insert("model".to_owned(), json!(config.model));
        body.insert("messages".to_owned(), self.format_history(&request.history, &Reader::of(config)));
        body.insert("stream".to_owned(), json!(true));
        if !request.tools.is_empty() {
            body.insert("tools".to_owned(), request.tools.iter().map(tool).collect());
        }
        put(&mut body, "format", request.output.as_ref().map(|output| output.schema.clone()));
        put(&mut body, "think", config.effort.as_ref().map(|effort| json!(effort)));
        let mut options = Map::new();
        // Without it the server cuts the history at its own small default, without an error.
        put(&mut options, "num_ctx", config.context_tokens.map(|tokens| json!(tokens)));
        put(&mut options, "num_predict", config.output_tokens.map(|tokens| json!(tokens)));
        put(&mut body, "options", (!options.is_empty()).then_some(Value::Object(options)));
        Value::Object(body)
    }

    fn image_types(&self) -> &'static [&'static str] {
        &["image/png", "image/jpeg"]
    }

    fn framing(&self) -> Framing {
        Framing::Lines
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::new(OllamaDecoder::default())
    }
}

fn user(said: &[UserPart<'_>]) -> Value {
    let text = said.iter().filter_map(user_text).collect::<Vec<_>>().join("\n\n");
    let images = said.iter().flat_map(|said| match said {
        UserPart::Image(image) => std::slice::from_ref(*image),
        UserPart::Late(call) => call.images,
        UserPart::Text(_) => &[],
    });
    user_message(&text, images)
}

fn user_message<'a>(text: &str, images: impl Iterator<Item = &'a Image>) -> Value {
    let images: Vec<Value> = images.map(|image| json!(image.data)).collect();
    let mut message = Map::new();
    message.insert("role".to_owned(), json!("user"));
    message.insert("content".to_owned(), json!(text));
    put(&mut message, "images", (!images.is_empty()).then_some(Value::Array(images)));
    Value::Object(message)
}

/// The images of a result, in a message of their own: the templates of models look for images in what a user says.
fn shown(call: &CallWithResult<'_>) -> Option<Value> {
    (!call.images.is_empty()).then(|| user_message(&shown_by(call), call.images.iter()))
}

fn assistant(
    step: &HistoryStep<'_>,
    model: &str,
    own: bool,
    parts: &[AssistantPart<'_>],
    reader: &Reader,
) -> Option<Value> {
    let (mut text, mut thoughts) = (String::new(), String::new());
    for part in parts {
        match part {
            AssistantPart::Other(Item::Thinking { text, .. }) if own => thoughts.push_str(text),
            AssistantPart::Other(item) => text.push_str(spoken(item).unwrap_or_default()),
            AssistantPart::Call(_) => {}
        }
    }
    let calls: Vec<Value> = step.calls().map(call).collect();
    if text.is_empty() && calls.is_empty() {
        return None;
    }
    let content = if text.is_empty() { String::new() } else { attributed(&text, model, reader).into_owned() };
    let mut message = Map::new();
    message.insert("role".to_owned(), json!("assistant"));
    message.insert("content".to_owned(), json!(content));
    put(&mut message, "thinking", (!thoughts.is_empty()).then(|| json!(thoughts)));
    put(&mut message, "tool_calls", (!calls.is_empty()).then_some(Value::Array(calls)));
    Some(Value::Object(message))
}

fn call(call: &CallWithResult<'_>) -> Value {
    json!({ "function": { "name": legal_name(call.name), "arguments": object_arguments(call.arguments) } })
}

fn result(call: &CallWithResult<'_>) -> Value {
    json!({ "role": "tool", "tool_name": legal_name(call.name), "content": plain_result(call) })
}

fn tool(spec: &ToolSpec) -> Value {
    let function =
        json!({ "name": spec.name, "description": spec.description, "parameters": schema::object(&spec.input) });
    json!({ "type": "function", "function": function })
}
