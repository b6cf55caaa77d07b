//! Questions of runs on the native wire: each is one elicitation, keyed by the question's own id.

use matsu_core::run::{Answer, Question};
use rmcp::model::{InputRequests, InputResponses};
use serde_json::{Value, json};

/// The one field of the form.
const FIELD: &str = "answer";

/// What the client's user is asked, as the protocol words it.
pub fn asked(questions: &[Question]) -> InputRequests {
    let requests = questions.iter().filter_map(|question| {
        let request = serde_json::from_value(elicitation(question)).ok()?;
        Some((question.id.clone(), request))
    });
    requests.collect()
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

/// The answers among the responses. Who declines leaves the question to others: the page, the terminal, another client.
pub fn answers(questions: &[Question], responses: &InputResponses) -> Vec<Answer> {
    let answer = |question: &Question| {
        let response = responses.get(&question.id)?;
        let said = response["content"][FIELD].as_str().filter(|_| response["action"] == "accept")?.to_owned();
        // Where there is a choice, the form allows nothing else.
        let (option, text) = if question.options.is_empty() { (None, Some(said)) } else { (Some(said), None) };
        Some(Answer { id: question.id.clone(), option, text })
    };
    questions.iter().filter_map(answer).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(options: &[&str]) -> Question {
        let options = options.iter().map(|&option| option.to_owned()).collect();
        Question { id: "q1".to_owned(), text: "Go on?".to_owned(), options }
    }

    #[test]
    fn a_question_is_an_elicitation_under_its_own_id() {
        let requests = serde_json::to_value(asked(&[question(&["yes", "no"])])).unwrap();
        assert_eq!(requests["q1"]["method"], "elicitation/create");
        assert_eq!(requests["q1"]["params"]["message"], "Go on?");
        let field = &requests["q1"]["params"]["requestedSchema"]["properties"][FIELD];
        assert_eq!(field["enum"], json!(["yes", "no"]), "{requests}");
        let open = serde_json::to_value(asked(&[question(&[])])).unwrap();
        assert!(open["q1"]["params"]["requestedSchema"]["properties"][FIELD].get("enum").is_none(), "{open}");
    }

    #[test]
    fn only_what_was_accepted_is_an_answer() {
        let read = |options: &[&str], response: Value| {
            let responses = InputResponses::from([("q1".to_owned(), response)]);
            answers(&[question(options)], &responses).pop().map(|answer| (answer.option, answer.text))
        };
        let yes = json!({ "action": "accept", "content": { FIELD: "yes" } });
        assert_eq!(read(&["yes", "no"], yes.clone()), Some((Some("yes".to_owned()), None)));
        assert_eq!(read(&[], yes), Some((None, Some("yes".to_owned()))));
        assert_eq!(read(&["yes"], json!({ "action": "decline" })), None);
        assert_eq!(read(&["yes"], json!({ "action": "accept", "content": { FIELD: 7 } })), None);
        assert!(answers(&[question(&[])], &InputResponses::new()).is_empty());
    }
}
