//! The same answers on every transport: HTTP, a relay, a process of its own, and plain calls.

use serde_json::{Value, json};

use crate::stdio::Client;

use super::stage::{Stage, call_over_stdio, text};

#[derive(Clone, Copy, Debug)]
enum Wire {
    Http,
    Relay,
    NoDaemon,
    Plain,
}

/// The content of an answer, without what differs from call to call.
fn shape(said: &Value) -> Value {
    let mut shape = said.clone();
    for field in ["waited_ms", "session_token"] {
        if let Some(fields) = shape.as_object_mut() {
            fields.remove(field);
        }
    }
    if let Some(messages) = shape["messages"].as_array_mut() {
        for message in messages {
            message["id"] = json!("m");
            message["created_at"] = json!("then");
        }
    }
    for field in ["task_id", "revision"] {
        if !shape["task"][field].is_null() {
            shape["task"][field] = json!("same");
        }
    }
    shape
}

fn answers(stage: &Stage, wire: Wire) -> Vec<Value> {
    let agent = format!("{wire:?}").to_lowercase();
    let passkey = stage.agent(&agent);
    let (chat, task) = (stage.open_chat(&agent), stage.task(&agent));
    let mut child = match wire {
        Wire::Relay => Some(Client::legacy(&stage.home, &[])),
        Wire::NoDaemon => Some(Client::legacy(&stage.home, &["--no-daemon"])),
        Wire::Http | Wire::Plain => None,
    };
    let mut call = |tool: &str, arguments: Value| -> Value {
        match (wire, &mut child) {
            (Wire::Http, _) => {
                let unauthenticated = super::stage::Agent { http: stage.http().clone(), token: None };
                unauthenticated.call(tool, arguments).body
            }
            (Wire::Plain, _) => stage.rest("POST", &format!("/tools/{tool}"), &arguments).1,
            (_, Some(client)) => call_over_stdio(client, None, tool, arguments).body,
            (_, None) => unreachable!(),
        }
    };
    let begin = |call: &mut dyn FnMut(&str, Value) -> Value| {
        text(
            &call("authenticate", json!({ "agent_id": agent, "passkey": passkey, "project_id": "default" }))["session_token"],
        )
    };
    let working = begin(&mut call);
    let talking = begin(&mut call);
    let mut said = Vec::new();
    let next = |token: &str| json!({ "session_token": token, "timeout_seconds": 0 });
    said.push(call("get_next_action", next(&working)));
    said.push(call("get_next_action", next(&talking)));
    stage.say(&chat, "hello");
    said.push(call("get_next_action", next(&talking)));
    said.push(call("get_next_action", next(&talking)));
    stage.steer(&task, "paused");
    said.push(call("get_next_action", next(&working)));
    call("get_notifications", json!({ "session_token": working }));
    said.push(call("get_next_action", next(&working)));
    stage.steer(&task, "cancelled");
    call("get_notifications", json!({ "session_token": working }));
    said.push(call("get_next_action", next(&working)));
    stage.good("POST", &format!("/chats/{chat}/end"), &json!({}));
    said.push(call("get_next_action", next(&talking)));
    said.iter().map(|said| shape(&serde_json::from_str(&said.to_string().replace(&agent, "agent")).unwrap())).collect()
}

#[test]
fn every_branch_is_the_same_on_every_transport() {
    let stage = Stage::new();
    let first = answers(&stage, Wire::Http);
    let actions: Vec<&str> = first.iter().map(|said| said["action"].as_str().unwrap_or("notice")).collect();
    assert_eq!(actions, ["work", "wait", "respond", "respond", "notice", "wait", "end_session", "end_session"]);
    assert_eq!(first[3]["messages"][0]["redelivered"], true);
    for wire in [Wire::Relay, Wire::NoDaemon, Wire::Plain] {
        let others = answers(&stage, wire);
        for (one, other) in first.iter().zip(&others) {
            assert_eq!(one, other, "{wire:?}");
        }
    }
}

#[test]
fn a_long_wait_for_the_next_action_goes_on_as_a_native_task() {
    use crate::http::modern;
    let stage = Stage::new();
    let (chat, agent) = stage.chatting("worker");
    let extension = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
    let follow = |mut body: Value| {
        body["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = extension.clone();
        body
    };
    let arguments = json!({ "session_token": agent.token, "timeout_seconds": 600 });
    let call = follow(modern("tools/call", json!({ "name": "get_next_action", "arguments": arguments })));
    let asked = |body: &Value| agent.http.mcp_at("/mcp?tools=all", body).json();
    let made = asked(&call);
    assert_eq!(
        (made["result"]["resultType"].as_str(), made["result"]["status"].as_str()),
        (Some("task"), Some("working"))
    );
    let id = text(&made["result"]["taskId"]);
    let get = follow(modern("tasks/get", json!({ "taskId": id })));
    assert_eq!(asked(&get)["result"]["status"], "working");
    stage.say(&chat, "hello");
    let done = asked(&get);
    assert_eq!(done["result"]["status"], "completed", "{done}");
    let said = &done["result"]["result"]["structuredContent"];
    assert_eq!((said["action"].as_str(), said["arrived"].as_bool()), (Some("wait"), Some(true)));
    let taken = agent.next(json!({ "timeout_seconds": 0 }));
    assert_eq!(
        (taken.seqs(), taken.body["messages"][0]["redelivered"].as_bool()),
        (vec![1], Some(false)),
        "it consumed nothing"
    );
}
