//! Runs that ask: parked with their permit free and their clock stopped, answered through the same tool.

use serde_json::{Value, json};

use super::{Bench, SOON, end_of, reaches, start, start_with};
use crate::home::until;
use crate::http::{Http, modern};

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

/// A request of a client that follows native tasks and, perhaps, can ask its user.
fn native(http: &Http, method: &str, params: Value, can_ask: bool) -> Value {
    let mut client = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
    if can_ask {
        client["elicitation"] = json!({ "form": {} });
    }
    let mut body = modern(method, params);
    body["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = client;
    http.mcp(&body, &[]).json()
}

#[test]
fn a_question_reaches_the_clients_own_user_as_a_native_task() {
    let bench = Bench::new();
    let mut client = bench.client();
    let task = start_with(&mut client, ASKS, json!({ "cli_name": "events" }));
    reaches(&mut client, &task, "input_required");
    let (_, http) = bench.home.relayed();
    let get = |can_ask| native(&http, "tasks/get", json!({ "taskId": task }), can_ask)["result"].clone();
    let mute = get(false);
    assert_eq!(mute["status"], "working", "who cannot ask is asked nothing: {mute}");
    assert!(mute["statusMessage"].as_str().is_some_and(|words| words.contains("get_task_status")), "{mute}");
    let asked = get(true);
    assert_eq!(asked["status"], "input_required", "{asked}");
    let form = &asked["inputRequests"]["q1"];
    assert_eq!(
        (&form["method"], &form["params"]["message"]),
        (&json!("elicitation/create"), &json!("Go on?")),
        "{asked}"
    );
    assert_eq!(form["params"]["requestedSchema"]["properties"]["answer"]["enum"], json!(["yes", "no"]), "{asked}");

    let update =
        |responses: Value| native(&http, "tasks/update", json!({ "taskId": task, "inputResponses": responses }), true);
    let said = |answer: &str| json!({ "q1": { "action": "accept", "content": { "answer": answer } } });
    assert!(update(json!({ "q9": { "action": "accept", "content": {} } }))["result"].is_object());
    assert!(update(json!({ "q1": { "action": "decline" } }))["result"].is_object());
    assert_eq!(get(true)["status"], "input_required", "declined here, it is open for others");
    let refused = update(said("perhaps"));
    assert!(refused["error"]["message"].as_str().is_some_and(|why| why.contains("one of yes, no")), "{refused}");
    let taken = update(said("yes"));
    assert!(taken["result"].is_object(), "{taken}");
    let ended = until("the run goes on", SOON, || Some(get(true)).filter(|now| now["status"] == "completed"));
    assert!(ended["result"]["content"][0]["text"].as_str().is_some_and(|text| text.contains("went on")), "{ended}");
}
