//! Relays outlive their daemon, share it, and leave work alone when their client dies.

use std::io::Write;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};

use crate::home::{Home, kill, until};
use crate::http::modern;
use crate::stdio::Client;

const SOON: Duration = Duration::from_secs(15);

fn waiting(task: &str) -> Value {
    json!({ "name": "get_task_status", "arguments": { "task_id": task, "timeout": 40, "since": 1 } })
}

/// A wait whose daemon is killed goes on with the next one, and so does every later call.
fn outlives_its_daemon(client: &mut Client, home: &Home, with_meta: impl Fn(Value) -> Value) {
    let (old, http) = home.relayed();
    let task = http.submit(600_000);
    until("the task runs", SOON, || (http.status_of(&task) == "running").then_some(()));
    let open = client.request("tools/call", &with_meta(waiting(&task)));
    until("a client waits", SOON, || {
        let key = format!("Bearer {}", http.token);
        let headers = [("Host", "127.0.0.1"), ("Authorization", key.as_str())];
        http.send("GET", "/metrics", &headers, b"").body.contains("matsu_waiters 1").then_some(())
    });
    kill(old);
    let (_, http) = until("another daemon", SOON, || home.announced().filter(|(pid, _)| *pid != old));
    until("the job runs again", SOON, || (http.status_of(&task) == "running").then_some(()));
    let stop = json!({ "name": "cancel_task", "arguments": { "task_id": task, "mode": "immediate" } });
    client.request("tools/call", &with_meta(stop));
    let answer = client.answer(open);
    let status = answer["result"]["structuredContent"]["status"].as_str().unwrap_or_else(|| panic!("{answer}"));
    assert!(["running", "cancelled"].contains(&status), "{answer}");

    let asked = json!({ "name": "get_task_status", "arguments": { "task_id": task } });
    let id = client.request("tools/call", &with_meta(asked));
    let answer = client.answer(id);
    assert_eq!(answer["result"]["structuredContent"]["status"], "cancelled", "{answer}");
}

#[test]
fn a_legacy_client_outlives_its_daemon() {
    let home = Home::new();
    let mut client = Client::legacy(&home, &[]);
    outlives_its_daemon(&mut client, &home, |params| params);
}

#[test]
fn a_modern_client_outlives_its_daemon() {
    let home = Home::new();
    let mut client = Client::start(&home, &[]);
    outlives_its_daemon(&mut client, &home, |params| modern("tools/call", params)["params"].clone());
}

#[test]
fn two_relays_share_one_daemon() {
    let home = Home::new();
    let (mut one, mut other) = (Client::legacy(&home, &[]), Client::legacy(&home, &[]));
    let (pid, http) = home.relayed();
    let task = http.submit(600_000);
    for client in [&mut one, &mut other] {
        assert_eq!(client.call("get_task_status", &json!({}))["tasks"][0]["task_id"], task.as_str());
    }
    // What one has been sent, the other has not.
    assert_eq!(one.call("get_task_status", &json!({ "task_id": task, "timeout": 1 }))["returned_because"], "timeout");
    one.kill();
    assert_eq!(other.call("cancel_task", &json!({ "task_id": task, "mode": "immediate" }))["status"], "cancelled");
    assert_eq!(home.announced().map(|(pid, _)| pid), Some(pid));
}

#[test]
fn without_a_daemon_everything_is_in_one_process() {
    let home = Home::new();
    let mut client = Client::legacy(&home, &["--no-daemon"]);
    assert_eq!(client.call("get_task_status", &json!({}))["total"], 0);
    assert!(home.announced().is_none(), "no daemon was started");
    assert!(!home.data_dir().join("matsu.sock").exists());
}

#[test]
fn a_client_that_dies_loses_nothing() {
    let home = Home::new();
    let mut client = Client::legacy(&home, &[]);
    let (_, http) = home.relayed();
    let task = http.submit(8_000);
    client.call("get_task_status", &json!({ "task_id": task }));
    client.request("tools/call", &waiting(&task));
    client.kill();
    until("the wait has ended with its client", SOON, || {
        let key = format!("Bearer {}", http.token);
        let headers = [("Host", "127.0.0.1"), ("Authorization", key.as_str())];
        http.send("GET", "/metrics", &headers, b"").body.contains("matsu_waiters 0").then_some(())
    });
    assert_eq!(http.status_of(&task), "running");

    let mut next = Client::legacy(&home, &[]);
    let listed = next.call("get_task_status", &json!({}));
    assert_eq!(listed["tasks"][0]["task_id"], task.as_str(), "{listed}");
    let since = &listed["next"]["since"][&task];
    let ended = next.call("get_task_status", &json!({ "task_id": task, "timeout": 20, "since": since }));
    assert_eq!(ended["status"], "completed", "{ended}");
}

#[test]
fn a_client_that_closes_its_output_gets_the_answers_that_come_at_once() {
    let home = Home::new();
    let _daemon = home.serve();
    let mut relay = home.command(&["mcp"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let hello = json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": { "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } },
    });
    let mut input = relay.stdin.take().unwrap();
    writeln!(input, "{hello}").unwrap();
    drop(input);
    let said = String::from_utf8(relay.wait_with_output().unwrap().stdout).unwrap();
    assert!(said.contains("\"serverInfo\""), "{said:?}");
}
