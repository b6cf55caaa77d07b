//! OpenAI chat completions, and all services with the same interface: `role: "tool"` with `tool_call_id`.

use matsu_core::history::{AssistantPart, CallWithResult, Entry, HistoryStep, Image, Item, UserPart, steps};
use matsu_core::ports::provider::{ModelRequest, ToolSpec};
use serde_json::{Map, Value, json};

use super::{
    attributed, data_url, is_own, legal_name, object_arguments, plain_result, put, shown_by, spoken, system_message,
    user_parts, user_text,
};
use crate::providers::config::ProviderConfig;
use crate::providers::decoders::openai_chat::OpenAiChatDecoder;
use crate::providers::schema;
use crate::providers::wire::{Decoder, Framing, Reader, Wire};

pub struct OpenAiChat;

impl Wire for OpenAiChat {
    fn name(&self) -> &'static str {
        "openai_chat"
    }

    fn base_url(&self) -> &'static str {
        "https://api.openai.com/v1"
    }

    fn path(&self, _model: &str) -> String {
        "/chat/completions".to_owned()
    }

    fn format_history(&self, history: &[Entry], reader: &Reader) -> Value {
        let mut messages: Vec<Value> = system_message(history, reader).into_iter().collect();
        for step in steps(history) {
            match &step {
                HistoryStep::User(said) => messages.extend(user(said)),
                HistoryStep::Assistant { model, parts, .. } => {
                    messages.extend(assistant(&step, model, parts, reader));
                    messages.extend(step.calls().map(result));
                    messages.extend(shown(&step));
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
        body.insert("stream_options".to_owned(), json!({ "include_usage": true }));
        if !request.tools.is_empty() {
            body.insert("tools".to_owned(), request.tools.iter().map(tool).collect());
        }
        // OpenAI renamed the field; services that imitate it mostly know the old name.
        let bound = if config.base_url.is_none() { "max_completion_tokens" } else { "max_tokens" };
        put(&mut body, bound, config.output_tokens.map(|tokens| json!(tokens)));
        put(&mut body, "reasoning_effort", config.effort.as_ref().map(|effort| json!(effort)));
        put(
            &mut body,
            "response_format",
            request.output.as_ref().map(|output| {
                let strict = schema::is_strict(&output.schema);
                let shape = json!({ "name": output.name, "schema": output.schema, "strict": strict });
                json!({ "type": "json_schema", "json_schema": shape })
            }),
        );
        Value::Object(body)
    }

    fn framing(&self) -> Framing {
        Framing::ServerSentEvents
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::new(OpenAiChatDecoder::default())
    }
}

fn user(said: &[UserPart<'_>]) -> Option<Value> {
    let has_image = |said: &UserPart<'_>| match said {
        UserPart::Image(_) => true,
        UserPart::Late(call) => !call.images.is_empty(),
        UserPart::Text(_) => false,
    };
    if !said.iter().any(has_image) {
        let text = said.iter().filter_map(user_text).collect::<Vec<_>>().join("\n\n");
        return (!text.is_empty()).then(|| json!({ "role": "user", "content": text }));
    }
    Some(json!({ "role": "user", "content": user_parts(said, text, image) }))
}

fn text(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

fn image(image: &Image) -> Value {
    json!({ "type": "image_url", "image_url": { "url": data_url(image) } })
}

/// The images of results, in a message after them: a result itself holds text only in this format.
fn shown(step: &HistoryStep<'_>) -> Option<Value> {
    let calls = step.calls().filter(|call| !call.images.is_empty());
    let parts: Vec<Value> =
        calls.flat_map(|call| [text(&shown_by(call))].into_iter().chain(call.images.iter().map(image))).collect();
    (!parts.is_empty()).then(|| json!({ "role": "user", "content": parts }))
}

fn assistant(step: &HistoryStep<'_>, model: &str, parts: &[AssistantPart<'_>], reader: &Reader) -> Option<Value> {
    let texts = parts.iter().filter_map(|part| match part {
        AssistantPart::Other(item) => spoken(item),
        AssistantPart::Call(_) => None,
    });
    let text = texts.collect::<Vec<_>>().concat();
    let calls: Vec<Value> = step.calls().map(call).collect();
    if text.is_empty() && calls.is_empty() {
        return None;
    }
    let content = if text.is_empty() { Value::Null } else { json!(attributed(&text, model, reader)) };
    let mut message = Map::new();
    message.insert("role".to_owned(), json!("assistant"));
    message.insert("content".to_owned(), content);
    put(&mut message, "tool_calls", (!calls.is_empty()).then_some(Value::Array(calls)));
    put(&mut message, "reasoning_content", thoughts(step, reader).map(Value::String));
    Some(Value::Object(message))
}

/// Some vendors of this format want to see again what their model thought before it called a tool. OpenAI itself
/// sends no thoughts in this format, and so gets none back.
fn thoughts(step: &HistoryStep<'_>, reader: &Reader) -> Option<String> {
    let HistoryStep::Assistant { maker, parts, .. } = step else { return None };
    if !is_own(*maker, reader) || step.calls().next().is_none() {
        return None;
    }
    let texts = parts.iter().filter_map(|part| match part {
        AssistantPart::Other(Item::Thinking { text, .. }) => Some(text.as_str()),
        _ => None,
    });
    Some(texts.collect::<Vec<_>>().concat()).filter(|text| !text.is_empty())
}

fn call(call: &CallWithResult<'_>) -> Value {
    let function = json!({ "name": legal_name(call.name), "arguments": object_arguments(call.arguments).to_string() });
    json!({ "id": call.id, "type": "function", "function": function })
}

fn result(call: &CallWithResult<'_>) -> Value {
    json!({ "role": "tool", "tool_call_id": call.id, "content": plain_result(call) })
}

fn tool(spec: &ToolSpec) -> Value {
    let function =
        json!({ "name": spec.name, "description": spec.description, "parameters": schema::object(&spec.input) });
    json!({ "type": "function", "function": function })
}
