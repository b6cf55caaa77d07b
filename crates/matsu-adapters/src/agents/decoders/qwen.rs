//! Qwen Code's `stream-json`: Claude's family, but errors of the model's server come as good results.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::claude::Claude;
use super::{Decoded, Decoder, Outcome};

const API_ERROR: &str = "[API Error: ";

#[derive(Default, Serialize, Deserialize)]
pub struct Qwen {
    inner: Claude,
}

impl Decoder for Qwen {
    kept!();

    fn event(&mut self, event: &Value) -> Vec<Decoded> {
        self.inner.event(event)
    }

    fn model(&self) -> Option<String> {
        self.inner.model()
    }

    fn outcome(&mut self) -> Outcome {
        match self.inner.outcome() {
            Outcome::Success(text) if text.contains(API_ERROR) => Outcome::Failed(text),
            outcome => outcome,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests_support::feed;
    use super::*;

    #[test]
    fn an_api_error_that_calls_itself_success_is_a_failure() {
        let mut decoder = Qwen::default();
        feed(&mut decoder, include_str!("testdata/qwen-401.jsonl"));
        assert!(matches!(decoder.outcome(), Outcome::Failed(text) if text.contains("401")));
    }
}
