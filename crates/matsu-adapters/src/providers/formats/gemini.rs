//! Gemini: `functionCall` and `functionResponse` parts. A response is always an object, whatever the tool returned.

use matsu_core::history::{AssistantPart, CallWithResult, Entry, HistoryStep, Image, Item, UserPart, steps};
use matsu_core::ports::provider::{ModelRequest, ToolSpec};
use serde_json::{Map, Value, json};

use super::{
    attributed, instructions, is_own, legal_name, object_arguments, push_merged, put, shown_by, spoken, user_parts,
};
use crate::providers::config::ProviderConfig;
use crate::providers::decoders::gemini::GeminiDecoder;
use crate::providers::schema;
use crate::providers::wire::{Decoder, Framing, Reader, Wire};

pub struct Gemini;

/// The vendor's own placeholder for calls that its model did not make.
const NO_SIGNATURE: &str = "skip_thought_signature_validator";

impl Wire for Gemini {
    fn name(&self) -> &'static str {
        "gemini"
    }

    fn base_url(&self) -> &'static str {
        "https://generativelanguage.googleapis.com"
    }

    fn path(&self, model: &str) -> String {
        let is_whole = ["models/", "tunedModels/"].iter().any(|place| model.starts_with(place));
        let model = if is_whole { model.to_owned() } else { format!("models/{model}") };
        format!("/v1beta/{model}:streamGenerateContent?alt=sse")
    }

    /// A header, not the query: addresses end up in logs.
    fn key_header(&self) -> (&'static str, &'static str) {
        ("x-goog-api-key", "")
    }

    fn format_history(&self, history: &[Entry], reader: &Reader) -> Value {
        let mut contents = Vec::new();
        for step in steps(history) {
            match &step {
                HistoryStep::User(said) => push_merged(&mut contents, "user", "parts", user(said)),
                HistoryStep::Assistant { model, maker, parts } => {
                    let own = is_own(*maker, reader);
                    let mut sent: Vec<Value> =
                        parts.iter().filter_map(|part| assistant(part, model, own, reader)).collect();
                    sign_first_call(&mut sent, reader);
                    push_merged(&mut contents, "model", "parts", sent);
                    let shown = step.calls().flat_map(shown);
                    let answers = step.calls().map(function_response).chain(shown).collect();
                    push_merged(&mut contents, "user", "parts", answers);
                }
            }
        }
        Value::Array(contents)
    }

    fn body(&self, config: &ProviderConfig, request: &ModelRequest) -> Value {
        let reader = Reader::of(config);
        let mut body = Map::new();
        body.insert("contents".to_owned(), self.format_history(&request.history, &reader));
        let system = instructions(&request.history, &reader);
        put(&mut body, "systemInstruction", system.map(|text| json!({ "parts": [{ "text": text }] })));
        if !request.tools.is_empty() {
            let declarations: Vec<Value> = request.tools.iter().map(|spec| tool(spec, &config.model)).collect();
            body.insert("tools".to_owned(), json!([{ "functionDeclarations": declarations }]));
        }
        let mut generation = Map::new();
        put(&mut generation, "maxOutputTokens", config.output_tokens.map(|tokens| json!(tokens)));
        let effort = config.effort.as_ref().map(|effort| json!({ "thinkingLevel": effort }));
        put(&mut generation, "thinkingConfig", effort);
        if let Some(output) = &request.output {
            generation.insert("responseMimeType".to_owned(), json!("application/json"));
            generation.insert("responseJsonSchema".to_owned(), output.schema.clone());
        }
        put(&mut body, "generationConfig", (!generation.is_empty()).then_some(Value::Object(generation)));
        Value::Object(body)
    }

    fn image_types(&self) -> &'static [&'static str] {
        &["image/png", "image/jpeg", "image/webp"]
    }

    fn framing(&self) -> Framing {
        Framing::ServerSentEvents
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::new(GeminiDecoder::default())
    }
}

fn user(said: &[UserPart<'_>]) -> Vec<Value> {
    user_parts(said, |words| json!({ "text": words }), image)
}

fn image(image: &Image) -> Value {
    json!({ "inlineData": { "mimeType": image.media_type, "data": image.data } })
}

/// The images of a result, beside it: models before the third generation refuse them inside.
fn shown(call: &CallWithResult<'_>) -> Vec<Value> {
    if call.images.is_empty() {
        return Vec::new();
    }
    [json!({ "text": shown_by(call) })].into_iter().chain(call.images.iter().map(image)).collect()
}

fn assistant(part: &AssistantPart<'_>, model: &str, own: bool, reader: &Reader) -> Option<Value> {
    let (mut sent, signature) = match part {
        AssistantPart::Call(call) => {
            let args = object_arguments(call.arguments);
            let function = json!({ "id": call.id, "name": legal_name(call.name), "args": args });
            (json!({ "functionCall": function }), call.signature)
        }
        // A signature may stand on a part without words.
        AssistantPart::Other(Item::Text { text, signature: Some(signature) }) if own => {
            (json!({ "text": text }), Some(signature.as_str()))
        }
        AssistantPart::Other(item) => (json!({ "text": attributed(spoken(item)?, model, reader) }), None),
    };
    if let (true, Some(signature), Some(fields)) = (own, signature, sent.as_object_mut()) {
        fields.insert("thoughtSignature".to_owned(), json!(signature));
    }
    Some(sent)
}

/// Models from the third generation on refuse a round of calls whose first call bears no signature.
fn sign_first_call(parts: &mut [Value], reader: &Reader) {
    if ["gemini-1", "gemini-2"].iter().any(|old| reader.maker.model.contains(old)) {
        return;
    }
    let first = parts.iter_mut().find(|part| part.get("functionCall").is_some());
    if let Some(Value::Object(fields)) = first {
        fields.entry("thoughtSignature").or_insert_with(|| json!(NO_SIGNATURE));
    }
}

fn function_response(call: &CallWithResult<'_>) -> Value {
    let response = match (call.is_error, serde_json::from_str::<Value>(call.result)) {
        (true, _) => json!({ "error": call.result }),
        (false, Ok(object @ Value::Object(_))) => object,
        (false, Ok(other)) => json!({ "result": other }),
        (false, Err(_)) => json!({ "result": call.result }),
    };
    json!({ "functionResponse": { "id": call.id, "name": legal_name(call.name), "response": response } })
}

/// Models before 2.5 know only a few words of JSON Schema, in a field of its own.
fn tool(spec: &ToolSpec, model: &str) -> Value {
    let is_old = model.contains("gemini-1") || model.contains("gemini-2.0");
    let (field, input) = if is_old {
        ("parameters", schema::openapi_subset(&spec.input))
    } else {
        ("parametersJsonSchema", schema::object(&spec.input))
    };
    json!({ "name": spec.name, "description": spec.description, field: input })
}
