//! What a session may not do: read others' tasks, undo what a person decided, leave MCP, reach its owner's rights.

use serde_json::json;

use crate::http::{headers_for, modern};
use crate::stdio::Client;

use super::stage::{Stage, ToolAnswer, call_over_stdio, text};

#[test]
fn a_session_sees_its_own_and_its_given_tasks_and_no_others() {
    let stage = Stage::new();
    let (task, agent) = stage.working("worker");
    let foreign = stage.http().submit(60_000);
    stage.agent("other");
    let others = stage.task("other");
    for id in [&foreign, &others] {
        assert_eq!(agent.call("get_task_status", json!({ "task_id": id })).body["status"], "not_found");
        assert_eq!(agent.call("cancel_task", json!({ "task_id": id })).code(), "TASK_NOT_FOUND");
    }
    assert_eq!(agent.call("get_task_status", json!({ "task_id": task })).body["status"], "running");
    let refused = agent.call("cancel_task", json!({ "task_id": task }));
    assert_eq!(
        (refused.code(), stage.status(&task).as_str()),
        ("FORBIDDEN", "running"),
        "it reports, it does not cancel"
    );
    assert_eq!(agent.call("get_task_status", json!({})).body["total"], 0, "the owner's tasks are not its own");
}

#[test]
fn a_session_cannot_resume_what_a_person_blocked() {
    let stage = Stage::new();
    let (task, agent) = stage.working("worker");
    stage.steer(&task, "blocked");
    agent.call("get_notifications", json!({}));
    for result in ["success", "failed"] {
        assert_eq!(agent.call("report_completed", json!({ "result": result })).body["status"], "blocked");
    }
    assert_eq!(stage.status(&task), "blocked");
    let (status, _) = stage.rest("PATCH", &format!("/tasks/{task}"), &json!({ "status": "running" }));
    assert_eq!(status, 200, "a person can");
}

#[test]
fn a_session_starts_nothing_with_more_than_its_own_mode() {
    let stage = Stage::with(&[("MATSU_AGENTS_MODE_MAX", "full")]);
    let (_, agent) = stage.working("worker");
    let person = super::stage::Agent { http: stage.http().clone(), token: None };
    let wish = |mode: &str| json!({ "cli_name": "script", "message": "true", "run_async": true, "mode": mode });
    for mode in ["workspace-write", "full"] {
        let refused = agent.call("use_agent", wish(mode));
        assert_eq!((refused.code(), refused.body["details"]["param_name"].as_str()), ("FORBIDDEN", Some("mode")));
        let several = json!({ "cli_names": ["script"], "message": "true", "run_async": true, "mode": mode });
        assert_eq!(agent.call("use_agents", several).code(), "FORBIDDEN");
        assert_eq!(person.call("use_agent", wish(mode)).body["mode"], mode, "the configuration allows it");
    }
    assert_eq!(agent.call("use_agent", wish("read-only")).body["mode"], "read-only");
    let silent = json!({ "cli_name": "script", "message": "true", "run_async": true });
    assert_eq!(agent.call("use_agent", silent).body["mode"], "read-only", "and it is the default");
}

#[test]
fn a_session_token_opens_mcp_and_nothing_else() {
    let stage = Stage::new();
    let (_, agent) = stage.chatting("worker");
    let token = agent.token.clone().unwrap();
    let (host, key) = (stage.http().address.to_string(), format!("Bearer {token}"));
    let headers = [("Host", host.as_str()), ("Authorization", &key), ("Content-Type", "application/json")];
    for (method, path) in [("GET", "/api/v1/tasks"), ("GET", "/api/v1/sessions"), ("POST", "/api/v1/tools/logout")] {
        assert_eq!(stage.http().send(method, path, &headers, b"{}").status, 403, "{path}");
    }
    // As the bearer, or in the request's metadata, it identifies the caller; no argument is needed.
    let body = modern("tools/call", json!({ "name": "get_next_action", "arguments": { "timeout_seconds": 0 } }));
    let mut lines: Vec<(String, String)> = headers_for(&body);
    lines.push(("Accept".to_owned(), "application/json, text/event-stream".to_owned()));
    let mut all: Vec<(&str, &str)> = headers.to_vec();
    all.extend(lines.iter().map(|(name, value)| (name.as_str(), value.as_str())));
    let reply = stage.http().send("POST", "/mcp?tools=all", &all, body.to_string().as_bytes());
    assert_eq!(ToolAnswer::of(&reply.json(), std::time::Duration::ZERO).action(), "wait");
    let mut body = body;
    body["params"]["_meta"]["matsu/session"] = json!(token);
    let owner = format!("Bearer {}", stage.http().token);
    all[1].1 = &owner;
    let reply = stage.http().send("POST", "/mcp?tools=all", &all, body.to_string().as_bytes());
    assert_eq!(ToolAnswer::of(&reply.json(), std::time::Duration::ZERO).action(), "wait");
}

#[test]
fn a_child_with_a_session_token_is_that_session() {
    let stage = Stage::new();
    let (task, agent) = stage.working("worker");
    let foreign = stage.http().submit(60_000);
    let token = agent.token.clone().unwrap();
    let mut child = Client::start_with(&stage.home, &[], &[("MATSU_SESSION_TOKEN", &token)]);
    child.shake_hands();
    let said = call_over_stdio(&mut child, None, "get_next_action", json!({}));
    assert_eq!((said.action(), said.body["task"]["task_id"].as_str()), ("work", Some(task.as_str())));
    let hidden = call_over_stdio(&mut child, None, "get_task_status", json!({ "task_id": foreign }));
    assert_eq!(hidden.body["status"], "not_found");
    // Whatever else it presents, it stays that session.
    let (_, other) = stage.chatting("other");
    let said = call_over_stdio(&mut child, other.token.as_deref(), "get_next_action", json!({}));
    assert_eq!(said.action(), "work");
}

#[test]
fn a_wrong_passkey_and_an_unknown_agent_are_refused_alike() {
    let stage = Stage::new();
    let passkey = stage.agent("worker");
    stage.open_chat("worker");
    let unauthenticated = super::stage::Agent { http: stage.http().clone(), token: None };
    let mut answers = Vec::new();
    for (agent, key) in [("worker", "wrong"), ("unknown", passkey.as_str())] {
        let said =
            unauthenticated.call("authenticate", json!({ "agent_id": agent, "passkey": key, "project_id": "default" }));
        assert_eq!((said.code(), said.body["details"]["action"].as_str()), ("SESSION_INVALID", Some("exit")));
        answers.push(text(&said.body["error"]));
    }
    assert_eq!(answers[0], answers[1]);
    let unknown = super::stage::Agent { http: stage.http().clone(), token: Some("not a token".to_owned()) };
    assert_eq!(unknown.next(json!({})).code(), "SESSION_INVALID");
    assert_eq!(unauthenticated.next(json!({})).body["details"]["param_name"], "session_token");
    assert!(!stage.daemon.printed().contains(&passkey), "no secret in the log");
}

#[test]
fn a_session_can_be_named_by_the_principal_that_began_it() {
    let stage = Stage::new();
    let (_, agent) = stage.chatting("worker");
    let session = text(&stage.sessions("active")[0]["session_id"]);
    let owner = super::stage::Agent { http: stage.http().clone(), token: None };
    assert_eq!(owner.next(json!({ "session_id": session, "timeout_seconds": 0 })).action(), "wait");
    let (_, other) = stage.chatting("other");
    let key = format!("Bearer {}", other.token.unwrap());
    drop((agent, key));
    let unknown = owner.next(json!({ "session_id": "sess_nope", "timeout_seconds": 0 }));
    assert_eq!(unknown.code(), "SESSION_INVALID");
}
