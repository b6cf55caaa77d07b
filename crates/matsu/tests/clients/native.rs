//! Waits as native tasks on the real binary: cancelled twice, answered after a restart, and never taken for the work.

use std::time::Duration;

use serde_json::{Value, json};

use crate::home::{Home, until};
use crate::http::{Http, modern};

/// A request of a client that follows native tasks.
fn ask(http: &Http, method: &str, params: Value) -> Value {
    let mut body = modern(method, params);
    let follows = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
    body["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = follows;
    let reply = http.mcp(&body, &[]).json();
    assert!(reply["result"].is_object(), "{method}: {reply}");
    reply["result"].clone()
}

/// A wait that is longer than is waited inline.
fn long_wait(http: &Http, task: &str) -> String {
    let arguments = json!({ "task_id": task, "timeout": 60, "since": 1 });
    let created = ask(http, "tools/call", json!({ "name": "get_task_status", "arguments": arguments }));
    assert_eq!((&created["resultType"], &created["status"]), (&json!("task"), &json!("working")), "{created}");
    created["taskId"].as_str().unwrap().to_owned()
}

#[test]
fn a_wait_as_a_task_outlives_the_daemon_and_ends_alone() {
    let home = Home::new();
    let daemon = home.serve();
    let http = daemon.http();
    let task = http.submit(600_000);
    until("the task runs", Duration::from_secs(10), || (http.status_of(&task) == "running").then_some(()));
    let (kept, given_up) = std::thread::scope(|scope| {
        let kept = scope.spawn(|| long_wait(http, &task));
        let given_up = long_wait(http, &task);
        (kept.join().unwrap(), given_up)
    });
    assert_ne!(kept, task, "a wait has an id of its own");
    for _ in 0..2 {
        assert_eq!(ask(http, "tasks/cancel", json!({ "taskId": given_up }))["resultType"], "complete");
    }
    assert_eq!(ask(http, "tasks/get", json!({ "taskId": given_up }))["status"], "cancelled");
    assert_eq!(http.status_of(&task), "running", "only the wait has ended");
    let listed = http.call("get_task_status", &json!({}));
    let listed = listed["result"]["structuredContent"]["tasks"].as_array().unwrap();
    assert_eq!(listed.len(), 1, "waits are not listed: {listed:?}");

    // As a power cut would.
    drop(daemon);
    let daemon = home.serve();
    let http = daemon.http();
    assert_eq!(ask(http, "tasks/get", json!({ "taskId": given_up }))["status"], "cancelled");
    assert_eq!(ask(http, "tasks/get", json!({ "taskId": kept }))["status"], "working");
    http.call("cancel_task", &json!({ "task_id": task, "mode": "immediate" }));
    let ended = ask(http, "tasks/get", json!({ "taskId": kept }));
    assert_eq!(ended["status"], "completed", "{ended}");
    let said = &ended["result"]["structuredContent"];
    assert_eq!((&said["task_id"], &said["status"]), (&json!(task), &json!("cancelled")), "{ended}");
}

#[test]
fn a_wait_as_a_task_ends_with_what_was_waited_for() {
    let home = Home::new();
    let daemon = home.serve();
    let http = daemon.http();
    let (slow, never) = (http.submit(5_000), http.submit(600_000));
    let arguments = json!({ "task_ids": [slow, never], "timeout": 60, "since": { &slow: 1, &never: 1 } });
    let created = ask(http, "tools/call", json!({ "name": "get_task_status", "arguments": arguments }));
    let wait = created["taskId"].as_str().unwrap_or_else(|| panic!("{created}"));
    let ended = until("the wait is over", Duration::from_secs(20), || {
        Some(ask(http, "tasks/get", json!({ "taskId": wait }))).filter(|now| now["status"] == "completed")
    });
    let said = &ended["result"]["structuredContent"];
    assert_eq!((&said["ok"], &said["tasks"][0]["task_id"]), (&json!(true), &json!(slow)), "{ended}");
    assert_eq!((&said["tasks"][0]["status"], &said["tasks"][1]["status"]), (&json!("completed"), &json!("running")));
    assert!(said["tasks"][0]["result"].is_string(), "its own result: {ended}");
}

/// Some clients leave the header out on `tasks/…`, where it repeats what the body says.
#[test]
fn a_task_is_found_without_the_header_that_names_it() {
    let home = Home::new();
    let daemon = home.serve();
    let http = daemon.http();
    let task = http.submit(0);
    let mut body = modern("tasks/get", json!({ "taskId": task }));
    body["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] =
        json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
    let found = http.mcp(&body, &[("Mcp-Name", "")]).json();
    assert_eq!(found["result"]["taskId"], json!(task), "{found}");
    let wrong = http.mcp(&body, &[("Mcp-Name", "task_other")]);
    assert_eq!((wrong.status, &wrong.json()["error"]["code"]), (400, &json!(-32020)), "a wrong one is refused");
    let mut call = modern("tools/call", json!({ "name": "list_agents", "arguments": { "probe": false } }));
    assert_eq!(http.mcp(&call, &[("Mcp-Name", "")]).status, 400, "a call is refused without it");
    call["params"]["name"] = json!("use_agents");
    let elsewhere = http.mcp(&call, &[]).json();
    assert!(elsewhere["error"]["message"].as_str().is_some_and(|why| why.contains("tools=agents")), "{elsewhere}");
}

#[test]
fn methods_that_are_not_declared_do_not_exist() {
    let home = Home::new();
    let daemon = home.serve();
    let methods = ["ping", "prompts/list", "resources/list", "resources/templates/list", "completion/complete"];
    for method in methods {
        let params = match method {
            "completion/complete" => {
                json!({ "ref": { "type": "ref/prompt", "name": "x" }, "argument": { "name": "a", "value": "b" } })
            }
            _ => json!({}),
        };
        let reply = daemon.http().mcp(&modern(method, params), &[]);
        assert_eq!((reply.status, &reply.json()["error"]["code"]), (404, &json!(-32601)), "{method}: {reply:?}");
    }
}
