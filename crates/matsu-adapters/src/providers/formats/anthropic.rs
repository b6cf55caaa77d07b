//! Anthropic messages: turns alternate, results of one round share one message, thoughts go back signed.

use matsu_core::history::{AssistantPart, CallWithResult, Entry, HistoryStep, Image, Item, UserPart, steps};
use matsu_core::ports::provider::{ModelRequest, ToolSpec};
use serde_json::{Map, Value, json};

use super::{
    attributed, instructions, is_own, legal_name, object_arguments, push_merged, put, shown_by, spoken, user_parts,
};
use crate::providers::config::ProviderConfig;
use crate::providers::decoders::anthropic::AnthropicDecoder;
use crate::providers::schema;
use crate::providers::wire::{Decoder, Framing, Reader, Wire};

pub struct Anthropic;

impl Wire for Anthropic {
    fn name(&self) -> &'static str {
        "anthropic"
    }

    fn base_url(&self) -> &'static str {
        "https://api.anthropic.com"
    }

    fn path(&self, _model: &str) -> String {
        "/v1/messages".to_owned()
    }

    fn key_header(&self) -> (&'static str, &'static str) {
        ("x-api-key", "")
    }

    fn headers(&self) -> &'static [(&'static str, &'static str)] {
        &[("anthropic-version", "2023-06-01")]
    }

    fn format_history(&self, history: &[Entry], reader: &Reader) -> Value {
        let mut messages = Vec::new();
        for step in steps(history) {
            match &step {
                HistoryStep::User(said) => push_merged(&mut messages, "user", "content", user(said)),
                HistoryStep::Assistant { model, maker, parts } => {
                    if messages.is_empty() {
                        // The first word must be the user's.
                        push_merged(&mut messages, "user", "content", vec![text("(The conversation goes on.)")]);
                    }
                    let own = is_own(*maker, reader);
                    let blocks = parts.iter().filter_map(|part| assistant(part, model, own, reader)).collect();
                    push_merged(&mut messages, "assistant", "content", blocks);
                    // All results come before anything else.
                    let shown = step.calls().filter(|call| call.is_error).flat_map(shown_with_error);
                    let results = step.calls().map(result).chain(shown).collect();
                    push_merged(&mut messages, "user", "content", results);
                }
            }
        }
        Value::Array(messages)
    }

    fn body(&self, config: &ProviderConfig, request: &ModelRequest) -> Value {
        let reader = Reader::of(config);
        let mut body = Map::new();
        body.insert("model".to_owned(), json!(config.model));
        body.insert("max_tokens".to_owned(), json!(config.limits().output_tokens));
        body.insert("messages".to_owned(), self.format_history(&request.history, &reader));
        body.insert("stream".to_owned(), json!(true));
        put(&mut body, "system", instructions(&request.history, &reader).map(Value::String));
        if !request.tools.is_empty() {
            body.insert("tools".to_owned(), request.tools.iter().map(tool).collect());
        }
        let mut output = Map::new();
        put(&mut output, "effort", config.effort.as_ref().map(|effort| json!(effort)));
        let format = request.output.as_ref().map(|shape| json!({ "type": "json_schema", "schema": shape.schema }));
        put(&mut output, "format", format);
        put(&mut body, "output_config", (!output.is_empty()).then_some(Value::Object(output)));
        Value::Object(body)
    }

    fn framing(&self) -> Framing {
        Framing::ServerSentEvents
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::new(AnthropicDecoder::default())
    }
}

fn text(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

fn user(said: &[UserPart<'_>]) -> Vec<Value> {
    user_parts(said, text, image)
}

fn image(image: &Image) -> Value {
    let source = json!({ "type": "base64", "media_type": image.media_type, "data": image.data });
    json!({ "type": "image", "source": source })
}

fn assistant(part: &AssistantPart<'_>, model: &str, own: bool, reader: &Reader) -> Option<Value> {
    match part {
        AssistantPart::Call(call) => {
            let input = object_arguments(call.arguments);
            Some(json!({ "type": "tool_use", "id": call.id, "name": legal_name(call.name), "input": input }))
        }
        AssistantPart::Other(Item::Thinking { native: Some(native), .. }) if own => Some(native.clone()),
        AssistantPart::Other(Item::Thinking { text, signature: Some(signature), .. }) if own => {
            Some(json!({ "type": "thinking", "thinking": text, "signature": signature }))
        }
        AssistantPart::Other(item) => spoken(item).map(|words| text(&attributed(words, model, reader))),
    }
}

fn result(call: &CallWithResult<'_>) -> Value {
    let content = if call.images.is_empty() || call.is_error {
        json!(call.result)
    } else {
        // A text without words is refused.
        let words = (!call.result.trim().is_empty()).then(|| text(call.result));
        words.into_iter().chain(call.images.iter().map(image)).collect()
    };
    let mut block = json!({ "type": "tool_result", "tool_use_id": call.id, "content": content });
    if call.is_error
        && let Some(fields) = block.as_object_mut()
    {
        fields.insert("is_error".to_owned(), json!(true));
    }
    block
}

/// A result that is an error holds nothing but text; its images come after it.
fn shown_with_error(call: &CallWithResult<'_>) -> Vec<Value> {
    if call.images.is_empty() {
        return Vec::new();
    }
    [text(&shown_by(call))].into_iter().chain(call.images.iter().map(image)).collect()
}

fn tool(spec: &ToolSpec) -> Value {
    json!({ "name": spec.name, "description": spec.description, "input_schema": schema::object(&spec.input) })
}
