//! Questions of runs on the native wire: each is one elicitation, keyed by the job that asks and the question's id.

use matsu_core::id::JobId;
use matsu_core::run::{Answer, Question};
use matsu_runtime::agents::OpenQuestion;
use rmcp::model::{InputRequests, InputResponses};
use serde_json::{Value, json};

/// The one field of the form.
const FIELD: &str = "answer";

/// What the client's user is asked, as the protocol words it.
pub fn asked(questions: &[OpenQuestion]) -> InputRequests {
    let requests = questions.iter().filter_map(|asked| {
        let request = serde_json::from_value(elicitation(&asked.question)).ok()?;
        Some((key(asked), request))
    });
    requests.collect()
}

/// Two agents of one task may ask under the same id.
fn key(asked: &OpenQuestion) -> String {
    format!("{}:{}", asked.job.id, asked.question.id)
}

fn elicitation(question: &Question) -> Value {
    let field = if question.options.is_empty() {
        json!({ "type": "string", "title": "Answer" })
    } else {
        json!({ "type": "string", "title": "Answer", "enum": question.options })
    };
    json!({
        "method": "elicitation/create",
        "params": {
            "mode": "form",
            "message": question.text,
            "requestedSchema": { "type": "object", "properties": { FIELD: field }, "required": [FIELD] },
        },
    })
}

/// The answers among the responses, each with the job that asked. A declined question stays open: the page, the
/// terminal or another client may answer it.
pub fn answers(questions: &[OpenQuestion], responses: &InputResponses) -> Vec<(JobId, Answer)> {
    let answer = |asked: &OpenQuestion| {
        let (question, response) = (&asked.question, responses.get(&key(asked))?);
        let (option, text) = said(question, response)?;
        Some((asked.job.id.clone(), Answer { id: question.id.clone(), option, text }))
    };
    questions.iter().filter_map(answer).collect()
}

/// Option or text of an accepted form.
fn said(question: &Question, response: &Value) -> Option<(Option<String>, Option<String>)> {
    let said = response["content"][FIELD].as_str().filter(|_| response["action"] == "accept")?.to_owned();
    // Where there is a choice, the form allows nothing else.
    Some(if question.options.is_empty() { (None, Some(said)) } else { (Some(said), None) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(options: &[&str], response: &Value) -> Option<(Option<String>, Option<String>)> {
        let options = options.iter().map(|&option| option.to_owned()).collect();
        let question = Question { id: "q1".to_owned(), text: "Go on?".to_owned(), options };
        let form = elicitation(&question);
        assert_eq!((&form["method"], &form["params"]["message"]), (&json!("elicitation/create"), &json!("Go on?")));
        let field = &form["params"]["requestedSchema"]["properties"][FIELD];
        assert_eq!(field.get("enum").is_some(), !question.options.is_empty(), "{field}");
        said(&question, response)
    }

    #[test]
    fn only_what_was_accepted_is_an_answer() {
        let yes = json!({ "action": "accept", "content": { FIELD: "yes" } });
        assert_eq!(answered(&["yes", "no"], &yes), Some((Some("yes".to_owned()), None)));
        assert_eq!(answered(&[], &yes), Some((None, Some("yes".to_owned()))));
        assert_eq!(answered(&["yes"], &json!({ "action": "decline" })), None);
        assert_eq!(answered(&["yes"], &json!({ "action": "accept", "content": { FIELD: 7 } })), None);
    }
}
