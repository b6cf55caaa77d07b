//! opencode's `--format json`. It has no final event: the last step's reason must be `stop`, and there was no error.

use matsu_core::usage::Usage;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Decoded, Decoder, Outcome, shown};

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

    fn event(&mut self, event: &Value) -> Vec<Decoded> {
        let mut decoded = Vec::new();
        if let Some(id) = event["sessionID"].as_str()
            && self.session.is_none()
        {
            self.session = Some(id.to_owned());
            decoded.push(Decoded::Session(id.to_owned()));
        }
        let part = &event["part"];
        match event["type"].as_str() {
            Some("step_start") => {
                self.text.clear();
                decoded.push(Decoded::Request);
            }
            Some("text") => {
                let text = part["text"].as_str().unwrap_or_default();
                self.text.push_str(text);
                decoded.push(Decoded::Line(text.to_owned()));
            }
            Some("tool_use") => {
                let name = part["tool"].as_str().unwrap_or("tool");
                decoded.push(Decoded::Line(shown::tool(name, &part["state"]["input"])));
            }
            Some("step_finish") => decoded.extend(self.step(part)),
            Some("error") => self.error = Some(message(&event["error"])),
            _ => {}
        }
        decoded
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
    fn step(&mut self, part: &Value) -> Vec<Decoded> {
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
        let mut decoded = vec![Decoded::Usage(self.usage)];
        if self.unknown >= UNKNOWN_MAX {
            decoded.push(Decoded::Hopeless("the model's stream ends without a reason, again and again".to_owned()));
        }
        decoded
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
        let decoded = feed(&mut decoder, include_str!("testdata/opencode-good.jsonl"));
        assert!(decoded.contains(&Decoded::Session("ses_4f1a".to_owned())));
        assert_eq!(lines(&decoded), ["Looking.", "→ read README.md", "It says hello."]);
        let total = Usage { input_tokens: 300, output_tokens: 30, cost_usd: Some(0.0) };
        assert_eq!(decoded.iter().rfind(|decoded| matches!(decoded, Decoded::Usage(_))), Some(&Decoded::Usage(total)));
        assert_eq!(decoder.outcome(), Outcome::Success("It says hello.".to_owned()));
    }

    #[test]
    fn a_loop_without_an_end_is_noticed() {
        let mut decoder = Opencode::default();
        let step = r#"{"type":"step_finish","part":{"reason":"unknown"}}"#;
        let decoded: Vec<Decoded> = (0..5).flat_map(|_| feed(&mut decoder, step)).collect();
        assert_eq!(decoded.iter().filter(|decoded| matches!(decoded, Decoded::Hopeless(_))).count(), 1);
        assert_eq!(decoder.outcome(), Outcome::Missing);
    }
}
