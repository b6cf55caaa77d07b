//! Runs that call back: known as themselves, bounded by their session, and believed when they report how their task went.

use serde_json::{Value, json};

use super::{Bench, end_of, reaches, start_with};
use crate::stdio::Client;
use matsu_core::ports::store::ReadTask;

/// A script that makes these calls over MCP and prints what was answered.
fn calls(calls: &[(&str, Value)]) -> String {
    let words = calls.iter().map(|(name, arguments)| {
        let arguments = arguments.to_string().replace('\'', "'\\''");
        format!(" {name} '{arguments}'")
    });
    way_back(&words.collect::<String>())
}

pub fn way_back(words: &str) -> String {
    format!("python3 {}/tests/clients/agent_runs/way_back.py {words}", env!("CARGO_MANIFEST_DIR"))
}

#[track_caller]
fn run(client: &mut Client, agent: &str, script: &str) -> Value {
    let task = start_with(client, script, json!({ "cli_name": agent }));
    end_of(client, &task)
}

/// What a run has printed, a line each.
#[track_caller]
fn lines(end: &Value) -> Vec<Value> {
    assert_eq!(end["status"], "completed", "{end}");
    let text = end["result"].as_str().unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
}

#[test]
fn a_run_that_calls_back_is_its_own_session_and_no_more() {
    let bench = Bench::new();
    let mut client = bench.client();
    let foreign = start_with(&mut client, "sleep 60", json!({}));
    let offered = lines(&run(&mut client, "back", &way_back("tools"))).remove(0);
    let offered: Vec<&str> = offered.as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    assert!(offered.contains(&"report_completed") && offered.contains(&"use_agent"), "{offered:?}");
    assert!(!offered.contains(&"feedback") && !offered.contains(&"resolve_auth"), "{offered:?}");
    let granted = lines(&run(&mut client, "narrow", &way_back("tools"))).remove(0);
    assert!(granted.to_string().contains("list_agents") && !granted.to_string().contains("use_agent\""), "{granted}");
    let script = calls(&[
        ("get_task_status", json!({ "task_id": foreign })),
        ("cancel_task", json!({ "task_id": foreign })),
        ("use_agent", json!({ "cli_name": "script", "message": "echo child", "mode": "workspace-write" })),
        ("use_agent", json!({ "cli_name": "script", "message": "echo child" })),
        ("feedback", json!({ "action": "edge_correct" })),
        ("get_next_action", json!({})),
    ]);
    let begun = client.call("use_agent", &json!({ "cli_name": "back", "message": script, "run_async": true }));
    let task = begun["task_id"].as_str().unwrap().to_owned();
    // A person gets the address to watch it; an agent does not.
    let (_, http) = bench.home.relayed();
    assert_eq!(begun["watch"], format!("http://{}/tasks/{task}", http.address), "{begun}");
    let said = lines(&end_of(&mut client, &task));
    assert_eq!(said[3]["watch"], Value::Null, "{}", said[3]);
    assert_eq!(said[0]["status"], "not_found", "{}", said[0]);
    assert_eq!(said[1]["error_code"], "TASK_NOT_FOUND", "{}", said[1]);
    assert_eq!(said[2]["details"]["param_name"], "mode", "{}", said[2]);
    assert_eq!((said[3]["result"].as_str(), said[3]["mode"].as_str()), (Some("child\n"), Some("read-only")));
    assert!(said[4]["ok"] != true, "{}", said[4]);
    assert_eq!((said[5]["action"].as_str(), &said[5]["task"]["task_id"]), (Some("work"), &json!(task)), "{}", said[5]);
    // What it started is also for whom it works.
    let child = client.call("get_task_status", &json!({ "task_id": said[3]["task_id"] }));
    assert_eq!(child["status"], "completed", "{child}");
    client.call("cancel_task", &json!({ "task_id": foreign, "mode": "immediate" }));
}

#[test]
fn the_token_is_in_no_argument_and_opens_nothing_after_the_run() {
    let bench = Bench::new();
    let mut client = bench.client();
    let script = format!("{}; sleep 60", way_back("token"));
    let task = start_with(&mut client, &script, json!({ "cli_name": "back" }));
    let said = crate::home::until("the run has said its token", super::SOON, || {
        let said = client.call("get_task_status", &json!({ "task_id": task, "tail": 1 }));
        serde_json::from_str::<Value>(said["tail"].as_str()?).ok()
    });
    assert_eq!(said["in_argv"], false);
    assert_eq!(said["plain"], "[redacted: run token]");
    let token: String = said["backwards"].as_str().unwrap().chars().rev().collect();
    let (_, http) = bench.home.relayed();
    let http = crate::http::Http { token: token.clone(), ..http };
    // Over the other transport it is the same run: its task, its mode, its place in the tree.
    let own = http.call("get_task_status", &json!({ "task_id": task }));
    assert_eq!(own["result"]["structuredContent"]["status"], "running", "{own}");
    let refused = http.call("use_agent", &json!({ "cli_name": "script", "message": "x", "mode": "full" }));
    assert_eq!(refused["result"]["structuredContent"]["details"]["param_name"], "mode", "{refused}");
    client.call("cancel_task", &json!({ "task_id": task, "mode": "immediate" }));
    end_of(&mut client, &task);
    let late = http.call("get_task_status", &json!({ "task_id": task }));
    assert_eq!(late["result"]["structuredContent"]["error_code"], "SESSION_ENDED", "{late}");
    let log = std::fs::read_to_string(bench.home.data_dir().join("daemon.log")).unwrap_or_default();
    assert!(!log.contains(&token), "no secret in the log");
}

#[test]
fn a_process_of_a_run_without_a_token_has_nothing() {
    let bench = Bench::new();
    let mut client = bench.client();
    let (matsu, data) = (env!("CARGO_BIN_EXE_matsu"), bench.home.data_dir());
    let data = data.display();
    // A definition that says nothing of a way back gives no token, and neither does a changed environment.
    for (before, command) in [
        ("unset MATSU_RUN;", "token list"),
        ("", "token list"),
        ("export MATSU_RUN=j_1.1;", "call feedback '{\"action\":\"edge_correct\"}'"),
    ] {
        let end =
            run(&mut client, "script", &format!("{before} {matsu} --data-dir {data} {command} 2>&1; echo code=$?"));
        let said = end["result"].as_str().unwrap_or_else(|| panic!("{end}"));
        // Where the data directory does not exist for it, it finds an empty one of its own.
        assert!(!said.contains("tok_") && !said.contains("\"ok\": true"), "{end}");
    }
}

/// Presents a token at the daemon's socket as HTTP, from inside a run; prints the answer.
fn presents(token: &str, request: &str) -> String {
    let lines = format!(
        "import os, socket\ns = socket.socket(socket.AF_UNIX)\ns.connect(os.environ[\"DATA\"] + \"/matsu.sock\")\n\
         s.sendall(b'{request} HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\nContent-Length: 0\\r\\n\
         Authorization: Bearer {token}\\r\\n\\r\\n')\n\
         print(b''.join(iter(lambda: s.recv(65536), b'')).decode())"
    );
    format!("python3 -c '{}'", lines.replace('\'', "'\\''"))
}

#[test]
fn a_run_may_not_use_a_users_token() {
    let bench = Bench::new();
    let mut client = bench.client();
    let owner = {
        client.call("list_agents", &json!({}));
        bench.home.relayed().1.token
    };
    // However it came by the token, and whatever it does to its environment.
    for before in ["", "unset MATSU_RUN;"] {
        let script = format!("{before} {}", presents(&owner, "POST /control/login-code"));
        let end = run(&mut client, "back", &script);
        let said = end["result"].as_str().unwrap_or_else(|| panic!("{end}"));
        assert!(said.contains("403") && said.contains("the socket of a run"), "{end}");
        assert!(!said.contains("\"code\""), "{end}");
    }
}

#[test]
fn a_run_has_no_say_in_its_folders() {
    let bench = Bench::new();
    let elsewhere = bench.home.path("elsewhere");
    std::fs::create_dir_all(&elsewhere).unwrap();
    let mut client = bench.client();
    let folder = elsewhere.display();
    // It names a folder as a client names its project; its task does not read it, and no agent of it works there.
    let words = format!(
        "--root {folder} create_task '{{\"query\":\"pines\"}}' \
         use_agent '{{\"cli_name\":\"script\",\"message\":\"pwd\",\"working_directory\":\"{folder}\"}}'"
    );
    let said = lines(&run(&mut client, "back", &way_back(&words)));
    assert_eq!(said[0]["ok"], true, "{}", said[0]);
    assert_eq!(said[1]["error_code"], "FORBIDDEN", "{}", said[1]);
    let stored = folders_of(&bench.home, said[0]["task_id"].as_str().unwrap());
    assert_eq!(stored, json!([bench.root.canonicalize().unwrap()]), "its own directory alone");
}

/// Asks the daemon's socket for each of these over REST, as the run that it is. What the first answer names as its chat
/// stands for `OWN` in the requests behind it.
fn asks(requests: &[(&str, String, Value)]) -> String {
    let requests = json!(requests).to_string().replace('\'', "'\\''");
    way_back(&format!("rest '{requests}'"))
}

#[test]
fn a_run_with_models_has_the_chats_it_opened_and_no_others() {
    let bench = Bench::new();
    let config = bench.home.path(".config/matsu");
    let definition = std::fs::read_to_string(config.join("agents/back.toml")).unwrap();
    let definition = definition
        .replace("name = \"back\"", "name = \"chatty\"")
        .replace("[connect_back]", "[connect_back]\ngrants = \"models\"");
    std::fs::write(config.join("agents/chatty.toml"), definition).unwrap();
    std::fs::write(config.join("script.json"), json!({ "replies": [{ "text": ["Yes."] }] }).to_string()).unwrap();
    let provider = "[providers.echo]\nwire = \"scripted\"\nscript = \"script.json\"\n";
    let settings = std::fs::read_to_string(config.join("config.toml")).unwrap_or_default();
    std::fs::write(config.join("config.toml"), format!("{settings}\n{provider}")).unwrap();
    let mut client = bench.client();
    client.call("list_agents", &json!({}));
    let (_, http) = bench.home.relayed();
    let persons = http.rest("POST", "/chats", &json!({ "models": ["echo"] })).json();
    let persons = persons["chat_id"].as_str().unwrap_or_else(|| panic!("{persons}")).to_owned();

    let words = json!({ "content": "the person's own words" });
    let requests = [
        ("POST", "/api/v1/chats".to_owned(), json!({ "models": ["echo"] })),
        ("GET", "/api/v1/chats/OWN".to_owned(), Value::Null),
        ("POST", "/api/v1/chats/OWN/approvals".to_owned(), json!({ "call_id": "c", "decision": "allow" })),
        ("GET", "/api/v1/chats".to_owned(), Value::Null),
        ("GET", format!("/api/v1/chats/{persons}"), Value::Null),
        ("GET", format!("/api/v1/chats/{persons}/messages"), Value::Null),
        ("POST", format!("/api/v1/chats/{persons}/messages"), words),
        ("POST", format!("/api/v1/chats/{persons}/approvals"), json!({ "call_id": "c", "decision": "allow" })),
    ];
    let said = lines(&run(&mut client, "chatty", &asks(&requests)));
    let seen: Vec<i64> = said.iter().map(|each| each["status"].as_i64().unwrap()).collect();
    assert_eq!(seen, [200, 200, 403, 403, 404, 404, 404, 403], "{said:#?}");
    let messages = http.rest("GET", &format!("/chats/{persons}/messages"), &Value::Null).json();
    assert_eq!(messages["items"], json!([]), "nothing was said in the person's name");
}

/// The folders that a research task was stored with.
pub fn folders_of(home: &crate::home::Home, task: &str) -> Value {
    use matsu_core::ports::store::TaskLookup;
    let url = format!("sqlite:{}", home.data_dir().join("matsu.db").display());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let clock = matsu_core::clock::Clock::system();
        let options = matsu_store::OpenOptions { synchronous: matsu_store::Synchronous::Full, clock };
        let opened = matsu_store::open(&url, options).await.unwrap();
        let TaskLookup::Found(task) =
            opened.store.run(ReadTask(matsu_core::id::TaskId::from_text(task))).await.unwrap()
        else {
            panic!("no task {task}");
        };
        let config: Value = serde_json::from_str(&task.config_json).unwrap();
        config["folders"].clone()
    })
}

#[test]
fn a_report_decides_and_who_must_report_and_does_not_has_failed() {
    let bench = Bench::new();
    let mut client = bench.client();
    let report =
        |result: &str, summary: &str| calls(&[("report_completed", json!({ "result": result, "summary": summary }))]);
    let end = run(&mut client, "reporter", &format!("{} >/dev/null; exit 3", report("success", "all done")));
    assert_eq!((end["status"].as_str(), end["result"].as_str()), (Some("completed"), Some("all done")), "{end}");
    let end = run(&mut client, "reporter", &format!("{} >/dev/null; echo text", report("success", "all done")));
    assert_eq!((end["status"].as_str(), end["result"].as_str()), (Some("completed"), Some("text\n")), "{end}");
    for agent in ["reporter", "back"] {
        let end = run(&mut client, agent, &format!("{}; exit 0", report("failed", "no such file")));
        let words = (end["status"].as_str(), end["error_code"].as_str(), end["error"].as_str());
        assert_eq!(words, (Some("failed"), Some("AGENT_REPORTED_FAILURE"), Some("no such file")), "{end}");
    }
    let end = run(&mut client, "reporter", "echo done");
    assert_eq!((end["error_code"].as_str(), end["stdout_tail"].as_str()), (Some("AGENT_NO_REPORT"), Some("done\n")));
    assert!(end["error"].as_str().unwrap().contains("without calling report_completed"), "{end}");
    let end = run(&mut client, "reporter", "exit 7");
    assert_eq!(end["error_code"], "AGENT_NO_REPORT", "{end}");
    assert!(end["error"].as_str().unwrap().contains("exited with code 7"), "{end}");
    assert_eq!(run(&mut client, "back", "echo done")["status"], "completed");
}

#[test]
fn a_run_that_reports_that_it_is_blocked_goes_on_when_its_task_is_resumed() {
    let bench = Bench::new();
    let mut client = bench.client();
    let blocked = calls(&[("report_completed", json!({ "result": "blocked", "summary": "which branch?" }))]);
    let task = start_with(&mut client, &blocked, json!({ "cli_name": "back" }));
    let said = reaches(&mut client, &task, "blocked");
    assert!(said.to_string().contains("which branch?"), "{said}");
    let (_, http) = bench.home.relayed();
    let (host, key) = (http.address.to_string(), format!("Bearer {}", http.token));
    let headers = [("Host", host.as_str()), ("Authorization", &key), ("Content-Type", "application/json")];
    let resumed = http.send("PATCH", &format!("/api/v1/tasks/{task}"), &headers, br#"{"status":"running"}"#);
    assert_eq!(resumed.status, 200, "{resumed:?}");
    assert_eq!(end_of(&mut client, &task)["result"], "went on: resume\n");
}
