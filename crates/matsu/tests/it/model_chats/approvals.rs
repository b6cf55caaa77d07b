//! A model that wants to do something destructive, over a vendor's wire: a person is asked, and their word holds.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use matsu_testkit::model_server::{Asked, ModelServer, Part, Reply};
use serde_json::{Value, json};

use super::{MOMENT, hears, messages, open, say, serve};
use crate::api::{sleep, until};
use crate::home::{Daemon, Home};

struct Stage {
    home: Home,
    server: ModelServer,
    tasks: Arc<Mutex<Vec<String>>>,
}

/// Asked to stop them, the model cancels every task it knows of, in one round.
fn stage(wire: &str, path: &str) -> Stage {
    let tasks: Arc<Mutex<Vec<String>>> = Arc::default();
    let known = Arc::clone(&tasks);
    let author = move |asked: &Asked| {
        if !asked.results.is_empty() {
            return Reply::text(&format!("Got {}.", asked.results.len()));
        }
        let call = |id: &String| Part::Tool { name: "cancel_task".to_owned(), arguments: json!({ "task_id": id }) };
        Reply::Say(known.lock().unwrap().iter().map(call).collect())
    };
    let server = ModelServer::with(Box::new(author)).unwrap();
    let home = Home::sqlite();
    let config = format!("[providers.m]\nwire = \"{wire}\"\nmodel = \"m-1\"\nbase_url = \"{}{path}\"\n", server.url());
    std::fs::write(home.path("config.toml"), config).unwrap();
    Stage { home, server, tasks }
}

fn begin(stage: &Stage, daemon: &Daemon, tasks: usize) -> (String, Vec<String>) {
    let ids: Vec<String> = (0..tasks).map(|_| daemon.api.submit(vec![sleep(60_000)])).collect();
    stage.tasks.lock().unwrap().clone_from(&ids);
    let chat = open(daemon, &["m"]);
    say(daemon, &chat, "@m stop them");
    (chat, ids)
}

/// The calls of the last answer, once as many wait for a person.
fn waiting(daemon: &Daemon, chat: &str, count: usize) -> Vec<Value> {
    until("calls wait for a person", MOMENT, || {
        let tools = messages(daemon, chat).get(1)?["tools"].as_array()?.clone();
        let asked = tools.iter().filter(|tool| tool["state"] == "awaiting_approval").count();
        (asked == count).then_some(tools)
    })
}

fn answer(daemon: &Daemon, chat: &str, call: &Value, allow: bool) {
    let word = json!({ "call_id": call["id"], "allow": allow });
    let events = daemon.api.post(&format!("/api/v1/chats/{chat}/approvals"), &word);
    assert_eq!(events["allowed"], allow);
}

#[test]
fn several_calls_wait_and_each_gets_its_own_answer() {
    for (wire, path) in [("openai_chat", "/v1"), ("openai", "/v1"), ("anthropic", ""), ("gemini", ""), ("ollama", "")] {
        let stage = stage(wire, path);
        let daemon = serve(&stage.home);
        let (chat, ids) = begin(&stage, &daemon, 2);
        let calls = waiting(&daemon, &chat, 2);
        let about = |call: &Value| call["arguments"]["task_id"].as_str().unwrap().to_owned();
        answer(&daemon, &chat, &calls[1], true);
        answer(&daemon, &chat, &calls[0], false);
        hears(&daemon, &chat, "completed", "Got 2.");
        assert_eq!((about(&calls[0]), about(&calls[1])), (ids[0].clone(), ids[1].clone()), "{wire}");
        assert_eq!(daemon.api.task(&ids[1])["status"], "cancelled", "{wire}: allowed");
        assert_eq!(daemon.api.task(&ids[0])["status"], "running", "{wire}: refused");
        let events = stage.server.asked()[1].asked.clone().unwrap().results;
        let count = |words: &str| events.iter().filter(|result| result.contains(words)).count();
        assert_eq!((count("a person refused it"), count(&ids[1])), (1, 1), "{wire}: {events:?}");
        let tools = messages(&daemon, &chat)[1]["tools"].clone();
        assert_eq!((tools[0]["state"].as_str(), tools[1]["state"].as_str()), (Some("failed"), Some("completed")));
    }
}

#[test]
fn always_holds_for_the_rest_of_the_chat_and_for_no_other() {
    let stage = stage("openai_chat", "/v1");
    let daemon = serve(&stage.home);
    let (chat, ids) = begin(&stage, &daemon, 2);
    let calls = waiting(&daemon, &chat, 2);
    let word = json!({ "call_id": calls[0]["id"], "allow": true, "always": true });
    daemon.api.post(&format!("/api/v1/chats/{chat}/approvals"), &word);
    hears(&daemon, &chat, "completed", "Got 2.");
    assert!(ids.iter().all(|id| daemon.api.task(id)["status"] == "cancelled"), "those that waited too");
    let next = daemon.api.submit(vec![sleep(60_000)]);
    *stage.tasks.lock().unwrap() = vec![next.clone()];
    say(&daemon, &chat, "@m stop that too");
    until("it is not asked again", MOMENT, || (daemon.api.task(&next)["status"] == "cancelled").then_some(()));
    let (other, _) = begin(&stage, &daemon, 1);
    waiting(&daemon, &other, 1);
    let gone = json!({ "call_id": calls[0]["id"], "allow": true });
    let late = daemon.api.send("POST", &format!("/api/v1/chats/{other}/approvals"), Some(&gone)).unwrap();
    assert_eq!(late.status, 404, "a call of another chat: {}", late.body);
}

#[test]
fn a_stop_settles_what_waits_and_nothing_is_run() {
    let stage = stage("anthropic", "");
    let daemon = serve(&stage.home);
    let (chat, ids) = begin(&stage, &daemon, 2);
    waiting(&daemon, &chat, 2);
    daemon.api.post(&format!("/api/v1/chats/{chat}/stop"), &json!({}));
    let tools = until("both are settled", Duration::from_secs(10), || {
        let said = messages(&daemon, &chat).get(1)?.clone();
        (said["state"] == "stopped").then(|| said["tools"].clone())
    });
    assert!(tools.as_array().unwrap().iter().all(|tool| tool["state"] == "failed"), "{tools}");
    assert!(ids.iter().all(|id| daemon.api.task(id)["status"] == "running"));
}
