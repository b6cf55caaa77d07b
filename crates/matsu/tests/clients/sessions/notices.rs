//! Notifications: on every reply, given and acknowledged, for one session and no other.

use std::time::Duration;

use serde_json::{Value, json};

use crate::home::until;

use super::stage::{Stage, ToolAnswer, call_over_stdio, text};

fn actions(said: &ToolAnswer) -> Vec<String> {
    said.body["notifications"].as_array().unwrap().iter().map(|one| text(&one["action"])).collect()
}

#[test]
fn every_reply_carries_the_signal_in_both_halves() {
    let stage = Stage::new();
    let (_, agent) = stage.chatting("worker");
    let replies = [
        agent.next(json!({ "timeout_seconds": 0 })),
        agent.call("send_message", json!({ "content": "hello" })),
        agent.call("get_notifications", json!({})),
        agent.call("get_task_status", json!({})),
        agent.call("cancel_task", json!({ "task_id": "task_nope" })),
        agent.call("send_message", json!({ "content": "" })),
    ];
    for said in &replies {
        assert_eq!(said.body["notification"], "no notifications", "{said:?}");
        assert!(said.text.contains("no notifications"), "{said:?}");
    }
    assert!(replies[4].is_error && replies[5].is_error);
    let session = text(&stage.sessions("active")[0]["session_id"]);
    stage.good("POST", &format!("/sessions/{session}/notifications"), &json!({ "message": "Mind the gap." }));
    for said in [agent.call("get_task_status", json!({})), agent.call("cancel_task", json!({ "task_id": "task_nope" }))]
    {
        let signal = "IMPORTANT: there is 1 notification. Call get_notifications to read it.";
        assert_eq!(said.body["notification"], signal);
        assert!(said.text.contains(signal));
    }
    assert_eq!(
        agent.call("logout", json!({})).body["notification"],
        "IMPORTANT: there is 1 notification. Call get_notifications to read it."
    );
}

#[test]
fn in_japanese_the_sentences_are_those_that_agents_know() {
    let stage = Stage::with(&[("MATSU_LANG", "ja")]);
    let (task, agent) = stage.working("worker");
    assert_eq!(agent.next(json!({})).body["notification"], "通知はありません");
    stage.steer(&task, "blocked");
    let notice = agent.next(json!({}));
    assert_eq!(
        notice.text,
        "通知があります。\n\n1. get_notifications() を呼び出して詳細を確認してください\n2. 通知の指示に従ってください"
    );
}

#[test]
fn under_an_unread_interrupt_no_tool_runs() {
    let stage = Stage::new();
    let (task, agent) = stage.working("worker");
    let chat = stage.open_chat("worker");
    stage.say(&chat, "unread");
    stage.steer(&task, "blocked");
    let before = (stage.get(&format!("/tasks/{task}")), stage.chat(&chat));
    let calls = [
        ("send_message", json!({ "content": "I did not see it" })),
        ("get_next_action", json!({})),
        ("get_task_status", json!({ "task_id": task })),
        ("cancel_task", json!({ "task_id": task })),
        ("send_message", json!({ "content": "again" })),
    ];
    for (tool, arguments) in calls {
        let said = agent.call(tool, arguments);
        assert!(said.is_notice() && !said.is_error, "{tool}: {said:?}");
        assert_eq!(
            said.text,
            "There is a notification.\n\n1. Call get_notifications to read it\n2. Follow its instruction"
        );
        let line = "There is a notification. 1. Call get_notifications to read it. 2. Follow its instruction.";
        assert_eq!(said.body, json!({ "ok": true, "interrupted": true, "notification": line }));
    }
    assert_eq!((stage.get(&format!("/tasks/{task}")), stage.chat(&chat)), before, "nothing was written or marked");
    let given = agent.call("get_notifications", json!({}));
    let block = given.body["notifications"].as_array().unwrap().iter().find(|one| one["type"] == "interrupt").unwrap();
    assert_eq!((block["action"].as_str(), block["task_id"].as_str()), (Some("block"), Some(task.as_str())));
    assert!(block["instruction"].as_str().unwrap().contains("report_completed"), "{block}");
    assert!(!agent.call("get_task_status", json!({ "task_id": task })).is_notice(), "acknowledged by the next call");
}

#[test]
fn what_is_given_is_marked_and_nothing_else() {
    let stage = Stage::new();
    let (_, agent) = stage.chatting("worker");
    let session = text(&stage.sessions("active")[0]["session_id"]);
    let send = |wish: Value| stage.good("POST", &format!("/sessions/{session}/notifications"), &wish);
    send(json!({ "message": "first" }));
    let interrupt = send(json!({ "type": "interrupt", "message": "second", "instruction": "Stop." }));
    let look = agent.call("get_notifications", json!({ "mark_as_read": false }));
    let messages = |said: &ToolAnswer| -> Vec<String> {
        said.body["notifications"].as_array().unwrap().iter().map(|one| text(&one["message"])).collect()
    };
    assert_eq!(messages(&look), ["second", "first"], "newest first");
    for field in ["id", "type", "action", "message", "instruction", "created_at"] {
        assert!(look.body["notifications"][0][field].is_string(), "{field}: {look:?}");
    }
    assert!(agent.next(json!({ "timeout_seconds": 0 })).is_notice(), "a look changes nothing");
    assert_eq!(messages(&agent.call("get_notifications", json!({}))), ["second", "first"]);
    assert_eq!(messages(&agent.call("get_notifications", json!({}))), ["second", "first"], "given is not acknowledged");
    send(json!({ "message": "third" }));
    assert!(!agent.next(json!({ "timeout_seconds": 0 })).is_notice());
    let left = agent.call("get_notifications", json!({ "mark_as_read": false }));
    assert_eq!(messages(&left), ["third"], "what came after the giving is unread");
    let id = &left.body["notifications"][0]["id"];
    assert_eq!(messages(&agent.call("get_notifications", json!({ "ack_ids": [id] }))), [""; 0]);
    let marked = stage.notifications();
    assert!(marked.iter().all(|one| one["acknowledged_at"].is_string()), "{marked:?}");
    assert_eq!(interrupt["type"], "interrupt");
}

#[test]
fn another_session_neither_sees_nor_consumes_an_interrupt() {
    let stage = Stage::new();
    let passkey = stage.agent("worker");
    let (task, _chat) = (stage.task("worker"), stage.open_chat("worker"));
    let working = stage.authenticated("worker", &passkey);
    let talking = stage.authenticated("worker", &passkey);
    let (_, other_user) = stage.chatting("other");
    stage.steer(&task, "blocked");
    for other in [&talking, &other_user] {
        assert_eq!(actions(&other.call("get_notifications", json!({}))), [""; 0]);
        assert_eq!(other.next(json!({ "timeout_seconds": 0 })).action(), "wait");
    }
    assert!(working.next(json!({})).is_notice());
    assert_eq!(actions(&working.call("get_notifications", json!({}))), ["block"]);
}

#[test]
fn messages_to_a_busy_agent_are_one_notification_that_it_can_use() {
    let stage = Stage::new();
    let (_, agent) = stage.working("worker");
    let chat = stage.open_chat("worker");
    stage.say(&chat, "Use metres.");
    stage.say(&chat, "No, use feet.");
    assert!(text(&agent.next(json!({})).body["notification"]).contains("1 notification"));
    let given = agent.call("get_notifications", json!({}));
    let notifications = given.body["notifications"].as_array().unwrap();
    assert_eq!(notifications.len(), 1);
    assert_eq!(
        (notifications[0]["type"].as_str(), notifications[0]["action"].as_str()),
        (Some("message"), Some("user_message"))
    );
    let message = text(&notifications[0]["message"]);
    assert!(message.contains("2 times:\nUse metres.\n\nNo, use feet."), "all of it, in order: {message}");
    assert_eq!(agent.call("send_message", json!({ "content": "Feet it is." })).body["seq"], 3);
}

/// Everything that agents were sent happened this many days earlier.
fn let_days_pass(stage: &Stage, days: i64) {
    let store = rusqlite::Connection::open(stage.home.data_dir().join("matsu.db")).unwrap();
    store.busy_timeout(Duration::from_secs(20)).unwrap();
    let columns = ["created_at", "expires_at", "delivered_at", "acknowledged_at"];
    let earlier = columns.map(|column| format!("{column} = {column} - {}", days * 86_400_000)).join(", ");
    store.execute_batch(&format!("UPDATE notifications SET {earlier}")).unwrap();
}

#[test]
fn what_is_old_is_removed_while_the_service_runs() {
    let stage = Stage::new();
    let (_, agent) = stage.chatting("worker");
    let session = text(&stage.sessions("active")[0]["session_id"]);
    let send =
        |words: &str| stage.good("POST", &format!("/sessions/{session}/notifications"), &json!({ "message": words }));
    let left = || stage.notifications().iter().map(|one| text(&one["message"])).collect::<Vec<_>>();
    send("read");
    agent.call("get_notifications", json!({}));
    agent.call("get_task_status", json!({}));
    send("unread");
    assert_eq!(left().len(), 2);
    // The sweep comes once a minute.
    let_days_pass(&stage, 8);
    until("what was not read in time is gone", Duration::from_secs(90), || (left() == ["read"]).then_some(()));
    let_days_pass(&stage, 23);
    until("so is what was read a month ago", Duration::from_secs(90), || left().is_empty().then_some(()));
}

#[test]
fn callers_without_a_session_hear_news_of_what_ended_unread() {
    let stage = Stage::new();
    let mut client = crate::stdio::Client::legacy(&stage.home, &[]);
    let quiet = call_over_stdio(&mut client, None, "get_task_status", json!({}));
    assert_eq!((quiet.body.get("news"), quiet.body.get("notification")), (None, None));
    let task = stage.http().submit(1);
    until("it has ended", Duration::from_secs(20), || (stage.status(&task) == "completed").then_some(()));
    let news = call_over_stdio(&mut client, None, "cancel_task", json!({ "task_id": "task_nope" }));
    let sentence = "1 of your tasks has finished or asks a question; call get_task_status without arguments to see it.";
    assert_eq!(news.body["news"], sentence);
    assert!(news.text.contains(sentence));
    let again = call_over_stdio(&mut client, None, "cancel_task", json!({ "task_id": "task_nope" }));
    assert_eq!(again.body.get("news"), None, "the client has called again, so it knows: {again:?}");
    // A client of its own knows nothing of it, and the reply that lists it carries nothing beside.
    let mut other = crate::stdio::Client::legacy(&stage.home, &[]);
    let listed = call_over_stdio(&mut other, None, "get_task_status", json!({}));
    assert_eq!((&listed.body["tasks"][0]["task_id"], listed.body.get("news")), (&json!(task), None), "{listed:?}");
    // A call from a shell is known by nothing, but what its own reply lists is no news either.
    let single = |tool: &str, arguments: &str| stage.home.run(&["call", tool, arguments]);
    assert_eq!(single("list_agents", "{}")["news"], sentence);
    let listed = single("get_task_status", "{}");
    assert_eq!((&listed["tasks"][0]["task_id"], listed.get("news")), (&json!(task), None), "{listed}");
    let read = call_over_stdio(&mut client, None, "get_task_status", json!({ "task_id": task }));
    assert_eq!(read.body.get("news"), None, "this very reply has it: {read:?}");
}
