//! Responses: items that are announced, filled and done; `response.completed` or `response.incomplete` ends them.

use std::collections::BTreeMap;

use matsu_core::history::Item;
use matsu_core::ports::provider::{ModelEvent, ModelTurn, TurnEnd, Usage};
use serde_json::Value;

use super::{arguments, call, list_at, number_at, show, text_at, think};
use crate::providers::refusal::{Fault, in_stream};
use crate::providers::wire::{Decoder, Progress, parse_piece};

#[derive(Default)]
pub struct OpenAiResponsesDecoder {
    /// Finished items by their place.
    done: BTreeMap<u64, Value>,
    refused: bool,
    last: Option<(Value, TurnEnd)>,
}

impl Decoder for OpenAiResponsesDecoder {
    fn feed(&mut self, data: &str, out: &mut Vec<ModelEvent>) -> Result<Progress, Fault> {
        if data.trim() == "[DONE]" {
            return Ok(Progress::Complete);
        }
        let event = parse_piece(data)?;
        let delta = text_at(&event, "/delta").unwrap_or_default();
        match text_at(&event, "/type").unwrap_or_default() {
            "response.output_text.delta" => show(out, delta),
            "response.refusal.delta" => {
                self.refused = true;
                show(out, delta);
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => think(out, delta),
            "response.output_item.done" => {
                if let Some(item) = event.get("item") {
                    self.done.insert(number_at(&event, "/output_index"), item.clone());
                }
            }
            "response.completed" => return Ok(self.end(&event, TurnEnd::Finished)),
            "response.incomplete" => {
                let end = match text_at(&event, "/response/incomplete_details/reason") {
                    Some("content_filter") => TurnEnd::Refused,
                    _ => TurnEnd::Length,
                };
                return Ok(self.end(&event, end));
            }
            "response.failed" => {
                let error = event.pointer("/response/error").filter(|error| !error.is_null());
                return Err(error
                    .and_then(in_stream)
                    .unwrap_or_else(|| Fault::protocol("the vendor reported a failure without a reason")));
            }
            "error" => {
                let error = event.get("error").filter(|error| error.is_object()).unwrap_or(&event);
                // The event's own type says only "error".
                let mut error = error.clone();
                if let Some(fields) = error.as_object_mut() {
                    fields.retain(|name, _| name != "type" || fields_are_nested(&event));
                }
                return Err(in_stream(&error).unwrap_or_else(|| Fault::protocol("an error without a message")));
            }
            _ => {}
        }
        Ok(Progress::More)
    }

    fn finish(self: Box<Self>) -> Result<ModelTurn, Fault> {
        let Some((response, end)) = self.last else { return Err(Fault::truncated()) };
        let listed: Vec<Value> = if self.done.is_empty() {
            list_at(&response, "/output").to_vec()
        } else {
            self.done.into_values().collect()
        };
        let usage = Usage {
            input_tokens: number_at(&response, "/usage/input_tokens"),
            output_tokens: number_at(&response, "/usage/output_tokens"),
            cached_tokens: number_at(&response, "/usage/input_tokens_details/cached_tokens"),
        };
        let items: Vec<Item> = listed.into_iter().filter_map(item).collect();
        let calls = items.iter().any(|item| matches!(item, Item::ToolCall { .. }));
        let end = match end {
            TurnEnd::Finished if self.refused => TurnEnd::Refused,
            TurnEnd::Finished if calls => TurnEnd::ToolUse,
            end => end,
        };
        Ok(ModelTurn { items, usage, end })
    }
}

fn fields_are_nested(event: &Value) -> bool {
    event.get("error").is_some_and(Value::is_object)
}

impl OpenAiResponsesDecoder {
    fn end(&mut self, event: &Value, end: TurnEnd) -> Progress {
        self.last = Some((event.get("response").cloned().unwrap_or_default(), end));
        Progress::Complete
    }
}

fn item(item: Value) -> Option<Item> {
    match text_at(&item, "/type")? {
        "message" => {
            let parts = list_at(&item, "/content").iter();
            let texts = parts.filter_map(|part| text_at(part, "/text").or_else(|| text_at(part, "/refusal")));
            let text = texts.collect::<Vec<_>>().concat();
            (!text.is_empty()).then(|| Item::text(text))
        }
        "function_call" => {
            let id = text_at(&item, "/call_id").unwrap_or_default();
            let text = text_at(&item, "/arguments").unwrap_or_default();
            Some(call(id, text_at(&item, "/name")?, arguments(text), None))
        }
        "reasoning" => {
            let texts = list_at(&item, "/summary").iter().filter_map(|part| text_at(part, "/text"));
            let text = texts.collect::<Vec<_>>().join("\n\n");
            Some(Item::Thinking { text, signature: None, native: Some(item) })
        }
        _ => None,
    }
}
