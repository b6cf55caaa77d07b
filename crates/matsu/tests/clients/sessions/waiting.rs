//! Waiting: how long, what ends it, which waiter gets what comes.

use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::home::until;

use super::stage::{Stage, assert_within};

#[test]
fn silence_is_waited_out_in_one_call_as_long_as_asked() {
    let stage = Stage::new();
    let (_, agent) = stage.chatting("worker");
    let short = agent.next(json!({ "timeout_seconds": 2 }));
    assert_eq!(short.action(), "wait");
    assert_within(short.took, 1.5, 3.5);
}

#[test]
fn the_wish_to_wait_is_checked_and_the_effective_time_is_said() {
    let stage = Stage::new();
    let (chat, agent) = stage.chatting("worker");
    for bad in [json!("soon"), json!(2.5), json!(-1)] {
        let refused = agent.next(json!({ "timeout_seconds": bad }));
        assert_eq!((refused.code(), refused.is_error), ("INVALID_PARAMS", true), "{refused:?}");
        assert_eq!(refused.body["details"]["param_name"], "timeout_seconds");
    }
    stage.say(&chat, "hello");
    let capped = agent.next(json!({ "timeout_seconds": 100_000 }));
    assert_eq!((capped.body["hold_max"].as_u64(), capped.body["timeout_seconds"].as_u64()), (Some(50), Some(50)));
    assert_eq!(agent.next(json!({ "timeout_seconds": 0, "after_seq": 1 })).action(), "wait");
}

#[test]
fn a_message_ends_the_wait_also_in_another_process() {
    let stage = Stage::new();
    let (chat, agent) = stage.chatting("worker");
    let (here, token) = (agent.clone(), agent.token.clone().unwrap());
    let waiting = thread::spawn(move || here.next(json!({ "timeout_seconds": 20 })));
    until("a client waits", Duration::from_secs(10), || (stage.waiters() >= 1.0).then_some(()));
    let sent = Instant::now();
    stage.say(&chat, "hello");
    let said = waiting.join().unwrap();
    assert_within(sent.elapsed(), 0.0, 1.0);
    assert_eq!((said.action(), said.seqs()), ("respond", vec![1]));
    assert_eq!(said.body["messages"][0]["content"], "hello");
    // A process of its own on the same store is woken too.
    let mut apart = crate::stdio::Client::legacy(&stage.home, &["--no-daemon"]);
    let arguments = json!({ "session_token": token, "timeout_seconds": 20, "after_seq": 1 });
    let id = apart.request("tools/call", &json!({ "name": "get_next_action", "arguments": arguments }));
    thread::sleep(Duration::from_millis(300));
    let sent = Instant::now();
    stage.say(&chat, "and you?");
    let answer = apart.answer(id);
    assert_within(sent.elapsed(), 0.0, 1.0);
    assert_eq!(answer["result"]["structuredContent"]["messages"][0]["seq"], 2, "{answer}");
}

#[test]
fn ending_the_chat_ends_the_wait_and_the_token() {
    let stage = Stage::new();
    let (chat, agent) = stage.chatting("worker");
    let here = agent.clone();
    let waiting = thread::spawn(move || here.next(json!({ "timeout_seconds": 20 })));
    until("a client waits", Duration::from_secs(10), || (stage.waiters() >= 1.0).then_some(()));
    let ended = Instant::now();
    stage.good("POST", &format!("/chats/{chat}/end"), &json!({}));
    let said = waiting.join().unwrap();
    assert_within(ended.elapsed(), 0.0, 1.0);
    assert_eq!((said.action(), said.body["reason"].as_str()), ("end_session", Some("closed_by_person")));
    let later = agent.next(json!({ "timeout_seconds": 1 }));
    assert_eq!((later.code(), later.body["details"]["action"].as_str()), ("SESSION_ENDED", Some("exit")), "{later:?}");
}

#[test]
fn of_two_waiters_the_newest_gets_the_message_and_both_return() {
    let stage = Stage::new();
    let (chat, agent) = stage.chatting("worker");
    let wait = |seconds: u64| {
        let agent = agent.clone();
        thread::spawn(move || agent.next(json!({ "timeout_seconds": seconds })))
    };
    // A wait is not ended by the timer of the other one.
    let (long, short) = (wait(3), wait(1));
    assert_within(short.join().unwrap().took, 0.9, 2.5);
    assert_within(long.join().unwrap().took, 2.9, 4.5);
    let older = wait(20);
    until("one waits", Duration::from_secs(10), || (stage.waiters() >= 1.0).then_some(()));
    let newer = wait(20);
    until("two wait", Duration::from_secs(10), || (stage.waiters() >= 2.0).then_some(()));
    stage.say(&chat, "for the newest");
    let (newer, older) = (newer.join().unwrap(), older.join().unwrap());
    assert_eq!((newer.action(), newer.seqs()), ("respond", vec![1]));
    assert_eq!((older.action(), older.body["superseded"].as_bool()), ("wait", Some(true)), "{older:?}");
}

#[test]
fn a_waiter_that_hangs_up_leaves_nothing_behind() {
    let stage = Stage::new();
    let (chat, agent) = stage.chatting("worker");
    for _ in 0..5 {
        agent.call_and_hang_up("get_next_action", json!({ "timeout_seconds": 40 }), Duration::from_millis(100));
    }
    until("no waiter is left", Duration::from_secs(10), || (stage.waiters() == 0.0).then_some(()));
    stage.say(&chat, "still there?");
    let said = agent.next(json!({ "timeout_seconds": 5 }));
    assert_eq!(said.seqs(), [1]);
}

#[test]
fn a_relay_that_is_killed_takes_its_waits_with_it_and_a_live_agent_gets_the_message() {
    let stage = Stage::new();
    let (chat, agent) = stage.chatting("worker");
    let live = agent.clone();
    let waiting = thread::spawn(move || live.next(json!({ "timeout_seconds": 30 })));
    // A call of a session waits twice: for what it asks, and for an interrupt.
    until("the agent waits", Duration::from_secs(10), || (stage.waiters() >= 2.0).then_some(()));
    let mut relay = crate::stdio::Client::legacy(&stage.home, &[]);
    let arguments = json!({ "session_token": agent.token, "timeout_seconds": 40 });
    relay.request("tools/call", &json!({ "name": "get_next_action", "arguments": arguments }));
    until("both wait", Duration::from_secs(10), || (stage.waiters() >= 4.0).then_some(()));
    relay.kill();
    until("the waits of the relay have ended", Duration::from_secs(1), || (stage.waiters() <= 2.0).then_some(()));
    stage.say(&chat, "for the live one");
    let said = waiting.join().unwrap();
    assert_eq!((said.action(), said.seqs()), ("respond", vec![1]), "{said:?}");
}

/// What nine of ten ordinary calls take at most.
fn usual(agent: &super::stage::Agent) -> Duration {
    let mut took: Vec<_> = (0..50).map(|_| agent.call("get_notifications", json!({})).took).collect();
    took.sort_unstable();
    took[44]
}

#[test]
fn two_hundred_waiters_use_no_cpu_and_delay_no_call() {
    let stage = Stage::new();
    let (_, agent) = stage.chatting("worker");
    let alone = usual(&agent);
    let waiting: Vec<_> = (0..200)
        .map(|_| {
            let agent = agent.clone();
            thread::spawn(move || agent.next(json!({ "timeout_seconds": 15 })))
        })
        .collect();
    until("all wait", Duration::from_secs(30), || (stage.waiters() >= 200.0).then_some(()));
    // The work of their arrival, such as noting once that the session was seen, is not waiting.
    thread::sleep(Duration::from_secs(2));
    let before = stage.daemon.cpu_seconds();
    thread::sleep(Duration::from_secs(3));
    let used = stage.daemon.cpu_seconds() - before;
    println!("200 waiters used {used} s of CPU in 3 s; an ordinary call took {alone:?} before");
    assert!(used < 0.15, "200 waiters used {used} s of CPU in 3 s");
    let delay = usual(&agent).saturating_sub(alone);
    assert!(delay < Duration::from_millis(100), "200 waiters delay an ordinary call by {delay:?}, alone {alone:?}");
    for waiter in waiting {
        assert_eq!(waiter.join().unwrap().action(), "wait");
    }
}

#[test]
fn deletion_and_expiry_of_the_session_end_the_wait() {
    let stage = Stage::with(&[("MATSU_SESSIONS_TTL", "4")]);
    let (_, agent) = stage.chatting("worker");
    let session = stage.sessions("active")[0]["session_id"].as_str().unwrap().to_owned();
    let here = agent.clone();
    let waiting = thread::spawn(move || here.next(json!({ "timeout_seconds": 20 })));
    until("a client waits", Duration::from_secs(10), || (stage.waiters() >= 1.0).then_some(()));
    stage.good("DELETE", &format!("/sessions/{session}"), &Value::Null);
    let said = waiting.join().unwrap();
    assert_eq!((said.action(), said.body["reason"].as_str()), ("end_session", Some("closed_by_person")));
    let (_, other) = stage.chatting("other");
    let said = other.next(json!({ "timeout_seconds": 20 }));
    assert_eq!((said.action(), said.body["reason"].as_str()), ("end_session", Some("expired")), "{said:?}");
    assert_within(said.took, 1.0, 6.0);
    assert_eq!(other.call("send_message", json!({ "content": "late" })).code(), "SESSION_ENDED");
}

#[test]
fn an_interrupt_ends_the_wait() {
    let stage = Stage::new();
    let (_, agent) = stage.chatting("worker");
    let session = stage.sessions("active")[0]["session_id"].as_str().unwrap().to_owned();
    for (kind, is_notice) in [("message", false), ("interrupt", true)] {
        let here = agent.clone();
        let waiting = thread::spawn(move || here.next(json!({ "timeout_seconds": 20 })));
        until("a client waits", Duration::from_secs(10), || (stage.waiters() >= 1.0).then_some(()));
        let sent = Instant::now();
        let wish = json!({ "type": kind, "message": "Look here." });
        stage.good("POST", &format!("/sessions/{session}/notifications"), &wish);
        let said = waiting.join().unwrap();
        assert_within(sent.elapsed(), 0.0, 1.0);
        assert_eq!(said.is_notice(), is_notice, "{said:?}");
        assert!(said.text.contains("get_notifications"), "{said:?}");
    }
}

#[test]
fn a_long_wait_becomes_a_native_task_that_consumes_nothing() {
    let stage = Stage::new();
    let (chat, agent) = stage.chatting("worker");
    let wait = || {
        let arguments = json!({ "timeout_seconds": 30 });
        let created = follow(&agent, "tools/call", json!({ "name": "get_next_action", "arguments": arguments }));
        assert_eq!((&created["resultType"], &created["status"]), (&json!("task"), &json!("working")), "{created}");
        created["taskId"].clone()
    };
    let (given_up, kept) = (wait(), wait());
    assert_eq!(follow(&agent, "tasks/cancel", json!({ "taskId": given_up }))["resultType"], "complete");
    assert_eq!(follow(&agent, "tasks/get", json!({ "taskId": given_up }))["status"], "cancelled");
    assert_eq!(follow(&agent, "tasks/get", json!({ "taskId": kept }))["status"], "working", "only the one wait ended");
    stage.say(&chat, "hello");
    let ended = follow(&agent, "tasks/get", json!({ "taskId": kept }));
    assert_eq!(ended["status"], "completed", "{ended}");
    assert!(ended["result"]["content"][0]["text"].as_str().unwrap().contains("Something arrived"), "{ended}");
    let said = agent.next(json!({ "timeout_seconds": 0 }));
    assert_eq!((said.seqs(), &said.body["messages"][0]["redelivered"]), (vec![1], &json!(false)), "{said:?}");
}

/// A request of a client that follows native tasks.
fn follow(agent: &super::stage::Agent, method: &str, params: Value) -> Value {
    let mut body = crate::http::modern(method, params);
    let follows = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
    body["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = follows;
    body["params"]["_meta"]["matsu/session"] = json!(agent.token);
    let reply = agent.http.mcp_at("/mcp?tools=all", &body).json();
    assert!(reply["result"].is_object(), "{method}: {reply}");
    reply["result"].clone()
}
