//! Claude Code's `stream-json`. The final `result` event decides; its key order is not to be relied on.

use matsu_core::run::Usage;
use serde_json::Value;

use super::{Decoder, Outcome, Said, shown};

#[derive(Default)]
pub struct Claude {
    last_message: Option<String>,
    outcome: Option<Outcome>,
}

impl Decoder for Claude {
    fn event(&mut self, event: &Value) -> Vec<Said> {
        match event["type"].as_str() {
            Some("system") if event["subtype"] == "init" => session(event),
            Some("system") if event["subtype"] == "api_retry" => {
                vec![Said::Line(format!("the model's server answered {}; trying again", event["error_status"]))]
            }
            Some("assistant") => self.assistant(&event["message"]),
            Some("result") => self.result(event),
            _ => Vec::new(),
        }
    }

    fn outcome(&mut self) -> Outcome {
        self.outcome.take().unwrap_or(Outcome::Missing)
    }
}

fn session(event: &Value) -> Vec<Said> {
    event["session_id"].as_str().map(|id| Said::Session(id.to_owned())).into_iter().collect()
}

impl Claude {
    fn assistant(&mut self, message: &Value) -> Vec<Said> {
        let mut said = Vec::new();
        // One message may come in several events.
        let id = message["id"].as_str().map(str::to_owned);
        if id.is_none() || id != self.last_message {
            said.push(Said::Request);
        }
        self.last_message = id;
        for block in message["content"].as_array().into_iter().flatten() {
            match block["type"].as_str() {
                Some("text") => said.extend(block["text"].as_str().map(|text| Said::Line(text.to_owned()))),
                Some("tool_use") => {
                    let name = block["name"].as_str().unwrap_or("tool");
                    said.push(Said::Line(shown::tool(name, &block["input"])));
                }
                _ => {}
            }
        }
        said
    }

    fn result(&mut self, event: &Value) -> Vec<Said> {
        let text = event["result"].as_str().unwrap_or_default().to_owned();
        let errors = event["errors"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let errors = errors.collect::<Vec<_>>().join("; ");
        self.outcome = Some(match event["is_error"].as_bool() {
            Some(false) => Outcome::Success(text),
            _ if !text.is_empty() => Outcome::Failed(text),
            _ if !errors.is_empty() => Outcome::Failed(errors),
            _ => Outcome::Failed(event["subtype"].as_str().unwrap_or("it reported an error").to_owned()),
        });
        let mut said = session(event);
        if event["usage"].is_object() {
            said.push(Said::Usage(usage(event)));
        }
        said
    }
}

/// What was read from the cache was put in as well.
fn usage(event: &Value) -> Usage {
    let of = |name: &str| event["usage"][name].as_u64().unwrap_or(0);
    Usage {
        input_tokens: of("input_tokens") + of("cache_read_input_tokens") + of("cache_creation_input_tokens"),
        output_tokens: of("output_tokens"),
        cost_usd: event["total_cost_usd"].as_f64(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests_support::{feed, lines};
    use super::*;

    const GOOD: &str = include_str!("testdata/claude-good.jsonl");
    const REFUSED: &str = include_str!("testdata/claude-401.jsonl");

    #[test]
    fn a_good_run_is_its_result_event() {
        let mut decoder = Claude::default();
        let said = feed(&mut decoder, GOOD);
        assert!(said.contains(&Said::Session("5f0c1f5a-6a0a-4c64-9f0e-1b1b5a7c9e11".to_owned())));
        assert_eq!(said.iter().filter(|said| **said == Said::Request).count(), 2, "one message in two events");
        assert_eq!(lines(&said), ["Let me look.", "→ Bash ls -l src", "There are two files."]);
        assert!(said.iter().any(|said| matches!(said, Said::Usage(usage) if usage.input_tokens == 1_210
            && usage.output_tokens == 42 && usage.cost_usd == Some(0.0125))));
        assert_eq!(decoder.outcome(), Outcome::Success("There are two files.".to_owned()));
    }

    /// It says `subtype: success` and `is_error: true`.
    #[test]
    fn an_api_error_is_a_failure_whatever_its_subtype_says() {
        let mut decoder = Claude::default();
        feed(&mut decoder, REFUSED);
        assert!(matches!(decoder.outcome(), Outcome::Failed(text) if text.contains("Invalid API key")));
    }

    #[test]
    fn without_its_final_event_nothing_is_known() {
        let mut decoder = Claude::default();
        feed(&mut decoder, GOOD.lines().next().unwrap());
        assert_eq!(decoder.outcome(), Outcome::Missing);
    }
}
