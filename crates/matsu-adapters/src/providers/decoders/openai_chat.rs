//! Chat completions: deltas until a `finish_reason`. `[DONE]` is neither needed nor enough.

use matsu_core::ports::provider::{ModelEvent, ModelTurn, TurnEnd, Usage};
use serde_json::Value;

use super::slots::Slots;
use super::{list_at, number_at, plain_turn, show, text_at, think};
use crate::providers::refusal::{Fault, in_stream};
use crate::providers::wire::{Decoder, Progress, parse_piece};

#[derive(Default)]
pub struct OpenAiChatDecoder {
    text: String,
    thoughts: String,
    slots: Slots,
    end: Option<TurnEnd>,
    usage: Usage,
}

impl Decoder for OpenAiChatDecoder {
    fn feed(&mut self, data: &str, out: &mut Vec<ModelEvent>) -> Result<Progress, Fault> {
        if data.trim() == "[DONE]" {
            return Ok(Progress::Complete);
        }
        let chunk = parse_piece(data)?;
        if let Some(fault) = chunk.get("error").and_then(in_stream) {
            return Err(fault);
        }
        if let Some(usage) = chunk.get("usage").filter(|usage| usage.is_object()) {
            self.usage = Usage {
                input_tokens: number_at(usage, "/prompt_tokens"),
                output_tokens: number_at(usage, "/completion_tokens"),
                cached_tokens: number_at(usage, "/prompt_tokens_details/cached_tokens"),
            };
        }
        let Some(choice) = list_at(&chunk, "/choices").first() else { return Ok(Progress::More) };
        self.take_delta(choice, out);
        match text_at(choice, "/finish_reason") {
            None => {}
            Some("length") => self.end = Some(TurnEnd::Length),
            Some("content_filter") => self.end = Some(TurnEnd::Refused),
            Some("tool_calls" | "function_call") => self.end = Some(TurnEnd::ToolUse),
            // A refusal in words was already seen.
            Some(_) => self.end = self.end.or(Some(TurnEnd::Finished)),
        }
        Ok(Progress::More)
    }

    fn finish(self: Box<Self>) -> Result<ModelTurn, Fault> {
        plain_turn((self.thoughts, self.text), self.slots.into_items(), self.usage, self.end)
    }
}

impl OpenAiChatDecoder {
    fn take_delta(&mut self, choice: &Value, out: &mut Vec<ModelEvent>) {
        // Some gateways send a whole message instead of deltas.
        let Some(delta) = choice.get("delta").filter(|delta| delta.is_object()).or_else(|| choice.get("message"))
        else {
            return;
        };
        for field in ["/reasoning_content", "/reasoning"] {
            if let Some(text) = text_at(delta, field) {
                self.thoughts.push_str(text);
                think(out, text);
                break;
            }
        }
        if let Some(text) = text_at(delta, "/content") {
            self.text.push_str(text);
            show(out, text);
        }
        if let Some(text) = text_at(delta, "/refusal") {
            self.text.push_str(text);
            show(out, text);
            self.end = Some(TurnEnd::Refused).filter(|_| self.end.is_some());
        }
        for piece in list_at(delta, "/tool_calls") {
            self.slots.feed(piece);
        }
    }
}
