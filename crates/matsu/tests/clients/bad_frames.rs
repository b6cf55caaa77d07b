//! Frames on stdin that no proper client writes: refused, and the connection goes on.

use matsu_core::limits::FRAME_BYTES_MAX;
use serde_json::json;

use crate::home::Home;
use crate::stdio::Client;

/// Through the relay and in one process: the same answers.
fn survives(args: &[&str]) {
    let home = Home::new();
    let mut client = Client::legacy(&home, args);
    let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    let unasked = r#"{"jsonrpc":"2.0","id":77,"result":{}}"#;
    let bad = [
        ("nonsense", Some(-32700)),
        ("{", Some(-32700)),
        ("\u{0}\u{7f}", Some(-32700)),
        (&deep, Some(-32700)),
        ("[]", Some(-32600)),
        ("[1,2]", Some(-32600)),
        ("{}", Some(-32600)),
        ("null", Some(-32600)),
        (r#"{"jsonrpc":"1.0","method":7}"#, Some(-32600)),
        ("", None),
        ("   ", None),
        (unasked, None),
        (r#"{"jsonrpc":"2.0","method":"notifications/strange"}"#, None),
    ];
    for (line, code) in bad {
        client.line(line);
        if let Some(code) = code {
            assert_eq!(client.next()["error"]["code"], code, "{line:.20}");
        }
        let said = client.call("get_task_status", &json!({}));
        assert_eq!(said["ok"], true, "after {line:.20}: {said}");
    }
    client.bytes(b"\xff\xfe no text");
    assert_eq!(client.next()["error"]["code"], -32700);
    // A request with an id is answered under that id.
    client.line(&format!(r#"{{"jsonrpc":"2.0","id":4711,"method":"tools/call","params":{deep}}}"#));
    assert_eq!(client.answer(4711)["error"]["code"], -32600);
    let id = client.request("no/such", &json!({}));
    assert_eq!(client.answer(id)["error"]["code"], -32601);
    let id = client.request("tools/call", &json!({ "name": "no_such_tool", "arguments": {} }));
    assert_eq!(client.answer(id)["error"]["code"], -32602);
    let id = client.request("tools/call", &json!({ "arguments": 7 }));
    assert_eq!(client.answer(id)["error"]["code"], -32602);
    let id = client
        .request("tools/call", &json!({ "name": "cancel_task", "arguments": { "task_id": "x".repeat(5 << 20) } }));
    let answer = client.answer(id);
    assert!(answer["error"].is_object() || answer["result"]["isError"] == true, "{answer:.200}");
    // Longer than any frame may be: dropped as it comes, so it costs no memory.
    client.bytes(&vec![b'x'; FRAME_BYTES_MAX + 1]);
    let answer = client.next();
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(null), &json!(-32600)), "{answer}");
    assert!(answer["error"]["message"].as_str().unwrap().contains(&FRAME_BYTES_MAX.to_string()), "{answer}");
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
