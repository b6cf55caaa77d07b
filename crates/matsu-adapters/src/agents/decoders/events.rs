//! The stream for programs of one's own: one JSON object per line, described in the book.
//!
//! It can always be answered: after a `question` the program reads a line `{"type":"answer",…}` from
//! its stdin, which stays open.

use matsu_core::run::{Answer, Question};
use matsu_core::usage::Usage;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Decoded, Decoder, Listens, Outcome, shown};

#[derive(Default, Serialize, Deserialize)]
pub struct Events {
    text: String,
    outcome: Option<Result<Option<String>, String>>,
    #[serde(default)]
    model: Option<String>,
}

impl Decoder for Events {
    kept!();

    fn event(&mut self, event: &Value) -> Vec<Decoded> {
        let text = |name: &str| event[name].as_str().map(str::to_owned);
        match event["type"].as_str() {
            Some("model") => {
                self.model = text("name");
                Vec::new()
            }
            Some("session") => text("id").map(Decoded::Session).into_iter().collect(),
            Some("text") => {
                let text = text("text").unwrap_or_default();
                self.text.push_str(&text);
                vec![Decoded::Line(text)]
            }
            Some("tool") => {
                vec![Decoded::Line(shown::tool(event["name"].as_str().unwrap_or("tool"), &event["input"]))]
            }
            Some("request") => vec![Decoded::Request],
            Some("usage") => {
                let of = |name: &str| event[name].as_u64().unwrap_or(0);
                let (input_tokens, output_tokens) = (of("input_tokens"), of("output_tokens"));
                vec![Decoded::Usage(Usage { input_tokens, output_tokens, cost_usd: event["cost_usd"].as_f64() })]
            }
            Some("question") => {
                let (Some(id), Some(words)) = (text("id"), text("text")) else { return Vec::new() };
                let options = event["options"].as_array().into_iter().flatten();
                let options = options.filter_map(|option| option.as_str().map(str::to_owned)).collect();
                vec![Decoded::Question(Question { id, text: words, options })]
            }
            Some("result") => {
                self.outcome = Some(match text("error") {
                    Some(error) => Err(error),
                    None => Ok(text("text")),
                });
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    fn model(&self) -> Option<String> {
        self.model.clone()
    }

    fn outcome(&mut self) -> Outcome {
        match self.outcome.take() {
            Some(Ok(Some(text))) => Outcome::Success(text),
            Some(Ok(None)) => Outcome::Success(std::mem::take(&mut self.text)),
            Some(Err(error)) => Outcome::Failed(error),
            None => Outcome::Missing,
        }
    }

    fn listens(&self) -> Listens {
        Listens::Always
    }

    fn prompt(&self, text: &str) -> String {
        json!({ "type": "prompt", "text": text }).to_string()
    }

    fn answer(&mut self, answer: &Answer) -> Option<String> {
        let answer = json!({ "type": "answer", "id": answer.id, "option": answer.option, "text": answer.text });
        Some(answer.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests_support::feed;
    use super::*;

    #[test]
    fn texts_are_the_result_unless_the_result_has_one() {
        let mut decoder = Events::default();
        feed(
            &mut decoder,
            "{\"type\":\"text\",\"text\":\"a\"}\n{\"type\":\"text\",\"text\":\"b\"}\n{\"type\":\"result\"}",
        );
        assert_eq!(decoder.outcome(), Outcome::Success("ab".to_owned()));
        feed(&mut decoder, "{\"type\":\"result\",\"text\":\"c\"}");
        assert_eq!(decoder.outcome(), Outcome::Success("c".to_owned()));
        feed(&mut decoder, "{\"type\":\"result\",\"error\":\"no\"}");
        assert_eq!(decoder.outcome(), Outcome::Failed("no".to_owned()));
    }

    #[test]
    fn a_question_carries_its_options() {
        let question = r#"{"type":"question","id":"q1","text":"Go on?","options":["yes","no"]}"#;
        let options = vec!["yes".to_owned(), "no".to_owned()];
        let expected = Question { id: "q1".to_owned(), text: "Go on?".to_owned(), options };
        assert_eq!(feed(&mut Events::default(), question), [Decoded::Question(expected)]);
    }
}
