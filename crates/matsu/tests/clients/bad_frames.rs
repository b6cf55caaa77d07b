//! Frames on stdin that no proper client writes: refused, and the connection goes on.

use serde_json::json;

use crate::home::Home;
use crate::stdio::Client;

/// Through the relay and in one process: the same answers.
fn survives(args: &[&str]) {
    let home = Home::new();
    let mut client = Client::legacy(&home, args);
    let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    let unasked = r#"{"jsonrpc":"2.0","id":77,"result":{}}"#;
    let bad = ["", "   ", "nonsense", "{", "[]", "[1,2]", "{}", "null", "\u{0}\u{7f}", unasked, &deep];
    for line in bad {
        client.line(line);
        let said = client.call("get_task_status", &json!({}));
        assert_eq!(said["ok"], true, "after {line:.20}: {said}");
    }
    let id = client.request("no/such", &json!({}));
    assert_eq!(client.answer(id)["error"]["code"], -32601);
    let id = client.request("tools/call", &json!({ "name": "no_such_tool", "arguments": {} }));
    assert_eq!(client.answer(id)["error"]["code"], -32602);
    let id = client.request("tools/call", &json!({ "arguments": 7 }));
    assert!(client.answer(id)["error"]["code"].as_i64().is_some());
    let id = client
        .request("tools/call", &json!({ "name": "cancel_task", "arguments": { "task_id": "x".repeat(5 << 20) } }));
    let answer = client.answer(id);
    assert!(answer["error"].is_object() || answer["result"]["isError"] == true, "{answer:.200}");
    assert_eq!(client.call("get_task_status", &json!({}))["ok"], true);
}

#[test]
fn a_relay_survives_bad_frames() {
    survives(&[]);
}

#[test]
fn one_process_survives_bad_frames() {
    survives(&["--no-daemon"]);
}
