//! How long a call is held: what the server is set to, what the client can bear, and longer while progress feeds it.

use serde_json::{Value, json};

use crate::home::{Home, until};
use crate::http::tool_call;
use crate::stdio::Client;

/// Waits for something that does not come; what the reply says about it.
fn held(reply: &Value) -> (u64, u64) {
    let said = &reply["result"]["structuredContent"];
    assert_eq!(said["returned_because"], "timeout", "{reply}");
    (said["hold_max"].as_u64().unwrap(), said["waited_ms"].as_u64().unwrap())
}

#[test]
fn a_call_that_is_fed_with_progress_is_held_longer() {
    let home = Home::new();
    let daemon = home.serve_with(&[("MATSU_WAIT_HOLD_MAX", "1"), ("MATSU_WAIT_HOLD_MAX_PROGRESS", "3")]);
    let http = daemon.http();
    let wait = json!({ "task_id": http.submit(600_000), "timeout": 30, "since": 100 });
    let silent = tool_call("get_task_status", &wait);
    let mut fed = silent.clone();
    fed["params"]["_meta"]["progressToken"] = json!("p");

    let (hold, waited) = held(&http.mcp(&silent, &[]).json());
    assert!(hold == 1 && (1_000..3_000).contains(&waited), "{hold} {waited}");
    let reply = http.mcp(&fed, &[]);
    let (hold, waited) = held(&reply.json());
    assert!(hold == 3 && waited >= 3_000, "{hold} {waited}");
    assert!(reply.body.contains("notifications/progress"), "{reply:?}");

    // The limit of this very client counts more than what clients in general can bear.
    let mut client = Client::start(&home, &["--hold", "2"]);
    let id = client.request("tools/call", &fed["params"]);
    let (hold, _) = held(&client.answer(id));
    assert_eq!(hold, 2);
}

/// A client on stdio that gives itself this name.
fn named(home: &Home, name: &str, more: &[&str]) -> Client {
    let mut client = Client::start(home, more);
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": name, "version": "1" } });
    let id = client.request("initialize", &params);
    client.answer(id);
    client.line(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    client
}

#[test]
fn a_known_client_is_held_as_long_as_it_can_be_without_being_set_up() {
    let home = Home::new();
    let daemon = home.serve();
    for (name, more, hold) in [
        ("codex-mcp-client", &[][..], Some(280)),
        ("gemini-cli-mcp-client", &[], Some(580)),
        ("claude-code", &[], Some(3_580)),
        ("Cursor", &[], Some(40)),
        ("something else", &[], Some(50)),
        ("Cursor", &["--hold", "100"], Some(100)),
    ] {
        let mut client = named(&home, name, more);
        let task = daemon.http().submit(100);
        // The reply comes with the end of the task, and says how long it would have been held.
        let said = client.call("get_task_status", &json!({ "task_id": task, "timeout": 3_600, "since": 1 }));
        assert_eq!((said["hold_max"].as_u64(), &said["status"]), (hold, &json!("completed")), "{name}: {said}");
    }
}

#[test]
fn a_client_that_cuts_its_calls_is_held_shorter_from_then_on() {
    let home = Home::new();
    let daemon = home.serve();
    let task = daemon.http().submit(600_000);
    let arguments = json!({ "task_id": task, "timeout": 60, "since": 100 });
    let call = json!({ "name": "get_task_status", "arguments": arguments });
    // Two calls that are given up after the same time show a limit, whichever processes of the client they come from.
    let mut clients = [named(&home, "impatient", &[]), named(&home, "impatient", &[])];
    let ids = clients.each_mut().map(|client| client.request("tools/call", &call));
    std::thread::sleep(std::time::Duration::from_millis(10_300));
    for (client, id) in clients.iter_mut().zip(ids) {
        let cancelled = json!({ "requestId": id, "reason": "timed out" });
        client.line(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled }).to_string());
    }
    until("the limit is noticed", std::time::Duration::from_secs(10), || {
        daemon.printed().contains("a client ended two calls early").then_some(())
    });
    let done = daemon.http().submit(0);
    let arguments = json!({ "task_id": done, "timeout": 60, "since": 1 });
    let said = clients[0].call("get_task_status", &arguments);
    assert!((8..10).contains(&said["hold_max"].as_u64().unwrap_or(0)), "{said}");
    // Another client of the same user is held as before.
    let said = named(&home, "patient", &[]).call("get_task_status", &arguments);
    assert_eq!(said["hold_max"].as_u64(), Some(50), "{said}");
}
