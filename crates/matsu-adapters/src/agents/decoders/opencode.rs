//! opencode's `--format json`. It has no final event: the last step's reason must be `stop`, and there was no error.

use matsu_core::usage::Usage;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Decoder, Outcome, Said, shown};

/// A stream without a finish reason makes it ask again for ever.
const UNKNOWN_MAX: u32 = 5;

#[derive(Default, Serialize, Deserialize)]
pub struct Opencode {
    text: String,
    session: Option<String>,
    last_reason: Option<String>,
    unknown: u32,
    usage: Usage,
    error: Option<String>,
}

impl Decoder for Opencode {
    kept!();

    fn event(&mut self, event: &Value) -> Vec<Said> {
        let mut said = Vec::new();
        if let Some(id) = event["sessionID"].as_str()
            && self.session.is_none()
        {
            self.session = Some(id.to_owned());
            said.push(Said::Session(id.to_owned()));
        }
        let part = &event["part"];
        match event["type"].as_str() {
            Some("step_start") => {
                self.text.clear();
                said.push(Said::Request);
            }
            Some("text") => {
                let text = part["text"].as_str().unwrap_or_default();
                self.text.push_str(text);
                said.push(Said::Line(text.to_owned()));
            }
            Some("tool_use") => {
                let name = part["tool"].as_str().unwrap_or("tool");
                said.push(Said::Line(shown::tool(name, &part["state"]["input"])));
            }
            Some("step_finish") => said.extend(self.step(part)),
            Some("error") => self.error = Some(message(&event["error"])),
            _ => {}
        }
        said
    }

    fn outcome(&mut self) -> Outcome {
        match (self.error.take(), self.last_reason.as_deref()) {
            (Some(message), _) => Outcome::Failed(message),
            (None, Some("stop")) => Outcome::Success(std::mem::take(&mut self.text)),
            (None, _) => Outcome::Missing,
        }
    }
}

impl Opencode {
    fn step(&mut self, part: &Value) -> Vec<Said> {
        let reason = part["reason"].as_str().unwrap_or("unknown");
        self.unknown = if reason == "unknown" { self.unknown.saturating_add(1) } else { 0 };
        self.last_reason = Some(reason.to_owned());
        let of = |name: &str| part["tokens"][name].as_u64().unwrap_or(0);
        let cached = part["tokens"]["cache"]["read"].as_u64().unwrap_or(0);
        self.usage.input_tokens = self.usage.input_tokens.saturating_add(of("input")).saturating_add(cached);
        self.usage.output_tokens = self.usage.output_tokens.saturating_add(of("output"));
        if let Some(cost) = part["cost"].as_f64() {
            self.usage.cost_usd = Some(self.usage.cost_usd.unwrap_or(0.0) + cost);
        }
        let mut said = vec![Said::Usage(self.usage)];
        if self.unknown >= UNKNOWN_MAX {
            said.push(Said::Hopeless("the model's stream ends without a reason, again and again".to_owned()));
        }
        said
    }
}

fn message(error: &Value) -> String {
    let message = error["data"]["message"].as_str().or(error["name"].as_str());
    message.unwrap_or("it reported an error").to_owned()
}

#[cfg(test)]
mod tests {
    use super::super::tests_support::{feed, lines};
    use super::*;

    #[test]
    fn the_text_after_the_last_step_is_the_result_and_steps_are_summed() {
        let mut decoder = Opencode::default();
        let said = feed(&mut decoder, include_str!("testdata/opencode-good.jsonl"));
        assert!(said.contains(&Said::Session("ses_4f1a".to_owned())));
        assert_eq!(lines(&said), ["Looking.", "→ read README.md", "It says hello."]);
        let total = Usage { input_tokens: 300, output_tokens: 30, cost_usd: Some(0.0) };
        assert_eq!(said.iter().rfind(|said| matches!(said, Said::Usage(_))), Some(&Said::Usage(total)));
        assert_eq!(decoder.outcome(), Outcome::Success("It says hello.".to_owned()));
    }

    #[test]
    fn a_loop_without_an_end_is_noticed() {
        let mut decoder = Opencode::default();
        let step = r#"{"type":"step_finish","part":{"reason":"unknown"}}"#;
        let said: Vec<Said> = (0..5).flat_map(|_| feed(&mut decoder, step)).collect();
        assert_eq!(said.iter().filter(|said| matches!(said, Said::Hopeless(_))).count(), 1);
        assert_eq!(decoder.outcome(), Outcome::Missing);
    }
}
