//! Runs that ask: parked with their permit free and their clock stopped, answered through the same tool.

use serde_json::json;

use super::{Bench, end_of, reaches, start, start_with};

const ASKS: &str = r#"echo '{"type":"question","id":"q1","text":"Go on?","options":["yes","no"]}'
read answer
case "$answer" in *'"option":"yes"'*) echo '{"type":"result","text":"went on"}';; *) echo "{\"type\":\"result\",\"error\":\"stopped\"}";; esac
"#;

#[test]
fn a_question_parks_the_run_frees_its_place_and_its_answer_goes_on() {
    let bench = Bench::with("[slots]\nagent_cli = 1\n");
    let mut client = bench.client();
    let task = start_with(&mut client, ASKS, json!({ "cli_name": "events", "timeout": 2 }));
    let asking = reaches(&mut client, &task, "input_required");
    assert_eq!(asking["question"], json!({ "id": "q1", "text": "Go on?", "options": ["yes", "no"] }), "{asking}");
    // With a limit of one: its place is free while it waits, and its two seconds stand still.
    let other = start(&mut client, "sleep 3; echo other");
    assert_eq!(end_of(&mut client, &other)["result"], "other\n");
    for (answer, why) in [
        (json!({ "id": "q2", "option": "yes" }), "not open"),
        (json!({ "id": "q1", "option": "perhaps" }), "one of yes, no"),
        (json!({ "id": "q1" }), "either option or text"),
    ] {
        let said = client.call("get_task_status", &json!({ "task_id": task, "answer": answer }));
        assert!(said["error"].as_str().is_some_and(|error| error.contains(why)), "{said}");
    }
    let answer =
        json!({ "task_id": task, "answer": { "id": "q1", "option": "yes" }, "timeout": 20, "wait_for": "all" });
    let said = client.call("get_task_status", &answer);
    assert_eq!(said["ok"], true, "{said}");
    let end = end_of(&mut client, &task);
    assert_eq!((end["status"].as_str(), end["result"].as_str()), (Some("completed"), Some("went on")), "{end}");
}

#[test]
fn a_run_that_asks_can_be_cancelled() {
    let bench = Bench::new();
    let mut client = bench.client();
    let task = start_with(&mut client, ASKS, json!({ "cli_name": "events" }));
    reaches(&mut client, &task, "input_required");
    let said = client.call("cancel_task", &json!({ "task_id": task }));
    assert_eq!(said["status"], "cancelled", "{said}");
}
