//! Gemini CLI's `stream-json`. The `result` event decides, but has no text; that is what the assistant said.

use matsu_core::usage::Usage;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Decoded, Decoder, Outcome, shown};

#[derive(Default, Serialize, Deserialize)]
pub struct Gemini {
    text: String,
    /// A line of text that is not complete yet.
    line: String,
    outcome: Option<Result<(), String>>,
    #[serde(default)]
    model: Option<String>,
}

impl Decoder for Gemini {
    kept!();

    fn event(&mut self, event: &Value) -> Vec<Decoded> {
        match event["type"].as_str() {
            Some("init") => {
                self.model = event["model"].as_str().map(str::to_owned);
                event["session_id"].as_str().map(|id| Decoded::Session(id.to_owned())).into_iter().collect()
            }
            // The user's message is the whole prompt once more.
            Some("message") if event["role"] == "assistant" => {
                let content = event["content"].as_str().unwrap_or_default();
                self.text.push_str(content);
                self.line.push_str(content);
                self.whole_lines()
            }
            Some("tool_use") => {
                let mut decoded = self.rest_of_line();
                let name = event["tool_name"].as_str().unwrap_or("tool");
                decoded.extend([Decoded::Request, Decoded::Line(shown::tool(name, &event["parameters"]))]);
                decoded
            }
            Some("result") => self.result(event),
            _ => Vec::new(),
        }
    }

    fn model(&self) -> Option<String> {
        self.model.clone()
    }

    fn outcome(&mut self) -> Outcome {
        match self.outcome.take() {
            Some(Ok(())) => Outcome::Success(std::mem::take(&mut self.text)),
            Some(Err(message)) => Outcome::Failed(message),
            None => Outcome::Missing,
        }
    }
}

impl Gemini {
    fn whole_lines(&mut self) -> Vec<Decoded> {
        let Some(end) = self.line.rfind('\n') else { return Vec::new() };
        let rest = self.line.split_off(end + 1);
        let lines = std::mem::replace(&mut self.line, rest);
        vec![Decoded::Line(lines.trim_end().to_owned())]
    }

    fn rest_of_line(&mut self) -> Vec<Decoded> {
        let rest = std::mem::take(&mut self.line);
        if rest.trim().is_empty() { Vec::new() } else { vec![Decoded::Line(rest)] }
    }

    fn result(&mut self, event: &Value) -> Vec<Decoded> {
        self.outcome = Some(if event["status"] == "success" {
            Ok(())
        } else {
            let message = event["error"]["message"].as_str();
            Err(message.unwrap_or("its stream was cut").to_owned())
        });
        let mut decoded = self.rest_of_line();
        let of = |name: &str| event["stats"][name].as_u64().unwrap_or(0);
        if event["stats"].is_object() {
            let (input_tokens, output_tokens) = (of("input_tokens"), of("output_tokens"));
            decoded.push(Decoded::Usage(Usage { input_tokens, output_tokens, cost_usd: None }));
        }
        decoded
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests_support::{feed, lines};
    use super::*;

    #[test]
    fn deltas_are_joined_and_shown_line_by_line() {
        let mut decoder = Gemini::default();
        let decoded = feed(&mut decoder, include_str!("testdata/gemini-good.jsonl"));
        assert!(decoded.contains(&Decoded::Session("b7e0bd2c-0a5e-4a3c-8f0f-6ad6c1d0a001".to_owned())));
        assert_eq!(lines(&decoded), ["I will look.", "→ read_file README.md", "It says hello."]);
        assert_eq!(decoder.outcome(), Outcome::Success("I will look.\nIt says hello.".to_owned()));
    }

    #[test]
    fn a_cut_stream_is_a_failure() {
        let mut decoder = Gemini::default();
        feed(&mut decoder, r#"{"type":"result","timestamp":"t","status":"error","stats":{}}"#);
        assert_eq!(decoder.outcome(), Outcome::Failed("its stream was cut".to_owned()));
    }
}
