//! Several calls on one connection at the same time: calls wait for no others, and a cancelled one is not answered.

use std::time::Duration;

use axum::http::StatusCode;
use matsu_core::access::Role;
use serde_json::{Value, json};

use crate::harness::Server;
use crate::mcp::{Client, connected};

/// A job that sleeps this long, and its task.
async fn sleeping(server: &Server, ms: u64) -> String {
    let owner = server.token(Role::Admin, None).await;
    let wish = json!({ "jobs": [{ "kind": "sleep", "input": { "ms": ms } }] });
    let made = server.call("POST", "/test/tasks", Some(&owner), Some(&wish)).await;
    assert_eq!(made.status, StatusCode::OK, "{made:?}");
    made.body["task"]["task_id"].as_str().unwrap_or_else(|| panic!("{made:?}")).to_owned()
}

async fn send(client: &mut Client, id: &str, arguments: Value) {
    let params = json!({ "name": "get_task_status", "arguments": arguments });
    client.write(&json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })).await;
}

#[tokio::test(start_paused = true)]
async fn a_quick_call_does_not_wait_for_the_open_ones() {
    let server = Server::new().await;
    let mut client = connected(&server, Role::Admin).await;
    client.call("get_task_status", json!({})).await;
    let task = sleeping(&server, 20_000).await;
    for id in ["first wait", "second wait"] {
        send(&mut client, id, json!({ "task_id": task, "timeout": 60 })).await;
    }
    send(&mut client, "quick", json!({ "task_id": task })).await;
    let reply = client.line().await;
    assert_eq!((&reply["id"], &reply["result"]["structuredContent"]["ok"]), (&json!("quick"), &json!(true)), "{reply}");
    let mut ids = Vec::new();
    for _ in 0..2 {
        let reply = client.line().await;
        assert_eq!(reply["result"]["structuredContent"]["status"], "completed", "{reply}");
        ids.push(reply["id"].clone());
    }
    ids.sort_by_key(Value::to_string);
    assert_eq!(ids, ["first wait", "second wait"]);
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_call_is_not_answered_and_ends_its_wait() {
    let server = Server::new().await;
    let mut client = connected(&server, Role::Admin).await;
    client.call("get_task_status", json!({})).await;
    let task = sleeping(&server, 600_000).await;
    send(&mut client, "wait", json!({ "task_id": task, "timeout": 3_600 })).await;
    let params = json!({ "requestId": "wait", "reason": "no longer needed" });
    client.write(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params })).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    send(&mut client, "next", json!({ "task_id": task })).await;
    let reply = client.line().await;
    assert_eq!(reply["id"], "next", "{reply}");
    assert_eq!(reply["result"]["structuredContent"]["status"], "running", "{reply}");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_its_client_no_longer_waits_for_starts_its_work() {
    let server = Server::new().await;
    let mut client = connected(&server, Role::Admin).await;
    client.call("get_task_status", json!({})).await;
    let params = json!({ "name": "create_task", "arguments": { "query": "what is a lease?" } });
    client.write(&json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params })).await;
    drop(client);
    tokio::time::sleep(Duration::from_secs(1)).await;
    let mut next = connected(&server, Role::Admin).await;
    let listed = next.call("get_task_status", json!({})).await;
    assert_eq!(listed["structuredContent"]["total"], 1, "{listed}");
}

#[tokio::test(start_paused = true)]
async fn calls_go_on_while_their_client_reads_nothing() {
    let server = Server::new().await;
    let mut client = connected(&server, Role::Admin).await;
    client.call("get_task_status", json!({})).await;
    let task = sleeping(&server, 20_000).await;
    // More replies than the pipe holds.
    for id in 0..4_000 {
        send(&mut client, &format!("{id:>100}"), json!({ "task_id": task })).await;
    }
    let mut other = connected(&server, Role::Admin).await;
    let reply = other.call("get_task_status", json!({ "task_id": task, "timeout": 60 })).await;
    assert_eq!(reply["structuredContent"]["status"], "completed", "{reply}");
    for id in 0..4_000 {
        let reply = client.line().await;
        assert_eq!(reply["id"], format!("{id:>100}"), "{reply}");
    }
}
