//! Tool outputs that are too long to be given to a model at once: cut with a marker, and kept for a follow-up tool.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use matsu_core::limits::{TOOL_OUTPUT_BYTES_MAX, TOOL_OUTPUT_KEPT_BYTES_MAX, TOOL_OUTPUTS_KEPT};
use matsu_core::ports::provider::{Danger, ToolSpec};
use matsu_core::ports::tool_source::ToolAnswer;
use serde_json::{Map, Value, json};

/// The follow-up tool.
pub const READ_MORE: &str = "read_tool_output";

/// The long outputs of one chat, oldest first.
#[derive(Debug, Default)]
pub struct KeptOutputs(Mutex<VecDeque<(String, String)>>);

impl KeptOutputs {
    /// The output as a model is given it. What is cut off can be read by the call's id.
    pub fn shorten(&self, id: &str, output: String) -> String {
        // What a server of tools prints may be the key that it was given.
        let output = matsu_core::redaction::redact(&output).into_owned();
        if output.len() <= TOOL_OUTPUT_BYTES_MAX {
            return output;
        }
        let (whole, kept) = (output.len(), cut(&output, TOOL_OUTPUT_KEPT_BYTES_MAX));
        let head = cut(&output, TOOL_OUTPUT_BYTES_MAX).to_owned();
        let lost = if kept.len() < whole { format!(", of which {} can be read", kept.len()) } else { String::new() };
        let mut outputs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        outputs.push_back((id.to_owned(), kept.to_owned()));
        while outputs.len() > TOOL_OUTPUTS_KEPT {
            outputs.pop_front();
        }
        let next = head.len();
        format!(
            "{head}\n[… cut: {next} of {whole} bytes{lost}; call {READ_MORE} with id \"{id}\" and offset {next} for more]"
        )
    }

    /// The follow-up tool, once there is something to follow up.
    #[must_use]
    pub fn tool(&self) -> Option<ToolSpec> {
        let any = !self.0.lock().unwrap_or_else(PoisonError::into_inner).is_empty();
        any.then(|| {
            let input = json!({
                "type": "object",
                "properties": {
                    "id": { "type": "string", "description": "the id that the cut output names" },
                    "offset": { "type": "integer", "minimum": 0, "description": "the byte to read from" },
                },
                "required": ["id", "offset"],
                "additionalProperties": false,
            });
            let description = "Reads the next part of a tool's output that was cut.";
            ToolSpec::new(READ_MORE, description, input, Danger::ReadOnly)
        })
    }

    #[must_use]
    pub fn read(&self, arguments: &Map<String, Value>) -> ToolAnswer {
        let id = arguments.get("id").and_then(Value::as_str).unwrap_or_default();
        let offset = arguments.get("offset").and_then(Value::as_u64).and_then(|offset| usize::try_from(offset).ok());
        let outputs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((_, output)) = outputs.iter().find(|(kept, _)| kept == id) else {
            return ToolAnswer::error(format!("no output is kept under {id:?}; call the tool again"));
        };
        let Some(rest) = offset.and_then(|offset| output.get(on_boundary(output, offset)..)) else {
            return ToolAnswer::error(format!("offset must be a whole number from 0 to {}", output.len()));
        };
        let piece = cut(rest, TOOL_OUTPUT_BYTES_MAX);
        let next = output.len() - rest.len() + piece.len();
        if next == output.len() {
            return ToolAnswer::good(piece);
        }
        ToolAnswer::good(format!("{piece}\n[… {next} of {} bytes; go on with offset {next}]", output.len()))
    }
}

/// At most that many bytes, and no half character.
fn cut(text: &str, bytes_max: usize) -> &str {
    let mut end = bytes_max.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

fn on_boundary(text: &str, offset: usize) -> usize {
    (offset..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(id: &str, offset: usize) -> Map<String, Value> {
        json!({ "id": id, "offset": offset }).as_object().cloned().unwrap()
    }

    #[test]
    fn a_cut_output_can_be_read_until_it_ends() {
        let outputs = KeptOutputs::default();
        assert_eq!(outputs.shorten("a", "short".to_owned()), "short");
        assert_eq!(outputs.tool(), None);
        let long = "松".repeat(TOOL_OUTPUT_BYTES_MAX / 2);
        let shown = outputs.shorten("b", long.clone());
        assert!(shown.contains("read_tool_output with id \"b\" and offset 51198"), "{}", &shown[51_100..]);
        assert!(outputs.tool().is_some());
        let (mut read, mut offset) = (cut(&long, TOOL_OUTPUT_BYTES_MAX).to_owned(), 51_198);
        while read.len() < long.len() {
            let more = outputs.read(&arguments("b", offset));
            assert!(!more.is_error);
            read.push_str(more.content.split("\n[…").next().unwrap());
            offset = read.len();
        }
        assert_eq!(read, long);
    }

    #[test]
    fn wrong_requests_are_answered_in_words() {
        let outputs = KeptOutputs::default();
        outputs.shorten("b", "x".repeat(TOOL_OUTPUT_BYTES_MAX + 1));
        assert!(outputs.read(&arguments("c", 0)).content.contains("no output is kept"));
        assert!(outputs.read(&arguments("b", 10_000_000)).is_error);
        assert!(outputs.read(&Map::new()).is_error);
    }
}
