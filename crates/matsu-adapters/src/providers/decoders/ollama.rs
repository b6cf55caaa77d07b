//! Ollama: one JSON document to a line; `"done": true` ends them. Calls come whole and without ids.

use matsu_core::history::Item;
use matsu_core::ports::provider::{ModelEvent, ModelTurn, TurnEnd, Usage};
use serde_json::Value;

use super::{argument_value, call, list_at, number_at, plain_turn, show, text_at, think};
use crate::providers::refusal::{Fault, in_stream};
use crate::providers::wire::{Decoder, Progress, parse_piece};

#[derive(Default)]
pub struct OllamaDecoder {
    text: String,
    thoughts: String,
    calls: Vec<Item>,
    end: Option<TurnEnd>,
    usage: Usage,
}

impl Decoder for OllamaDecoder {
    fn feed(&mut self, data: &str, out: &mut Vec<ModelEvent>) -> Result<Progress, Fault> {
        let line = parse_piece(data)?;
        if let Some(fault) = line.get("error").and_then(in_stream) {
            return Err(fault);
        }
        if let Some(text) = text_at(&line, "/message/thinking") {
            self.thoughts.push_str(text);
            think(out, text);
        }
        if let Some(text) = text_at(&line, "/message/content") {
            self.text.push_str(text);
            show(out, text);
        }
        for piece in list_at(&line, "/message/tool_calls") {
            if let Some(name) = text_at(piece, "/function/name") {
                let id = text_at(piece, "/id").unwrap_or_default();
                self.calls.push(call(id, name, argument_value(piece.pointer("/function/arguments")), None));
            }
        }
        if line.get("done").and_then(Value::as_bool) != Some(true) {
            return Ok(Progress::More);
        }
        let usage = (number_at(&line, "/prompt_eval_count"), number_at(&line, "/eval_count"));
        self.usage = Usage { input_tokens: usage.0, output_tokens: usage.1, cached_tokens: 0 };
        self.end = Some(match text_at(&line, "/done_reason") {
            Some("length") => TurnEnd::Length,
            _ if self.calls.is_empty() => TurnEnd::Finished,
            _ => TurnEnd::ToolUse,
        });
        Ok(Progress::Complete)
    }

    fn finish(self: Box<Self>) -> Result<ModelTurn, Fault> {
        plain_turn((self.thoughts, self.text), self.calls, self.usage, self.end)
    }
}
