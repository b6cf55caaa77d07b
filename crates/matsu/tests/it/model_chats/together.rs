//! Several vendors in one chat, each with parallel calls, and each as strict as the real one.

use matsu_testkit::model_server::{ModelServer, Part, Reply, Script};
use serde_json::json;

use super::{MOMENT, messages, open, say, serve};
use crate::api::until;
use crate::events::Events;
use crate::home::Home;

const WIRES: [(&str, &str, &str); 5] = [
    ("gemini", "gemini", ""),
    ("claude", "anthropic", ""),
    ("chatgpt", "openai", "/v1"),
    ("gateway", "openai_chat", "/v1"),
    ("local", "ollama", ""),
];

#[test]
fn what_five_models_made_with_parallel_calls_is_taken_by_each_strict_vendor() {
    let call = |name: &str, arguments| Part::Tool { name: name.to_owned(), arguments };
    let both = vec![
        Part::Text("Let me look.".to_owned()),
        call("get_task_status", json!({})),
        call("get_status", json!({ "task_id": "task_nowhere" })),
    ];
    let script = Script::new().on("please look", Reply::Say(both)).always(Reply::text("I have looked."));
    let server = ModelServer::strict(script).unwrap();
    let home = Home::sqlite();
    let provider = |(name, wire, path): (&str, &str, &str)| {
        format!(
            "[providers.{name}]\nwire = \"{wire}\"\nmodel = \"gemini-3-m\"\nbase_url = \"{}{path}\"\n",
            server.url()
        )
    };
    std::fs::write(home.path("config.toml"), WIRES.map(provider).concat()).unwrap();
    let daemon = serve(&home);
    let chat = open(&daemon, &[]);
    for (line, entries) in [("@all please look", 11), ("@all please look again", 22), ("@all thank you", 28)] {
        say(&daemon, &chat, line);
        let said = until(line, MOMENT, || {
            let all = messages(&daemon, &chat);
            (all.len() == entries && all.iter().all(|message| message["state"] == "completed")).then_some(all)
        });
        assert_eq!(said.last().unwrap()["content"], "I have looked.");
        let bearer = format!("Authorization: Bearer {}", daemon.api.token);
        let mut events = Events::open(&daemon.api, &format!("/api/v1/chats/{chat}/stream"), &[&bearer]);
        let now = events.until("the chat as it is", |event| event.data["answering"] == false).data;
        assert_eq!(now["notices"], json!([]), "no call was refused");
        let reasons = now["spoken"].as_array().unwrap().iter();
        assert!(reasons.clone().all(|spoken| spoken["stop_reason"] == "end_turn"), "{now}");
    }
    assert_eq!(server.asked().len(), 25);
    let calls: Vec<_> =
        messages(&daemon, &chat).iter().flat_map(|m| m["tools"].as_array().cloned()).flatten().collect();
    let ids: std::collections::BTreeSet<_> = calls.iter().map(|call| call["id"].as_str().unwrap()).collect();
    assert_eq!((calls.len(), ids.len()), (20, 20), "every call has an id of its own");
}

#[test]
fn a_key_is_not_shown_by_rest_in_the_log_in_the_arguments_or_in_the_store() {
    const KEY: &str = "sk-canary-0123456789";
    let refusing = ModelServer::start(Script::new().always(Reply::error(401, &format!("{KEY} is unknown")))).unwrap();
    let home = Home::sqlite().with_variable("MY_KEY", KEY);
    let provider = |(name, wire, path): (&str, &str, &str)| {
        let base = format!("{}{path}", refusing.url());
        format!("[providers.{name}]\nwire = \"{wire}\"\nmodel = \"m\"\nbase_url = \"{base}\"\nkey_env = \"MY_KEY\"\n")
    };
    std::fs::write(home.path("config.toml"), WIRES.map(provider).concat()).unwrap();
    let config = home.path("config.toml").display().to_string();
    let daemon = home.serve_with(&["-vv", "--config", &config]);
    let chat = open(&daemon, &[]);
    say(&daemon, &chat, "@all hello");
    let bearer = format!("Authorization: Bearer {}", daemon.api.token);
    let mut events = Events::open(&daemon.api, &format!("/api/v1/chats/{chat}/stream"), &[&bearer]);
    let now = events.until("all were refused", |event| event.data["answering"] == false).data;
    assert_eq!(now["spoken"].as_array().unwrap().len(), WIRES.len(), "{now}");
    assert!(now["spoken"].as_array().unwrap().iter().all(|spoken| spoken["error_code"] == "PROVIDER_AUTH"), "{now}");
    let arguments = std::fs::read_to_string(format!("/proc/{}/cmdline", daemon.process.pid())).unwrap();
    let store = String::from_utf8_lossy(&std::fs::read(home.data("matsu.db")).unwrap()).into_owned();
    let doctor = daemon.api.get("/api/v1/doctor").to_string();
    for (place, text) in [
        ("REST", now.to_string()),
        ("log", daemon.process.printed()),
        ("argv", arguments),
        ("store", store),
        ("doctor", doctor),
    ] {
        assert!(!text.contains("canary"), "{place}: {text}");
    }
    assert!(refusing.asked().iter().all(|asked| !asked.path.contains("canary")));
}
