//! Which requests are refused at `/mcp`, and how; and that the server is none the worse for it.

use serde_json::{Value, json};

use crate::home::Home;
use crate::http::{Http, Reply, headers_for, modern, tool_call};

fn listing() -> Value {
    tool_call("get_task_status", &json!({}))
}

#[track_caller]
fn assert_unharmed(http: &Http) {
    let task = http.submit(1);
    let reply = http.call("get_task_status", &json!({ "task_id": task, "timeout": 10, "since": 1 }));
    assert_eq!(reply["result"]["structuredContent"]["status"], "completed", "{reply}");
}

/// Refused before MCP: a problem document with a stable code.
#[track_caller]
fn assert_problem(reply: &Reply, status: u16, code: &str) {
    assert_eq!(reply.status, status, "{reply:?}");
    assert_eq!(reply.json()["error_code"], code, "{reply:?}");
}

/// Refused by MCP: the protocol's own error.
#[track_caller]
fn assert_error(reply: &Reply, status: u16, code: i64) {
    assert_eq!(reply.status, status, "{reply:?}");
    assert_eq!(reply.json()["error"]["code"], code, "{reply:?}");
}

#[test]
fn requests_without_a_token_are_refused() {
    let home = Home::new();
    let daemon = home.serve();
    let http = daemon.http();
    for origin in ["http://evil.example", "https://127.0.0.1.evil.example", "null", "http://localhost.evil.example"] {
        assert_problem(&http.mcp(&listing(), &[("Origin", origin)]), 403, "FORBIDDEN");
    }
    for host in ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:80"] {
        assert_problem(&http.mcp(&listing(), &[("Host", host)]), 403, "FORBIDDEN");
    }
    assert_problem(&http.mcp(&listing(), &[("Authorization", "")]), 401, "UNAUTHORIZED");
    assert_problem(&http.mcp(&listing(), &[("Authorization", "Bearer wrong")]), 401, "UNAUTHORIZED");
    let own = format!("http://{}", http.address);
    assert_eq!(http.mcp(&listing(), &[("Origin", &own)]).status, 200);
    assert_eq!(
        daemon.printed().matches("request refused").count(),
        9,
        "each refusal is logged once: {}",
        daemon.printed()
    );
    assert!(!daemon.printed().contains(&http.token), "no secret is logged");
    assert_unharmed(http);
}

#[test]
fn a_revoked_token_opens_nothing_from_the_next_request_on() {
    let home = Home::new();
    let daemon = home.serve();
    let made = home.run(&["token", "new", "laptop"]);
    let http = Http { token: made["secret"].as_str().unwrap().to_owned(), ..daemon.http().clone() };
    assert_eq!(http.mcp(&listing(), &[]).status, 200);
    home.run(&["token", "revoke", made["token"]["id"].as_str().unwrap()]);
    assert_problem(&http.mcp(&listing(), &[]), 401, "UNAUTHORIZED");
    assert_unharmed(daemon.http());
}

#[test]
fn headers_that_contradict_the_body_are_refused() {
    let home = Home::new();
    let daemon = home.serve();
    let http = daemon.http();
    for (name, value) in [
        ("Mcp-Method", "tools/list"),
        ("Mcp-Method", ""),
        ("Mcp-Name", "cancel_task"),
        ("Mcp-Name", ""),
        ("MCP-Protocol-Version", "2025-11-25"),
    ] {
        assert_error(&http.mcp(&listing(), &[(name, value)]), 400, -32020);
    }
    let mut unknown_version = listing();
    unknown_version["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2031-01-01");
    let reply = http.mcp(&unknown_version, &[("MCP-Protocol-Version", "2031-01-01")]);
    assert_error(&reply, 400, -32022);
    assert!(reply.json()["error"]["data"]["supported"].as_array().unwrap().contains(&json!("2026-07-28")));
    assert_unharmed(http);
}

#[test]
fn what_does_not_exist_is_refused_by_name() {
    let home = Home::new();
    let daemon = home.serve();
    let http = daemon.http();
    let reply = http.mcp(&tool_call("no_such_tool", &json!({})), &[]);
    assert_eq!(reply.json()["error"]["code"], -32602, "{reply:?}");
    assert!(reply.json()["error"]["message"].as_str().unwrap().contains("no_such_tool"));
    for method in ["no/such", "tasks/list", "tasks/result"] {
        assert_error(&http.mcp(&modern(method, json!({ "taskId": "task_x" })), &[]), 404, -32601);
    }
    // A client that did not declare that it follows tasks may not read them.
    let reply = http.mcp(&modern("tasks/get", json!({ "taskId": "task_x" })), &[]);
    assert_eq!(reply.json()["error"]["code"], -32021, "{reply:?}");
    assert_unharmed(http);
}

#[test]
fn bodies_that_are_too_large_or_too_deep_or_no_json_are_refused() {
    let home = Home::new();
    let daemon = home.serve();
    let http = daemon.http();
    let headers = headers_for(&listing());
    let huge = tool_call("get_task_status", &json!({ "task_id": "x".repeat(5 * 1024 * 1024) })).to_string();
    assert_eq!(http.mcp_raw(&headers, &[], huge.as_bytes()).status, 413);

    let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    let around = listing().to_string().replace(r#""arguments":{}"#, &format!(r#""arguments":{{"task_id":{deep}}}"#));
    assert!(around.len() > 20_000);
    assert_error(&http.mcp_raw(&headers, &[], around.as_bytes()), 400, -32700);
    let mut ill_typed = listing();
    ill_typed["params"]["arguments"] = json!(7);
    assert_error(&http.mcp(&ill_typed, &[]), 200, -32602);

    for bad in ["", "{", "nonsense", "[]", "{}", r#"{"jsonrpc":"1.0","id":1,"method":"tools/list"}"#, "\u{0}\u{1}"] {
        assert_error(&http.mcp_raw(&headers, &[], bad.as_bytes()), 400, -32700);
    }
    assert_unharmed(http);
}
