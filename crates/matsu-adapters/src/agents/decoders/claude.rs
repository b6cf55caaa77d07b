//! Claude Code's `stream-json`. The final `result` event decides; its key order is not to be relied on.
//!
//! Where it asks before it does something, it asks with a `control_request` and reads the answer from its stdin.

use std::collections::HashMap;

use matsu_core::run::{Answer, Question};
use matsu_core::usage::Usage;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Decoded, Decoder, Listens, Outcome, shown};

#[derive(Default, Serialize, Deserialize)]
pub struct Claude {
    last_message: Option<String>,
    outcome: Option<Outcome>,
    #[serde(default)]
    model: Option<String>,
    /// Tokens of the messages before the last one, and of that one. The final event has the exact sum; a run that is
    /// killed has none.
    #[serde(default)]
    before: Usage,
    #[serde(default)]
    last: Usage,
    /// What was asked and not answered, by the id of the request.
    asked: HashMap<String, Value>,
}

/// Its own tool for a question that is no request for permission.
const ASK: &str = "AskUserQuestion";
const ALLOW: &str = "allow";
const DENY: &str = "deny";

impl Decoder for Claude {
    kept!();

    fn event(&mut self, event: &Value) -> Vec<Decoded> {
        match event["type"].as_str() {
            Some("system") if event["subtype"] == "init" => {
                self.model = event["model"].as_str().map(str::to_owned);
                session(event)
            }
            Some("system") if event["subtype"] == "api_retry" => {
                vec![Decoded::Line(format!("the model's server answered {}; trying again", event["error_status"]))]
            }
            Some("assistant") => self.assistant(&event["message"]),
            Some("control_request") if event["request"]["subtype"] == "can_use_tool" => self.asks(event),
            Some("result") => self.result(event),
            _ => Vec::new(),
        }
    }

    fn listens(&self) -> Listens {
        Listens::WhereItAsks
    }

    fn prompt(&self, text: &str) -> String {
        json!({ "type": "user", "message": { "role": "user", "content": text } }).to_string()
    }

    fn answer(&mut self, answer: &Answer) -> Option<String> {
        let request = self.asked.remove(&answer.id)?;
        let response = json!({ "subtype": "success", "request_id": answer.id, "response": reply(&request, answer) });
        Some(json!({ "type": "control_response", "response": response }).to_string())
    }

    fn model(&self) -> Option<String> {
        self.model.clone()
    }

    fn outcome(&mut self) -> Outcome {
        self.outcome.take().unwrap_or(Outcome::Missing)
    }
}

fn session(event: &Value) -> Vec<Decoded> {
    event["session_id"].as_str().map(|id| Decoded::Session(id.to_owned())).into_iter().collect()
}

/// One question of its own, with the words to choose from.
fn own_question(request: &Value) -> Option<(&str, Vec<String>)> {
    let questions = request["input"]["questions"].as_array().filter(|_| request["tool_name"] == ASK)?;
    let [question] = questions.as_slice() else { return None };
    let options = question["options"].as_array().into_iter().flatten();
    Some((question["question"].as_str()?, options.filter_map(|one| one["label"].as_str().map(str::to_owned)).collect()))
}

/// What it is sent: to go on with what it wanted, with its question answered, or why not.
fn reply(request: &Value, answer: &Answer) -> Value {
    let words = answer.option.as_deref().or(answer.text.as_deref()).unwrap_or_default();
    let mut input = request["input"].clone();
    if let Some((question, _)) = own_question(request) {
        input["answers"] = json!({ question: words });
        return json!({ "behavior": "allow", "updatedInput": input });
    }
    if answer.option.as_deref() == Some(ALLOW) {
        return json!({ "behavior": "allow", "updatedInput": input });
    }
    let why = answer.text.as_deref().unwrap_or("This was not allowed. Continue without it, or end.");
    json!({ "behavior": "deny", "message": why })
}

impl Claude {
    fn asks(&mut self, event: &Value) -> Vec<Decoded> {
        let request = &event["request"];
        let Some(id) = event["request_id"].as_str().map(str::to_owned) else { return Vec::new() };
        let question = match own_question(request) {
            Some((text, options)) => Question { id: id.clone(), text: text.to_owned(), options },
            None => {
                let what = match request["input"]["command"].as_str() {
                    Some(command) => format!("`{command}`"),
                    None => shown::tool(request["tool_name"].as_str().unwrap_or("tool"), &request["input"]),
                };
                let options = [ALLOW, DENY].map(str::to_owned).to_vec();
                Question { id: id.clone(), text: format!("Allow {}?", what.trim_start_matches("→ ")), options }
            }
        };
        self.asked.insert(id, request.clone());
        vec![Decoded::Question(question)]
    }

    fn assistant(&mut self, message: &Value) -> Vec<Decoded> {
        let mut decoded = Vec::new();
        // One message may come in several events.
        let id = message["id"].as_str().map(str::to_owned);
        if id.is_none() || id != self.last_message {
            decoded.push(Decoded::Request);
            self.before = self.before.plus(std::mem::take(&mut self.last));
        }
        self.last_message = id;
        if message["usage"].is_object() {
            // Each event of a message has the sum of the message so far.
            self.last = usage(message);
            decoded.push(Decoded::Usage(self.before.plus(self.last)));
        }
        for block in message["content"].as_array().into_iter().flatten() {
            match block["type"].as_str() {
                Some("text") => decoded.extend(block["text"].as_str().map(|text| Decoded::Line(text.to_owned()))),
                Some("tool_use") => {
                    let name = block["name"].as_str().unwrap_or("tool");
                    decoded.push(Decoded::Line(shown::tool(name, &block["input"])));
                }
                _ => {}
            }
        }
        decoded
    }

    fn result(&mut self, event: &Value) -> Vec<Decoded> {
        // Where a schema was asked for, the answer that fits it is the result; older versions have the last text beside it.
        let text = match &event["structured_output"] {
            Value::Null => event["result"].as_str().unwrap_or_default().to_owned(),
            structured => structured.to_string(),
        };
        let errors = event["errors"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let errors = errors.collect::<Vec<_>>().join("; ");
        self.outcome = Some(match event["is_error"].as_bool() {
            Some(false) => Outcome::Success(text),
            _ if !text.is_empty() => Outcome::Failed(text),
            _ if !errors.is_empty() => Outcome::Failed(errors),
            _ => Outcome::Failed(event["subtype"].as_str().unwrap_or("it reported an error").to_owned()),
        });
        let mut decoded = session(event);
        if event["usage"].is_object() {
            decoded.push(Decoded::Usage(usage(event)));
        }
        decoded.push(Decoded::Finished);
        decoded
    }
}

/// What was read from the cache was put in as well.
fn usage(event: &Value) -> Usage {
    let of = |name: &str| event["usage"][name].as_u64().unwrap_or(0);
    Usage {
        input_tokens: of("input_tokens")
            .saturating_add(of("cache_read_input_tokens"))
            .saturating_add(of("cache_creation_input_tokens")),
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
        let decoded = feed(&mut decoder, GOOD);
        assert!(decoded.contains(&Decoded::Session("5f0c1f5a-6a0a-4c64-9f0e-1b1b5a7c9e11".to_owned())));
        assert_eq!(
            decoded.iter().filter(|decoded| **decoded == Decoded::Request).count(),
            2,
            "one message in two events"
        );
        assert_eq!(lines(&decoded), ["Let me look.", "→ Bash ls -l src", "There are two files."]);
        assert!(decoded.iter().any(|decoded| matches!(decoded, Decoded::Usage(usage) if usage.input_tokens == 1_210
            && usage.output_tokens == 42 && usage.cost_usd == Some(0.0125))));
        assert_eq!(decoder.outcome(), Outcome::Success("There are two files.".to_owned()));
    }

    #[test]
    fn an_answer_that_fits_the_schema_is_the_result() {
        let mut decoder = Claude::default();
        feed(&mut decoder, r#"{"type":"result","is_error":false,"result":"Done.","structured_output":{"a":[1]}}"#);
        assert_eq!(decoder.outcome(), Outcome::Success(r#"{"a":[1]}"#.to_owned()));
    }

    /// It says `subtype: success` and `is_error: true`.
    #[test]
    fn an_api_error_is_a_failure_whatever_its_subtype_says() {
        let mut decoder = Claude::default();
        feed(&mut decoder, REFUSED);
        assert!(matches!(decoder.outcome(), Outcome::Failed(text) if text.contains("Invalid API key")));
    }

    fn answer(id: &str, option: Option<&str>, text: Option<&str>) -> Answer {
        Answer { id: id.to_owned(), option: option.map(str::to_owned), text: text.map(str::to_owned) }
    }

    #[test]
    fn a_request_for_permission_is_a_question_and_its_answer_a_response() {
        let mut decoder = Claude::default();
        let request = r#"{"type":"control_request","request_id":"r1","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"cargo test"}}}"#;
        let options = vec!["allow".to_owned(), "deny".to_owned()];
        let question = Question { id: "r1".to_owned(), text: "Allow `cargo test`?".to_owned(), options };
        assert_eq!(feed(&mut decoder, request), [Decoded::Question(question)]);
        assert_eq!(decoder.answer(&answer("r2", Some("allow"), None)), None);
        let decoded: Value =
            serde_json::from_str(&decoder.answer(&answer("r1", Some("allow"), None)).unwrap()).unwrap();
        let response = json!({ "behavior": "allow", "updatedInput": { "command": "cargo test" } });
        assert_eq!((&decoded["response"]["request_id"], &decoded["response"]["response"]), (&json!("r1"), &response));
        feed(&mut decoder, request);
        let decoded: Value =
            serde_json::from_str(&decoder.answer(&answer("r1", None, Some("not now"))).unwrap()).unwrap();
        assert_eq!(decoded["response"]["response"], json!({ "behavior": "deny", "message": "not now" }));
    }

    #[test]
    fn a_question_of_its_own_has_its_own_words() {
        let mut decoder = Claude::default();
        let request = r#"{"type":"control_request","request_id":"r1","request":{"subtype":"can_use_tool","tool_name":"AskUserQuestion","input":{"questions":[{"question":"Which?","options":[{"label":"A"},{"label":"B"}]}]}}}"#;
        let options = vec!["A".to_owned(), "B".to_owned()];
        let question = Question { id: "r1".to_owned(), text: "Which?".to_owned(), options };
        assert_eq!(feed(&mut decoder, request), [Decoded::Question(question)]);
        let decoded: Value = serde_json::from_str(&decoder.answer(&answer("r1", Some("B"), None)).unwrap()).unwrap();
        assert_eq!(decoded["response"]["response"]["updatedInput"]["answers"], json!({ "Which?": "B" }));
    }

    #[test]
    fn without_its_final_event_nothing_is_known() {
        let mut decoder = Claude::default();
        feed(&mut decoder, GOOD.lines().next().unwrap());
        assert_eq!(decoder.outcome(), Outcome::Missing);
    }
}
