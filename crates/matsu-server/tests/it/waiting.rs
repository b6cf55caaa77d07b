//! Held calls: as long as they ask for, in time that is not waited out.

use std::time::Duration;

use axum::http::StatusCode;
use matsu_core::access::Role;
use serde_json::{Value, json};

use crate::harness::Server;
use crate::mcp::connected;

#[tokio::test(start_paused = true)]
async fn silence_is_waited_out_in_one_call_of_thirty_seconds_or_as_asked() {
    let server = Server::new().await;
    let mut client = connected(&server, Role::Admin).await;
    let owner = server.token(Role::Admin, None).await;
    let made = server.call("POST", "/api/v1/agents", Some(&owner), Some(&json!({ "id": "worker" }))).await;
    assert_eq!(made.status, StatusCode::CREATED, "{made:?}");
    let opened = server.call("POST", "/api/v1/chats", Some(&owner), Some(&json!({ "agent_id": "worker" }))).await;
    assert!(opened.status.is_success(), "{opened:?}");
    let passkey = &made.body["passkey"];
    let shown = json!({ "agent_id": "worker", "passkey": passkey, "project_id": "default" });
    let begun = client.call("authenticate", shown).await;
    let token = begun["structuredContent"]["session_token"].clone();
    for (timeout, seconds) in [(Value::Null, 30), (json!(2), 2)] {
        let mut arguments = json!({ "session_token": token });
        if !timeout.is_null() {
            arguments["timeout_seconds"] = timeout;
        }
        let began = tokio::time::Instant::now();
        let reply = client.call("get_next_action", arguments).await;
        let reply = &reply["structuredContent"];
        assert_eq!((&reply["action"], &reply["timeout_seconds"]), (&json!("wait"), &json!(seconds)), "{reply}");
        let took = began.elapsed();
        let asked = Duration::from_secs(seconds);
        assert!(took >= asked && took < asked + Duration::from_secs(1), "{took:?} instead of {asked:?}");
        assert!(reply["waited_ms"].as_u64().unwrap() >= seconds * 1_000, "{reply}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_wait_over_rest_ends_with_its_task_or_its_time() {
    let server = Server::new().await;
    let owner = server.token(Role::Admin, None).await;
    let wish = json!({ "jobs": [{ "kind": "sleep", "input": { "ms": 20_000 } }] });
    let made = server.call("POST", "/test/tasks", Some(&owner), Some(&wish)).await;
    assert_eq!(made.status, StatusCode::OK, "{made:?}");
    let id = made.body["task"]["task_id"].as_str();
    let id = id.unwrap_or_else(|| panic!("{made:?}"));
    let early = server.get(&format!("/api/v1/tasks/{id}/wait?timeout=5&since=1&wait_for=all"), &owner).await;
    assert_eq!(early["returned_because"], "timeout", "{early}");
    let late = server.get(&format!("/api/v1/tasks/{id}/wait?timeout=40&since=1&wait_for=all"), &owner).await;
    assert_eq!(late["task"]["status"], "completed", "{late}");
    assert!(late["waited_ms"].as_u64().unwrap() < 20_000, "{late}");
}
