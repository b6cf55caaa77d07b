//! A program that asks before it does what it may not: parked, answered, and on it goes.

use std::time::Duration;

use matsu_testkit::model_server::Reply;
use serde_json::{Value, json};

use super::five::{Bed, for_each_of};
use crate::home::until;

const COMMAND: &str = "python3 -c 'print(6 * 7)' && touch made.txt";

/// Asks its question, is answered, and has ended when this returns: what its model received about the command.
fn asked(bed: &Bed, answer: Value) -> String {
    let task = bed.start(json!({ "message": "run it", "mode": "workspace-write" }));
    let question = until("it asks", Duration::from_secs(60), || {
        let said = bed.daemon.http().call("get_task_status", &json!({ "task_id": task }));
        let said = &said["result"]["structuredContent"];
        assert!(said["status"] != "failed" && said["status"] != "completed", "{said}");
        (said["status"] == "input_required").then(|| said["question"].clone())
    });
    assert_eq!(question["text"], format!("Allow `{COMMAND}`?"), "{question}");
    assert_eq!(question["options"], json!(["allow", "deny"]), "{question}");
    let mut answer = answer;
    answer["task_id"] = json!(task);
    answer["job_id"] = question["job_id"].clone();
    answer["question_id"] = question["id"].clone();
    let said = bed.daemon.http().call("answer_question", &answer);
    assert_eq!(said["result"]["structuredContent"]["ok"], true, "{said}");
    bed.completes(&task, "finished");
    let requests = bed.model.asked();
    let results = requests.iter().rev().find_map(|request| request.asked.as_ref()?.results.last().cloned());
    results.unwrap_or_default()
}

#[test]
fn a_question_parks_and_its_answer_goes_on() {
    for_each_of(
        "a question stops the run until it is answered",
        |case| case.name == "claude",
        |case, place| {
            let bed = Bed::with(case, place, false, "", |asked| match asked.results.is_empty() {
                true => Reply::tool("Bash", json!({ "command": COMMAND, "description": "counts" })),
                false => Reply::text("finished"),
            });
            let denied = asked(&bed, json!({ "text": "not today" }));
            assert!(denied.contains("not today"), "{denied}");
            assert!(!bed.home.path("work/made.txt").exists());
            let allowed = asked(&bed, json!({ "option": "allow" }));
            assert!(allowed.contains("42"), "{allowed}");
            assert!(bed.home.path("work/made.txt").exists());
        },
    );
}
