//! Codex's `--json`. `turn.completed` or `turn.failed` decides; the text is the last message.

use matsu_core::usage::Usage;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Decoded, Decoder, Outcome, shown};

#[derive(Default, Serialize, Deserialize)]
pub struct Codex {
    text: String,
    outcome: Option<Result<(), String>>,
}

impl Decoder for Codex {
    kept!();

    fn event(&mut self, event: &Value) -> Vec<Decoded> {
        match event["type"].as_str() {
            Some("thread.started") => {
                event["thread_id"].as_str().map(|id| Decoded::Session(id.to_owned())).into_iter().collect()
            }
            Some("turn.started") => vec![Decoded::Request],
            Some("item.started") if event["item"]["type"] == "command_execution" => {
                vec![Decoded::Line(shown::tool("shell", &event["item"]))]
            }
            Some("item.completed") => self.item(&event["item"]),
            // Also said for every retry; whether it was the end, the turn says.
            Some("error") => line(&event["message"]),
            Some("turn.completed") => {
                self.outcome = Some(Ok(()));
                vec![Decoded::Usage(usage(&event["usage"]))]
            }
            Some("turn.failed") => {
                let message = event["error"]["message"].as_str().unwrap_or("the turn failed").to_owned();
                self.outcome = Some(Err(message));
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    fn outcome(&mut self) -> Outcome {
        match self.outcome.take() {
            Some(Ok(())) => Outcome::Success(std::mem::take(&mut self.text)),
            Some(Err(message)) => Outcome::Failed(message),
            None => Outcome::Missing,
        }
    }
}

impl Codex {
    fn item(&mut self, item: &Value) -> Vec<Decoded> {
        match item["type"].as_str() {
            Some("agent_message") => {
                let text = item["text"].as_str().unwrap_or_default();
                text.clone_into(&mut self.text);
                vec![Decoded::Line(text.to_owned())]
            }
            Some("mcp_tool_call") => {
                let name = format!("{}.{}", item["server"].as_str().unwrap_or(""), item["tool"].as_str().unwrap_or(""));
                vec![Decoded::Request, Decoded::Line(shown::tool(&name, &item["arguments"]))]
            }
            Some("command_execution") => vec![Decoded::Request],
            Some("error") => line(&item["message"]),
            _ => Vec::new(),
        }
    }
}

fn line(message: &Value) -> Vec<Decoded> {
    message.as_str().map(|text| Decoded::Line(shown::one_line(text))).into_iter().collect()
}

fn usage(usage: &Value) -> Usage {
    let of = |name: &str| usage[name].as_u64().unwrap_or(0);
    Usage { input_tokens: of("input_tokens"), output_tokens: of("output_tokens"), cost_usd: None }
}

#[cfg(test)]
mod tests {
    use super::super::tests_support::{feed, lines};
    use super::*;

    #[test]
    fn the_last_message_of_a_completed_turn_is_the_result() {
        let mut decoder = Codex::default();
        let decoded = feed(&mut decoder, include_str!("testdata/codex-good.jsonl"));
        assert!(decoded.contains(&Decoded::Session("0199a213-81c0-7800-8aa1-bbab2a035a53".to_owned())));
        assert_eq!(lines(&decoded), ["I will look.", "→ shell bash -lc ls", "Two files."]);
        assert!(decoded.iter().any(|decoded| matches!(decoded, Decoded::Usage(usage) if usage.input_tokens == 24_763)));
        assert_eq!(decoder.outcome(), Outcome::Success("Two files.".to_owned()));
    }

    #[test]
    fn an_error_item_is_no_failure_but_a_failed_turn_is() {
        let mut decoder = Codex::default();
        feed(&mut decoder, include_str!("testdata/codex-failed.jsonl"));
        assert!(matches!(decoder.outcome(), Outcome::Failed(text) if text.contains("401 Unauthorized")));
    }
}
