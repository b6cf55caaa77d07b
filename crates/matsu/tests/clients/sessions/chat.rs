//! Chat: which messages are accepted, what is delivered, which sessions are connected.

use std::time::Duration;

use serde_json::{Value, json};

use crate::home::until;

use super::stage::{Stage, text};

#[test]
fn content_is_one_to_four_thousand_characters() {
    let stage = Stage::new();
    let (chat, agent) = stage.chatting("worker");
    let path = format!("/chats/{chat}/messages");
    for bad in ["", "  \n", &"x".repeat(4_001)] {
        let refused = agent.call("send_message", json!({ "content": bad }));
        assert_eq!((refused.code(), refused.is_error), ("INVALID_PARAMS", true));
        assert!(refused.text.contains("4000"), "{refused:?}");
        let (status, problem) = stage.rest("POST", &path, &json!({ "content": bad }));
        assert_eq!((status, problem["error_code"].as_str()), (400, Some("INVALID_PARAMS")), "{problem}");
        assert!(problem["detail"].as_str().unwrap().contains("4000"), "{problem}");
    }
    assert_eq!(agent.call("send_message", json!({ "content": "待".repeat(4_000) })).body["seq"], 1);
    assert_eq!(stage.say(&chat, &"x".repeat(4_000)), 2);
}

#[test]
fn acknowledging_one_message_never_hides_the_next() {
    let stage = Stage::new();
    let (chat, agent) = stage.chatting("worker");
    let seqs: Vec<i64> = (0..5).map(|n| stage.say(&chat, &format!("message {n}"))).collect();
    assert_eq!(seqs, [1, 2, 3, 4, 5]);
    for acknowledged in 1..5 {
        let said = agent.next(json!({ "timeout_seconds": 0, "after_seq": acknowledged }));
        assert_eq!(said.seqs(), (acknowledged + 1..=5).collect::<Vec<i64>>());
    }
    assert_eq!(agent.next(json!({ "timeout_seconds": 0, "after_seq": 5 })).action(), "wait");
    let beyond = agent.next(json!({ "timeout_seconds": 0, "after_seq": 6 }));
    assert_eq!((beyond.code(), beyond.body["details"]["param_name"].as_str()), ("INVALID_PARAMS", Some("after_seq")));
}

#[test]
fn twenty_five_unread_messages_come_in_order_ten_at_a_time() {
    let stage = Stage::new();
    let (chat, agent) = stage.chatting("worker");
    for n in 1..=25 {
        stage.say(&chat, &format!("message {n}"));
    }
    let mut seen = Vec::new();
    let mut after = 0;
    for (count, more) in [(10, true), (10, true), (5, false)] {
        let said = agent.next(json!({ "timeout_seconds": 0, "after_seq": after }));
        assert_eq!((said.seqs().len(), said.body["more"].as_bool()), (count, Some(more)));
        assert!(said.body["messages"].as_array().unwrap().iter().all(|message| message["redelivered"] == false));
        seen.extend(said.seqs());
        after = *seen.last().unwrap();
    }
    assert_eq!(seen, (1..=25).collect::<Vec<i64>>());
}

#[test]
fn a_reply_is_awaited_until_it_is_there() {
    let stage = Stage::new();
    let (chat, agent) = stage.chatting("worker");
    let awaiting = || stage.chat(&chat)["awaiting_reply"].as_bool().unwrap();
    assert!(!awaiting());
    stage.say(&chat, "hello");
    assert!(awaiting());
    assert_eq!(agent.next(json!({ "timeout_seconds": 0 })).action(), "respond");
    assert!(awaiting(), "it has only been read");
    agent.call("send_message", json!({ "content": "hello" }));
    assert!(!awaiting());
}

#[test]
fn opening_and_closing_quickly_leaves_one_live_session() {
    let stage = Stage::new();
    let passkey = stage.agent("worker");
    let first = stage.open_chat("worker");
    assert_eq!(stage.open_chat("worker"), first, "opening twice is opening once");
    let old = stage.authenticated("worker", &passkey);
    for _ in 0..2 {
        stage.good("POST", &format!("/chats/{first}/end"), &json!({}));
    }
    let second = stage.open_chat("worker");
    assert_ne!(second, first);
    let new = stage.authenticated("worker", &passkey);
    let again = stage.authenticated("worker", &passkey);
    let live = stage.sessions("active");
    assert_eq!(live.len(), 1, "{live:?}");
    assert_eq!(live[0]["chat_id"], json!(second));
    assert_eq!(old.next(json!({ "timeout_seconds": 0 })).action(), "end_session");
    let taken_over = new.next(json!({ "timeout_seconds": 0 }));
    assert_eq!(
        (taken_over.code(), taken_over.body["details"]["reason"].as_str()),
        ("SESSION_ENDED", Some("taken_over"))
    );
    assert_eq!(again.next(json!({ "timeout_seconds": 0 })).action(), "wait");
}

#[test]
fn people_see_the_agent_come_or_not_come() {
    let stage = Stage::with(&[("MATSU_SESSIONS_CONNECT_MAX", "2")]);
    let passkey = stage.agent("worker");
    let chat = stage.open_chat("worker");
    let state = || text(&stage.chat(&chat)["agent_state"]);
    assert_eq!(state(), "connecting");
    until("the agent is given up", Duration::from_secs(15), || (state() == "disconnected").then_some(()));
    let lines = stage.get(&format!("/chats/{chat}/messages"))["items"].clone();
    assert_eq!((lines[0]["sender"].as_str(), lines.as_array().unwrap().len()), (Some("system"), 1), "{lines}");
    stage.say(&chat, "try again");
    assert_eq!(state(), "connecting");
    let agent = stage.authenticated("worker", &passkey);
    assert_eq!(state(), "connected");
    let said = agent.next(json!({ "timeout_seconds": 0 }));
    assert_eq!(said.seqs(), [2], "system messages are for people, not for the agent");
    let waiting = std::thread::spawn(move || agent.next(json!({ "timeout_seconds": 20, "after_seq": 2 })));
    until("it listens", Duration::from_secs(10), || (state() == "listening").then_some(()));
    stage.good("POST", &format!("/chats/{chat}/end"), &json!({}));
    assert_eq!(waiting.join().unwrap().action(), "end_session");
    assert_eq!(state(), "ended");
}

#[test]
fn an_idle_agent_is_ended_and_comes_again() {
    let stage = Stage::with(&[("MATSU_SESSIONS_IDLE_END", "2")]);
    let (chat, agent) = stage.chatting("worker");
    let said = agent.next(json!({ "timeout_seconds": 20 }));
    assert_eq!((said.action(), said.body["reason"].as_str()), ("end_session", Some("idle")));
    super::stage::assert_within(said.took, 0.5, 4.0);
    stage.say(&chat, "are you there?");
    assert_eq!(text(&stage.chat(&chat)["agent_state"]), "connecting", "the message calls it again");
    let passkey = stage.agent("second");
    let second_chat = stage.open_chat("second");
    let second = stage.authenticated("second", &passkey);
    stage.say(&second_chat, "within the time");
    assert_eq!(second.next(json!({ "timeout_seconds": 20 })).action(), "respond");
}

#[test]
fn chat_and_task_live_side_by_side() {
    let stage = Stage::new();
    let passkey = stage.agent("worker");
    let (task, _chat) = (stage.task("worker"), stage.open_chat("worker"));
    let working = stage.authenticated("worker", &passkey);
    let talking = stage.authenticated("worker", &passkey);
    assert_eq!(working.next(json!({})).body["task"]["task_id"], json!(task));
    assert_eq!(talking.next(json!({ "timeout_seconds": 0 })).action(), "wait");
    // The chat's process crashes and is started again: it gets the chat, not the other's task.
    let again = stage.authenticated("worker", &passkey);
    assert_eq!(again.call("report_completed", json!({ "result": "success" })).code(), "WRONG_PURPOSE");
    assert_eq!(again.call("logout", json!({})).body["reason"], "logged_out");
    assert_eq!(working.next(json!({})).action(), "work", "ending one leaves the other");
    assert_eq!(working.call("report_completed", json!({ "result": "success" })).body["status"], "completed");
}

#[test]
fn a_tool_of_the_other_purpose_is_refused_and_says_which() {
    let stage = Stage::new();
    let (_, agent) = stage.chatting("worker");
    let refused = agent.call("report_completed", json!({ "result": "success" }));
    assert_eq!((refused.code(), refused.is_error), ("WRONG_PURPOSE", true));
    assert_eq!(refused.body["details"]["needed_purpose"], "task");
    assert!(refused.text.contains("purpose task"), "{refused:?}");
    assert_eq!(refused.body["notification"], "no notifications", "errors carry the signal too");
}

#[test]
fn what_a_lost_call_handed_out_is_not_acknowledged_by_speaking() {
    let stage = Stage::new();
    let (chat, agent) = stage.chatting("worker");
    let mut client = crate::stdio::Client::legacy(&stage.home, &[]);
    let token = agent.token.clone().unwrap();
    let next = json!({ "session_token": token, "timeout_seconds": 5 });
    stage.say(&chat, "hello");
    // Handed out over a connection that then closes.
    let id = client.request("tools/call", &json!({ "name": "get_next_action", "arguments": next }));
    assert_eq!(client.answer(id)["result"]["structuredContent"]["action"], "respond");
    client.kill();
    let mut client = crate::stdio::Client::legacy(&stage.home, &[]);
    client.call("send_message", &json!({ "session_token": token, "content": "is anybody there?" }));
    let said = client.call("get_next_action", &next);
    assert_eq!(
        (said["messages"][0]["seq"].as_i64(), said["messages"][0]["redelivered"].as_bool()),
        (Some(1), Some(true))
    );
    // Cancelled after it was answered.
    let id = client.request("tools/call", &json!({ "name": "get_next_action", "arguments": next }));
    client.answer(id);
    client.line(
        &json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } }).to_string(),
    );
    client.call("get_notifications", &json!({ "session_token": token }));
    client.call("send_message", &json!({ "session_token": token, "content": "I was away" }));
    assert_eq!(client.call("get_next_action", &next)["messages"][0]["seq"], 1);
    // Taken: a message of the agent acknowledges it.
    client.call("send_message", &json!({ "session_token": token, "content": "hello" }));
    let nothing: Value = client.call("get_next_action", &json!({ "session_token": token, "timeout_seconds": 0 }));
    assert_eq!(nothing["action"], "wait", "{nothing}");
}
