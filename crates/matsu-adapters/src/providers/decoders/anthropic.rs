//! Messages: numbered blocks that begin, grow and stop; `message_stop` ends them.

use std::collections::BTreeMap;

use matsu_core::history::Item;
use matsu_core::ports::provider::{ModelEvent, ModelTurn, TurnEnd, Usage};
use serde_json::Value;

use super::{argument_value, arguments, call, number_at, show, text_at, think};
use crate::providers::refusal::{Fault, in_stream};
use crate::providers::wire::{Decoder, Progress, parse_piece};

enum Block {
    Text(String),
    Thinking {
        text: String,
        signature: String,
    },
    /// A thought that only its maker can read.
    Sealed(Value),
    Call {
        id: String,
        name: String,
        whole: Value,
        pieces: String,
    },
}

#[derive(Default)]
pub struct AnthropicDecoder {
    blocks: BTreeMap<u64, Block>,
    end: Option<TurnEnd>,
    stopped: bool,
    usage: Usage,
}

impl Decoder for AnthropicDecoder {
    fn feed(&mut self, data: &str, out: &mut Vec<ModelEvent>) -> Result<Progress, Fault> {
        let event = parse_piece(data)?;
        let index = number_at(&event, "/index");
        match text_at(&event, "/type").unwrap_or_default() {
            "message_start" => self.count(event.pointer("/message/usage")),
            "content_block_start" => {
                if let Some(block) = event.get("content_block").and_then(|block| begin(block, out)) {
                    self.blocks.insert(index, block);
                }
            }
            "content_block_delta" => self.grow(index, &event, out),
            "message_delta" => {
                self.count(event.get("usage"));
                self.end = text_at(&event, "/delta/stop_reason").map(end).or(self.end);
            }
            "message_stop" => {
                self.stopped = true;
                return Ok(Progress::Complete);
            }
            "error" => {
                let fault = event.get("error").and_then(in_stream);
                return Err(fault.unwrap_or_else(|| Fault::protocol("an error without a message")));
            }
            _ => {}
        }
        Ok(Progress::More)
    }

    fn finish(self: Box<Self>) -> Result<ModelTurn, Fault> {
        if !self.stopped {
            return Err(Fault::truncated());
        }
        let items = self.blocks.into_values().filter_map(Block::into_item).collect();
        Ok(ModelTurn { items, usage: self.usage, end: self.end.unwrap_or(TurnEnd::Finished) })
    }
}

fn end(reason: &str) -> TurnEnd {
    match reason {
        "tool_use" => TurnEnd::ToolUse,
        "max_tokens" | "model_context_window_exceeded" => TurnEnd::Length,
        "refusal" => TurnEnd::Refused,
        _ => TurnEnd::Finished,
    }
}

fn begin(block: &Value, out: &mut Vec<ModelEvent>) -> Option<Block> {
    let text = |name: &str| text_at(block, name).unwrap_or_default().to_owned();
    match text_at(block, "/type")? {
        "text" => {
            show(out, &text("/text"));
            Some(Block::Text(text("/text")))
        }
        "thinking" => Some(Block::Thinking { text: text("/thinking"), signature: text("/signature") }),
        "redacted_thinking" => Some(Block::Sealed(block.clone())),
        "tool_use" => Some(Block::Call {
            id: text("/id"),
            name: text("/name"),
            whole: argument_value(block.get("input")),
            pieces: String::new(),
        }),
        _ => None,
    }
}

impl AnthropicDecoder {
    /// Counts come in two events, and each holds what the other leaves out.
    fn count(&mut self, usage: Option<&Value>) {
        let Some(usage) = usage else { return };
        let (read, written) =
            (number_at(usage, "/cache_read_input_tokens"), number_at(usage, "/cache_creation_input_tokens"));
        let input = number_at(usage, "/input_tokens").saturating_add(read).saturating_add(written);
        self.usage.input_tokens = self.usage.input_tokens.max(input);
        self.usage.cached_tokens = self.usage.cached_tokens.max(read);
        self.usage.output_tokens = self.usage.output_tokens.max(number_at(usage, "/output_tokens"));
    }

    fn grow(&mut self, index: u64, event: &Value, out: &mut Vec<ModelEvent>) {
        let piece = |name: &str| text_at(event, name).unwrap_or_default();
        match (text_at(event, "/delta/type").unwrap_or_default(), self.blocks.get_mut(&index)) {
            ("text_delta", Some(Block::Text(text))) => {
                text.push_str(piece("/delta/text"));
                show(out, piece("/delta/text"));
            }
            ("thinking_delta", Some(Block::Thinking { text, .. })) => {
                text.push_str(piece("/delta/thinking"));
                think(out, piece("/delta/thinking"));
            }
            ("signature_delta", Some(Block::Thinking { signature, .. })) => {
                signature.push_str(piece("/delta/signature"));
            }
            ("input_json_delta", Some(Block::Call { pieces, .. })) => pieces.push_str(piece("/delta/partial_json")),
            _ => {}
        }
    }
}

impl Block {
    fn into_item(self) -> Option<Item> {
        match self {
            Self::Text(text) => (!text.is_empty()).then(|| Item::text(text)),
            Self::Thinking { text, signature } => {
                Some(Item::Thinking { text, signature: Some(signature).filter(|text| !text.is_empty()), native: None })
            }
            Self::Sealed(native) => Some(Item::Thinking { text: String::new(), signature: None, native: Some(native) }),
            Self::Call { id, name, whole, pieces } => {
                let input = if pieces.is_empty() { whole } else { arguments(&pieces) };
                (!name.is_empty()).then(|| call(&id, &name, input, None))
            }
        }
    }
}
