//! Agents that are started and then wait for their messages themselves, over the way back they were given; and agents
//! that are started for a task.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::home::until;

use super::stage::{Stage, text};
use super::started::processes;

const SOON: Duration = Duration::from_secs(20);

/// The session that is there now.
fn present(stage: &Stage) -> Option<String> {
    stage.sessions("active").first().map(|session| text(&session["session_id"]))
}

fn session(stage: &Stage, id: &str) -> Value {
    let all = stage.get("/sessions")["items"].as_array().unwrap().clone();
    all.into_iter().find(|session| session["session_id"] == id).unwrap()
}

fn reason(stage: &Stage, id: &str) -> Value {
    session(stage, id)["end_reason"].clone()
}

#[test]
fn it_stays_between_messages_ends_when_idle_and_comes_again() {
    stays_and_comes_again(&Stage::with(&[("MATSU_SESSIONS_IDLE_END", "4")]));
}

/// On a stage where idle sessions end soon.
pub fn stays_and_comes_again(stage: &Stage) {
    let chat = stage.started("talker", "waiter");
    assert_eq!(stage.chat_state(&chat), "idle");
    stage.say(&chat, "one");
    assert_eq!(stage.chat_state(&chat), "connecting");
    assert_eq!(stage.hears(&chat, "agent", 1), ["You said: one"]);
    stage.reaches_state(&chat, "listening");
    let session = present(stage).unwrap();
    stage.say(&chat, "two");
    assert_eq!(stage.hears(&chat, "agent", 2)[1], "You said: two");
    assert_eq!(present(stage).as_deref(), Some(session.as_str()), "the same one");
    stage.reaches_state(&chat, "idle");
    assert_eq!(reason(stage, &session), "idle");
    stage.say(&chat, "three");
    assert_eq!(stage.hears(&chat, "agent", 3)[2], "You said: three");
    assert!(present(stage).is_some_and(|another| another != session));
    assert!(stage.words_of(&chat, "system").is_empty(), "{:?}", stage.said(&chat));
}

#[test]
fn one_that_waits_takes_no_place_of_a_run() {
    let stage = Stage::with(&[("MATSU_SLOTS_AGENT_CLI", "1")]);
    let chat = stage.started("talker", "waiter");
    stage.say(&chat, "hello");
    stage.reaches_state(&chat, "listening");
    let person = super::stage::Agent { http: stage.http().clone(), token: None };
    let said = person.call("use_agent", json!({ "cli_name": "script", "message": "echo ran" }));
    assert_eq!((said.body["status"].as_str(), said.body["result"].as_str()), (Some("completed"), Some("ran\n")));
    assert_eq!(stage.chat_state(&chat), "listening", "it waits on");
}

#[test]
fn one_that_crashes_is_started_again_and_answers_once() {
    let stage = Stage::new();
    let chat = stage.started("talker", "waiter");
    stage.say(&chat, "hello");
    stage.hears(&chat, "agent", 1);
    let repaired = stage.home.signal("repaired");
    stage.say(&chat, &format!("crash unless {}", repaired.display()));
    let lines = stage.hears(&chat, "system", 1);
    assert!(lines[0].contains("again in"), "{lines:?}");
    std::fs::write(repaired, "").unwrap();
    let said = stage.hears(&chat, "agent", 2);
    assert!(said[1].starts_with("You said: crash unless"), "{said:?}");
    stage.say(&chat, "and now?");
    assert_eq!(stage.hears(&chat, "agent", 3)[2..], ["You said: and now?"]);
}

#[test]
fn one_that_never_calls_is_given_up_with_a_line() {
    let stage = Stage::with(&[("MATSU_SESSIONS_CONNECT_MAX", "1")]);
    let chat = stage.started("talker", "mute");
    stage.say(&chat, "hello?");
    let lines = stage.hears(&chat, "system", 3);
    assert!(lines[0].contains("did not connect within 1 s") && lines[2].contains("Write again"), "{lines:?}");
    stage.reaches_state(&chat, "idle");
    assert!(stage.sessions("active").is_empty());
}

#[test]
fn it_learns_that_the_chat_is_over_and_ends() {
    let stage = Stage::new();
    let chat = stage.started("talker", "waiter");
    stage.say(&chat, "hello");
    stage.hears(&chat, "agent", 1);
    stage.reaches_state(&chat, "listening");
    let session = present(&stage).unwrap();
    stage.good("POST", &format!("/chats/{chat}/end"), &json!(null));
    until("it has left", SOON, || stage.sessions("active").is_empty().then_some(()));
    assert_eq!(reason(&stage, &session), "closed_by_person");
    assert!(stage.words_of(&chat, "system").is_empty());
}

#[test]
fn a_stop_that_it_does_not_hear_ends_its_whole_tree() {
    let stage = Stage::with(&[("MATSU_SESSIONS_CANCEL_GRACE", "2")]);
    let chat = stage.started("talker", "waiter");
    let nap = format!("9{}.1", std::process::id());
    stage.say(&chat, &format!("nap {nap}"));
    until("it naps", SOON, || (processes(&nap) > 0).then_some(()));
    let session = present(&stage).unwrap();
    stage.good("POST", &format!("/chats/{chat}/stop"), &json!({}));
    until("no agent naps", SOON, || (processes(&nap) == 0).then_some(()));
    assert_eq!(reason(&stage, &session), "not_acknowledged");
    assert!(stage.hears(&chat, "system", 1)[0].contains("stopped"));
    stage.say(&chat, "are you there?");
    assert_eq!(stage.hears(&chat, "agent", 1), ["You said: are you there?"]);
}

#[test]
fn a_task_for_a_started_agent_runs_reports_and_stops_when_it_is_blocked() {
    works_until_it_is_blocked(&Stage::new());
}

pub fn works_until_it_is_blocked(stage: &Stage) {
    stage.good("POST", "/agents", &json!({ "id": "worker", "name": "worker", "definition": "waiter" }));
    let task = stage.task("worker");
    until("it works", SOON, || (stage.status(&task) == "running" && present(stage).is_some()).then_some(()));
    let first = present(stage).unwrap();
    let begun = session(stage, &first);
    assert_eq!((&begun["task_id"], &begun["purpose"]), (&json!(task), &json!("task")));
    until("it calls", SOON, || (begun["created_at"] != session(stage, &first)["last_seen_at"]).then_some(()));
    let blocked = Instant::now();
    stage.steer(&task, "blocked");
    until("it has reported", SOON, || (reason(stage, &first) == "reported").then_some(()));
    assert!(blocked.elapsed() < Duration::from_secs(3), "it took {:?}", blocked.elapsed());
    assert_eq!(stage.status(&task), "blocked");
    stage.steer(&task, "running");
    until("a session works on it again", SOON, || present(stage).filter(|now| *now != first));
    stage.steer(&task, "cancelled");
    until("it is over", SOON, || (stage.status(&task) == "cancelled").then_some(()));
    until("no session is left", SOON, || stage.sessions("active").is_empty().then_some(()));
}

#[test]
fn what_a_started_agent_reports_decides() {
    let stage = Stage::new();
    stage.good("POST", "/agents", &json!({ "id": "worker", "name": "worker", "definition": "back" }));
    let way_back = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clients/agent_runs/way_back.py");
    let give = |script: &str| {
        let wish = json!({ "kind": "agent", "agent_id": "worker", "message": script });
        text(&stage.good("POST", "/tasks", &wish)["task_id"])
    };
    let ended = |task: &str| {
        until("it has ended", SOON, || {
            Some(stage.get(&format!("/tasks/{task}"))).filter(|task| !task["finished_at"].is_null())
        })
    };
    let report = |result: &str| {
        format!(
            "python3 {way_back} report_completed '{{\"result\":\"{result}\",\"summary\":\"as ordered\"}}' >/dev/null\nexit 0"
        )
    };
    for (script, status) in
        [(report("success"), "completed"), (report("failed"), "failed"), ("exit 0".to_owned(), "failed")]
    {
        let task = ended(&give(&script));
        assert_eq!(task["status"], status, "{script}: {task}");
    }
}
