//! People steer tasks by every route; the agent that works on them stops within one call.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::home::until;

use super::stage::{Stage, text};

/// A name, what is done to a task of that id, and the action the agent must receive.
type Route<'a> = (&'a str, &'a dyn Fn(&str), &'a str);

#[test]
fn every_route_makes_exactly_one_interrupt() {
    let stage = Stage::new();
    let other = stage.agent("other");
    let routes: [Route<'_>; 5] = [
        ("block", &|task| drop(stage.steer(task, "blocked")), "blocked"),
        ("pause", &|task| drop(stage.steer(task, "paused")), "paused"),
        ("cancel", &|task| drop(stage.steer(task, "cancelled")), "cancelled"),
        ("cancel", &|task| drop(stage.home.run(&["stop", task])), "cancelled"),
        (
            "cancel",
            &|task| drop(stage.good("PATCH", &format!("/tasks/{task}"), &json!({ "agent_id": "other" }))),
            "queued",
        ),
    ];
    for (n, (action, route, status)) in routes.into_iter().enumerate() {
        let (task, agent) = stage.working(&format!("worker-{n}"));
        route(&task);
        assert_eq!(stage.status(&task), status, "{action} {n}");
        assert!(agent.next(json!({})).is_notice());
        let given = agent.call("get_notifications", json!({})).body["notifications"].clone();
        assert_eq!(given.as_array().unwrap().len(), 1, "{given}");
        assert_eq!((given[0]["type"].as_str(), given[0]["action"].as_str()), (Some("interrupt"), Some(action)));
    }
    let taken = stage.authenticated("other", &other);
    assert_eq!(taken.next(json!({})).action(), "work", "the reassigned task is the other's");
}

#[test]
fn resuming_voids_the_order_and_a_new_session_is_not_stopped() {
    let stage = Stage::new();
    let passkey = stage.agent("worker");
    let task = stage.task("worker");
    let agent = stage.authenticated("worker", &passkey);
    stage.steer(&task, "blocked");
    stage.steer(&task, "running");
    assert_eq!(stage.status(&task), "running", "an agent still works on it");
    let said = agent.next(json!({}));
    assert_eq!((said.action(), said.body["notification"].as_str()), ("work", Some("no notifications")));
    stage.steer(&task, "blocked");
    agent.call("logout", json!({}));
    stage.steer(&task, "running");
    assert_eq!(stage.status(&task), "queued", "no session works on it");
    let next = stage.authenticated("worker", &passkey);
    assert_eq!(next.next(json!({})).action(), "work");
}

#[test]
fn a_blocked_task_stays_blocked_and_no_agent_is_started_for_it() {
    let stage = Stage::new();
    let passkey = stage.agent("worker");
    let (task, other) = (stage.task("worker"), stage.task("worker"));
    let agent = stage.authenticated("worker", &passkey);
    stage.steer(&task, "blocked");
    agent.call("get_notifications", json!({}));
    for _ in 0..2 {
        let said = agent.call("report_completed", json!({ "result": "blocked", "summary": "stopped after step 2" }));
        assert_eq!(
            (said.body["task_id"].as_str(), said.body["status"].as_str()),
            (Some(task.as_str()), Some("blocked"))
        );
    }
    assert_eq!(agent.next(json!({})).code(), "SESSION_ENDED");
    assert_eq!(stage.status(&other), "queued", "other tasks are untouched");
    let next = stage.authenticated("worker", &passkey);
    assert_eq!(next.next(json!({})).body["task"]["task_id"], json!(other));
    next.call("report_completed", json!({ "result": "success", "summary": "three" }));
    let done = crate::stdio::Client::legacy(&stage.home, &[]).call("get_task_status", &json!({ "task_id": other }));
    assert_eq!(done["status"], "completed");
    assert!(done["result"].as_str().unwrap().contains("three"), "{done}");
    let wish = json!({ "agent_id": "worker", "passkey": passkey, "project_id": "default" });
    let nothing = super::stage::Agent { http: stage.http().clone(), token: None }.call("authenticate", wish);
    assert_eq!((nothing.code(), nothing.body["details"]["action"].as_str()), ("NOTHING_TO_DO", Some("exit")));
    stage.steer(&task, "running");
    assert_eq!(stage.authenticated("worker", &passkey).next(json!({})).action(), "work");
}

#[test]
fn success_on_a_cancelled_task_returns_that_status() {
    let stage = Stage::new();
    let (task, agent) = stage.working("worker");
    stage.steer(&task, "cancelled");
    assert_eq!(agent.call("report_completed", json!({ "result": "success" })).body["status"], "cancelled");
}

#[test]
fn an_agent_that_does_not_listen_is_ended() {
    let stage = Stage::with(&[("MATSU_SESSIONS_CANCEL_GRACE", "2"), ("MATSU_SESSIONS_HOLD_GRACE", "4")]);
    let (task, agent) = stage.working("deaf");
    let (kept, patient) = stage.working("patient");
    let (held, slow) = stage.working("slow");
    stage.steer(&task, "cancelled");
    stage.steer(&kept, "cancelled");
    stage.steer(&held, "blocked");
    let began = Instant::now();
    patient.call("get_notifications", json!({}));
    patient.call("get_task_status", json!({}));
    let ended = |agent: &super::stage::Agent| {
        let said = agent.call("get_task_status", json!({}));
        (said.code() == "SESSION_ENDED").then(|| text(&said.body["details"]["reason"]))
    };
    assert_eq!(until("the deaf one is ended", Duration::from_secs(20), || ended(&agent)), "not_acknowledged");
    assert!(ended(&slow).is_none() || began.elapsed() > Duration::from_secs(3), "a block is more patient");
    assert_eq!(until("and then the slow one", Duration::from_secs(20), || ended(&slow)), "not_acknowledged");
    assert_eq!(ended(&patient), None, "a session that acknowledged goes on");
    assert_eq!(stage.status(&held), "blocked");
}

/// An agent of its own, in another language, that knows nothing of Matsu but its tools.
fn scripted_agent(stage: &Stage, agent: &str, passkey: &str) -> std::process::Child {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clients/sessions/scripted_agent.py");
    let url = format!("http://{}/mcp?tools=all", stage.http().address);
    let mut command = Command::new("python3");
    command.arg(script).args([&url, agent]).env("TOKEN", &stage.http().token).env("PASSKEY", passkey);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap()
}

#[test]
fn a_scripted_agent_stops_within_two_seconds_of_the_block() {
    let stage = Stage::new();
    let passkey = stage.agent("worker");
    let task = stage.task("worker");
    let mut agent = scripted_agent(&stage, "worker", &passkey);
    until("it works", Duration::from_secs(20), || (stage.status(&task) == "running").then_some(()));
    // In the middle of its work, between two calls or inside one.
    std::thread::sleep(Duration::from_millis(700));
    let blocked = Instant::now();
    stage.steer(&task, "blocked");
    let ended = until("it has ended", Duration::from_secs(10), || agent.try_wait().unwrap());
    assert!(blocked.elapsed() < Duration::from_secs(3), "it took {:?}", blocked.elapsed());
    assert!(ended.success());
    assert_eq!(stage.status(&task), "blocked");
    let reasons: Vec<String> = stage.sessions("ended").iter().map(|one| text(&one["end_reason"])).collect();
    assert_eq!(reasons, ["reported"]);
    // In a chat the same program answers every message, and ends with the chat.
    let passkey = stage.agent("talker");
    let chat = stage.open_chat("talker");
    let mut talker = scripted_agent(&stage, "talker", &passkey);
    for n in 1..=5 {
        stage.say(&chat, &format!("message {n}"));
        until("it answers", Duration::from_secs(20), || (stage.chat(&chat)["awaiting_reply"] == false).then_some(()));
    }
    let said = stage.get(&format!("/chats/{chat}/messages"))["items"].clone();
    let answers: Vec<String> = said
        .as_array()
        .unwrap()
        .iter()
        .filter(|one| one["sender"] == "agent")
        .map(|one| text(&one["content"]))
        .collect();
    assert_eq!(answers, (1..=5).map(|n| format!("You said: message {n}")).collect::<Vec<_>>());
    stage.good("POST", &format!("/chats/{chat}/end"), &json!({}));
    assert!(until("it has ended", Duration::from_secs(10), || talker.try_wait().unwrap()).success());
}
