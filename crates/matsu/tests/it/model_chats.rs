//! Chats with models over REST, answered by the daemon: no client waits for an answer, and none misses one.

mod approvals;
mod https;
mod images;
mod owners;
mod reload;
mod together;

use std::time::Duration;

use serde_json::{Value, json};

use crate::api::until;
use crate::events::Events;
use crate::home::{Backend, Daemon, Home};

pub const MOMENT: Duration = Duration::from_secs(30);

pub fn home() -> Home {
    home_on(Backend::Sqlite)
}

pub fn home_on(backend: Backend) -> Home {
    let home = Home::new(backend);
    let slowly: Vec<String> = (0..200).map(|n| format!("{n}. ")).collect();
    let replies = json!({ "replies": [
        { "when": "count", "text": slowly, "pause_ms": 100 },
        { "when": "tasks", "calls": [{ "name": "get_task_status", "arguments": {} }] },
        { "when": "tasks", "text": ["No tasks."] },
        { "text": ["You said: {message}"] },
    ] });
    std::fs::write(home.path("script.json"), replies.to_string()).unwrap();
    let config = "[providers.echo]\nwire = \"scripted\"\nscript = \"script.json\"\n\
                  [providers.other]\nwire = \"scripted\"\nscript = \"script.json\"\n";
    std::fs::write(home.path("config.toml"), config).unwrap();
    home
}

pub fn serve(home: &Home) -> Daemon {
    let config = home.path("config.toml").display().to_string();
    home.serve_with(&["--config", &config])
}

pub fn open(daemon: &Daemon, models: &[&str]) -> String {
    let chat = daemon.api.post("/api/v1/chats", &json!({ "models": models }));
    chat["chat_id"].as_str().unwrap().to_owned()
}

pub fn say(daemon: &Daemon, chat: &str, text: &str) {
    daemon.api.post(&format!("/api/v1/chats/{chat}/messages"), &json!({ "content": text }));
}

pub fn messages(daemon: &Daemon, chat: &str) -> Vec<Value> {
    daemon.api.get(&format!("/api/v1/chats/{chat}/messages"))["items"].as_array().unwrap().clone()
}

/// The last message, once it contains this.
pub fn hears(daemon: &Daemon, chat: &str, state: &str, words: &str) -> Value {
    until(words, MOMENT, || {
        let last = messages(daemon, chat).pop()?;
        let said = last["content"].as_str().unwrap_or_default().contains(words);
        (said && last["state"] == state).then_some(last)
    })
}

#[test]
fn a_line_is_answered_in_the_background_by_the_models_it_names() {
    let home = home();
    let daemon = serve(&home);
    let models = daemon.api.get("/api/v1/models")["items"].as_array().unwrap().clone();
    let names: Vec<&str> = models.iter().map(|model| model["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["echo", "other"]);
    let chat = open(&daemon, &[]);
    say(&daemon, &chat, "just a note");
    say(&daemon, &chat, "@all hello");
    hears(&daemon, &chat, "completed", "You said: @all hello");
    let all = until("both have answered", MOMENT, || Some(messages(&daemon, &chat)).filter(|all| all.len() == 4));
    let who: Vec<&str> = all.iter().map(|message| message["sender_id"].as_str().unwrap()).collect();
    assert_eq!(who, ["user", "user", "echo", "other"]);
    let refused = |path: &str, body: Value| daemon.api.send("POST", path, Some(&body)).unwrap();
    let unknown = refused(&format!("/api/v1/chats/{chat}/messages"), json!({ "content": "@unknown hi" }));
    assert_eq!((unknown.status, unknown.json()["error_code"].as_str()), (400, Some("INVALID_PARAMS")));
    assert_eq!(refused("/api/v1/chats", json!({ "models": ["unknown"] })).status, 400);
}

#[test]
fn own_tools_are_called_without_a_hop() {
    let home = home();
    let daemon = serve(&home);
    let chat = open(&daemon, &["echo"]);
    say(&daemon, &chat, "@echo which tasks are there?");
    hears(&daemon, &chat, "completed", "No tasks.");
    let call = messages(&daemon, &chat)[1]["tools"][0].clone();
    assert_eq!((call["name"].as_str(), call["state"].as_str()), (Some("get_task_status"), Some("completed")));
    assert!(call["result"].as_str().unwrap().contains("\"ok\":true"), "{call}");
}

#[test]
fn chats_do_not_wait_for_each_other_and_a_stop_keeps_what_came() {
    let home = home();
    let daemon = serve(&home);
    let (slow, quick) = (open(&daemon, &["echo"]), open(&daemon, &["echo"]));
    say(&daemon, &slow, "@echo count");
    hears(&daemon, &slow, "running", "3. ");
    say(&daemon, &quick, "@echo hello");
    hears(&daemon, &quick, "completed", "You said: @echo hello");
    let more = json!({ "content": "@echo more" });
    let busy = daemon.api.send("POST", &format!("/api/v1/chats/{slow}/messages"), Some(&more)).unwrap();
    assert_eq!(busy.status, 409);
    let stopped = daemon.api.post(&format!("/api/v1/chats/{slow}/stop"), &json!({}));
    assert_eq!(stopped["stopped"], true);
    let kept = hears(&daemon, &slow, "stopped", "0. 1. 2. 3. ");
    assert!(!kept["content"].as_str().unwrap().contains("199."), "{kept}");
    assert_eq!(messages(&daemon, &quick).len(), 2);
}

#[test]
fn a_daemon_that_dies_in_mid_answer_loses_at_most_two_seconds() {
    let home = home();
    let mut daemon = serve(&home);
    let chat = open(&daemon, &["echo"]);
    say(&daemon, &chat, "@echo count");
    hears(&daemon, &chat, "running", "45. ");
    daemon.process.kill();
    let daemon = serve(&home);
    hears(&daemon, &chat, "failed", "20. ");
    say(&daemon, &chat, "@echo are you there?");
    let last = hears(&daemon, &chat, "completed", "You said: @echo are you there?");
    assert_eq!(last["seq"], 4, "what was cut off is part of the chat: {last}");
    let cut = messages(&daemon, &chat)[1]["content"].clone();
    assert!(
        cut.as_str().unwrap().ends_with("[cut off here: the server ended before the answer was complete]"),
        "{cut}"
    );
}

#[test]
fn a_chat_is_named_prompted_exported_and_ended() {
    let home = home();
    let daemon = serve(&home);
    let chat = open(&daemon, &["echo"]);
    let wish = json!({ "name": "plans", "system_prompt": "Be brief." });
    assert_eq!(daemon.api.patch(&format!("/api/v1/chats/{chat}"), &wish)["name"], "plans");
    say(&daemon, &chat, "@echo hello");
    hears(&daemon, &chat, "completed", "You said: @echo hello");
    let file = daemon.api.get(&format!("/api/v1/chats/{chat}/export"));
    assert_eq!(
        (file["system_prompt"].as_str(), file["entries"][1]["role"].as_str()),
        (Some("Be brief."), Some("assistant"))
    );
    let markdown = daemon.api.get(&format!("/api/v1/chats/{chat}/export?format=markdown"))["markdown"].clone();
    assert!(markdown.as_str().unwrap().contains("You said: @echo hello"), "{markdown}");
    assert_eq!(daemon.api.post(&format!("/api/v1/chats/{chat}/end"), &json!({}))["state"], "ended");
    let more = json!({ "content": "@echo more" });
    let late = daemon.api.send("POST", &format!("/api/v1/chats/{chat}/messages"), Some(&more)).unwrap();
    assert_eq!((late.status, late.json()["error_code"].as_str()), (409, Some("CHAT_ENDED")));
}

#[test]
fn a_budget_ends_the_answer_and_what_it_started() {
    let home = Home::sqlite().with_variable("MATSU_CHAT_TOKENS_MAX", "100");
    let usage = json!({ "input_tokens": 50, "output_tokens": 10, "cached_tokens": 0 });
    let replies = json!({ "replies": [
        { "when": "research", "calls": [{ "name": "create_task", "arguments": { "query": "pine" } }], "usage": usage },
        { "when": "research", "calls": [{ "name": "get_task_status", "arguments": {} }], "usage": usage },
        { "when": "research", "text": ["too dear"], "usage": usage },
    ] });
    std::fs::write(home.path("script.json"), replies.to_string()).unwrap();
    std::fs::write(home.path("config.toml"), "[providers.echo]\nwire = \"scripted\"\nscript = \"script.json\"\n")
        .unwrap();
    let daemon = serve(&home);
    let chat = open(&daemon, &["echo"]);
    say(&daemon, &chat, "@echo research it");
    let bearer = format!("Authorization: Bearer {}", daemon.api.token);
    let mut events = Events::open(&daemon.api, &format!("/api/v1/chats/{chat}/stream"), &[&bearer]);
    let end = events.until("the end", |event| event.name == "chat" && event.data["answering"] == false).data;
    let spoken = &end["spoken"][0];
    assert_eq!(
        (spoken["stop_reason"].as_str(), spoken["error_code"].as_str()),
        (Some("budget"), Some("BUDGET_EXHAUSTED"))
    );
    let task = daemon.api.all("tasks").into_iter().find(|task| task["kind"] == "research").unwrap();
    assert_eq!(task["status"], "completed", "a task without searches would wait for ever: {task}");
    assert!(!messages(&daemon, &chat).iter().any(|message| message["content"] == "too dear"));
}

#[test]
fn without_a_model_it_says_what_to_do() {
    let home = Home::sqlite();
    let daemon = home.serve();
    assert_eq!(daemon.api.get("/api/v1/models")["items"], json!([]));
    let refused = daemon.api.send("POST", "/api/v1/chats", Some(&json!({ "models": [] }))).unwrap();
    assert_eq!(refused.status, 400);
    assert!(refused.body.contains("[providers.NAME]"), "{}", refused.body);
}

#[test]
fn the_doctor_looks_at_models_and_servers() {
    let home = home();
    let servers = json!({ "mcpServers": { "gone": { "command": "/does/not/exist" } } });
    std::fs::create_dir_all(home.data_dir()).unwrap();
    std::fs::write(home.data("mcp.json"), servers.to_string()).unwrap();
    let config = home.path("config.toml").display().to_string();
    let text = home.run(&["doctor", "--json", "--config", &config]).json();
    let finding = |what: &str| {
        let findings = text["findings"].as_array().unwrap().iter();
        findings.clone().find(|finding| finding["what"] == what).unwrap_or_else(|| panic!("{text}")).clone()
    };
    assert_eq!(
        (finding("models")["state"].as_str(), finding("models")["detail"].as_str()),
        (Some("ok"), Some("echo answers, other answers (keys are not tried: that would cost money)"))
    );
    assert!(finding("mcp")["detail"].as_str().unwrap().contains("gone"), "{text}");
    assert_eq!(finding("mcp")["state"], "problem");
}
