//! Gemini: whole responses, each with some parts; a `finishReason` ends them. Calls often come without an id.

use matsu_core::history::Item;
use matsu_core::ports::provider::{ModelEvent, ModelTurn, ProviderFault, TurnEnd, Usage};
use serde_json::Value;

use super::{argument_value, call, list_at, number_at, show, text_at, think};
use crate::providers::refusal::{Fault, in_stream};
use crate::providers::wire::{Decoder, Progress, parse_piece};

#[derive(Default)]
pub struct GeminiDecoder {
    items: Vec<Item>,
    end: Option<TurnEnd>,
    usage: Usage,
}

impl Decoder for GeminiDecoder {
    fn feed(&mut self, data: &str, out: &mut Vec<ModelEvent>) -> Result<Progress, Fault> {
        let chunk = parse_piece(data)?;
        if let Some(fault) = chunk.get("error").and_then(in_stream) {
            return Err(fault);
        }
        if let Some(reason) = text_at(&chunk, "/promptFeedback/blockReason") {
            return Err(Fault::new(ProviderFault::Refused, format!("the prompt was blocked: {reason}")));
        }
        if let Some(usage) = chunk.get("usageMetadata").filter(|usage| usage.is_object()) {
            let thoughts = number_at(usage, "/thoughtsTokenCount");
            self.usage = Usage {
                input_tokens: number_at(usage, "/promptTokenCount"),
                output_tokens: number_at(usage, "/candidatesTokenCount").saturating_add(thoughts),
                cached_tokens: number_at(usage, "/cachedContentTokenCount"),
            };
        }
        let Some(candidate) = list_at(&chunk, "/candidates").first() else { return Ok(Progress::More) };
        for part in list_at(candidate, "/content/parts") {
            self.take(part, out);
        }
        if let Some(reason) = text_at(candidate, "/finishReason") {
            self.end = Some(end(reason)?);
        }
        // The counts may come after the reason, so the stream is read to its end.
        Ok(Progress::More)
    }

    fn finish(self: Box<Self>) -> Result<ModelTurn, Fault> {
        let Some(end) = self.end else { return Err(Fault::truncated()) };
        let calls = self.items.iter().any(|item| matches!(item, Item::ToolCall { .. }));
        let end = if calls && end == TurnEnd::Finished { TurnEnd::ToolUse } else { end };
        Ok(ModelTurn { items: self.items, usage: self.usage, end })
    }
}

fn end(reason: &str) -> Result<TurnEnd, Fault> {
    match reason {
        "MAX_TOKENS" => Ok(TurnEnd::Length),
        "SAFETY" | "RECITATION" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII" | "LANGUAGE" | "IMAGE_SAFETY" => {
            Ok(TurnEnd::Refused)
        }
        "MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL" => {
            Err(Fault::new(ProviderFault::Truncated, format!("the model's tool call was malformed ({reason})")))
        }
        _ => Ok(TurnEnd::Finished),
    }
}

impl GeminiDecoder {
    fn take(&mut self, part: &Value, out: &mut Vec<ModelEvent>) {
        let signature = text_at(part, "/thoughtSignature").map(str::to_owned);
        if let Some(function) = part.get("functionCall") {
            let id = text_at(function, "/id").unwrap_or_default();
            if let Some(name) = text_at(function, "/name") {
                self.items.push(call(id, name, argument_value(function.get("args")), signature));
            }
            return;
        }
        let Some(text) = text_at(part, "/text") else { return };
        if part.get("thought").and_then(Value::as_bool) == Some(true) {
            think(out, text);
            match self.items.last_mut() {
                Some(Item::Thinking { text: before, .. }) => before.push_str(text),
                _ => self.items.push(Item::Thinking { text: text.to_owned(), signature: None, native: None }),
            }
            return;
        }
        show(out, text);
        match self.items.last_mut() {
            // A signature seals exactly its own part, so nothing is added to a signed one.
            Some(Item::Text { text: before, signature: None }) if signature.is_none() => before.push_str(text),
            _ if text.is_empty() && signature.is_none() => {}
            _ => self.items.push(Item::Text { text: text.to_owned(), signature }),
        }
    }
}
