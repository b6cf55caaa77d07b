//! OpenAI responses: a flat list of items. Nothing is stored at the vendor; sealed reasoning goes back to its maker.

use matsu_core::history::{AssistantPart, CallWithResult, Entry, HistoryStep, Image, Item, UserPart, steps};
use matsu_core::ports::provider::{ModelRequest, ToolSpec};
use serde_json::{Map, Value, json};

use super::{
    attributed, data_url, instructions, is_own, legal_name, object_arguments, plain_result, put, spoken, user_parts,
};
use crate::providers::config::ProviderConfig;
use crate::providers::decoders::openai_responses::OpenAiResponsesDecoder;
use crate::providers::schema;
use crate::providers::wire::{Decoder, Framing, Reader, Wire};

pub struct OpenAiResponses;

/// Families that reason; others may refuse to be asked for their sealed thoughts.
const REASONING: &[&str] = &["o1", "o3", "o4", "gpt-5", "gpt-6", "codex"];

impl Wire for OpenAiResponses {
    fn name(&self) -> &'static str {
        "openai"
    }

    fn base_url(&self) -> &'static str {
        "https://api.openai.com/v1"
    }

    fn path(&self, _model: &str) -> String {
        "/responses".to_owned()
    }

    fn format_history(&self, history: &[Entry], reader: &Reader) -> Value {
        let mut items = Vec::new();
        for step in steps(history) {
            match &step {
                HistoryStep::User(said) => items.extend(user(said)),
                HistoryStep::Assistant { model, maker, parts } => {
                    let own = is_own(*maker, reader);
                    items.extend(parts.iter().filter_map(|part| assistant(part, model, own, reader)));
                    items.extend(step.calls().map(result));
                }
            }
        }
        Value::Array(items)
    }

    fn body(&self, config: &ProviderConfig, request: &ModelRequest) -> Value {
        let reader = Reader::of(config);
        let mut body = Map::new();
        body.insert("model".to_owned(), json!(config.model));
        body.insert("input".to_owned(), self.format_history(&request.history, &reader));
        body.insert("stream".to_owned(), json!(true));
        body.insert("store".to_owned(), json!(false));
        put(&mut body, "instructions", instructions(&request.history, &reader).map(Value::String));
        if !request.tools.is_empty() {
            body.insert("tools".to_owned(), request.tools.iter().map(tool).collect());
        }
        put(&mut body, "max_output_tokens", config.output_tokens.map(|tokens| json!(tokens)));
        put(&mut body, "reasoning", config.effort.as_ref().map(|effort| json!({ "effort": effort })));
        if config.effort.is_some() || REASONING.iter().any(|family| config.model.starts_with(family)) {
            body.insert("include".to_owned(), json!(["reasoning.encrypted_content"]));
        }
        put(
            &mut body,
            "text",
            request.output.as_ref().map(|output| {
                let strict = schema::is_strict(&output.schema);
                let format =
                    json!({ "type": "json_schema", "name": output.name, "schema": output.schema, "strict": strict });
                json!({ "format": format })
            }),
        );
        Value::Object(body)
    }

    fn framing(&self) -> Framing {
        Framing::ServerSentEvents
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::new(OpenAiResponsesDecoder::default())
    }
}

fn user(said: &[UserPart<'_>]) -> Option<Value> {
    let parts = user_parts(said, text, image);
    (!parts.is_empty()).then(|| json!({ "type": "message", "role": "user", "content": parts }))
}

fn text(text: &str) -> Value {
    json!({ "type": "input_text", "text": text })
}

fn image(image: &Image) -> Value {
    json!({ "type": "input_image", "image_url": data_url(image) })
}

fn assistant(part: &AssistantPart<'_>, model: &str, own: bool, reader: &Reader) -> Option<Value> {
    match part {
        AssistantPart::Call(call) => Some(json!({
            "type": "function_call",
            "call_id": call.id,
            "name": legal_name(call.name),
            "arguments": object_arguments(call.arguments).to_string(),
        })),
        // Without its seal a thought cannot be shown to a vendor that stored nothing.
        AssistantPart::Other(Item::Thinking { native: Some(native), .. })
            if own && native.get("encrypted_content").is_some_and(Value::is_string) =>
        {
            Some(native.clone())
        }
        AssistantPart::Other(item) => spoken(item).map(|text| {
            let content = json!([{ "type": "output_text", "text": attributed(text, model, reader) }]);
            json!({ "type": "message", "role": "assistant", "content": content })
        }),
    }
}

fn result(call: &CallWithResult<'_>) -> Value {
    let words = plain_result(call);
    let output = if call.images.is_empty() {
        Value::String(words)
    } else {
        [text(&words)].into_iter().chain(call.images.iter().map(image)).collect()
    };
    json!({ "type": "function_call_output", "call_id": call.id, "output": output })
}

fn tool(spec: &ToolSpec) -> Value {
    json!({
        "type": "function",
        "name": spec.name,
        "description": spec.description,
        "parameters": schema::object(&spec.input),
        "strict": false,
    })
}
