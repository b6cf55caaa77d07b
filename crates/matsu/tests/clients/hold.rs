//! How long a call is held: what the server is set to, what the client can bear, and longer while progress feeds it.

use serde_json::{Value, json};

use crate::home::Home;
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

    // What was said about this very client counts more than what clients in general can bear.
    let mut client = Client::start(&home, &["--hold", "2"]);
    let id = client.request("tools/call", &fed["params"]);
    let (hold, _) = held(&client.answer(id));
    assert_eq!(hold, 2);
}
