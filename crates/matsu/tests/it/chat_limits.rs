//! What bounds an answer in `matsu chat`, and what a person approves for good.

use std::io::Write;
use std::net::TcpListener;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use matsu_testkit::model_server::{Asked, ModelServer, Part, Reply, Script};
use serde_json::{Value, json};

use crate::home::{Home, Ran, run};

/// An MCP server with two tools that carry no annotations: `slow` takes ten seconds, `quick` none.
const SERVER: &str = r#"
import json, sys, time
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    method, params = message["method"], message.get("params", {})
    reply = {"jsonrpc": "2.0", "id": message["id"]}
    schema = {"type": "object"}
    if method == "initialize":
        reply["result"] = {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}},
                           "serverInfo": {"name": "slow", "version": "1"}}
    elif method == "tools/list":
        reply["result"] = {"tools": [{"name": "slow", "inputSchema": schema}, {"name": "quick", "inputSchema": schema}]}
    elif method == "tools/call":
        if params["name"] == "slow":
            time.sleep(10)
        reply["result"] = {"content": [{"type": "text", "text": "it ran"}]}
    else:
        reply["error"] = {"code": -32601, "message": "unknown"}
    print(json.dumps(reply), flush=True)
"#;

fn provider(server: &ModelServer, more: &str) -> String {
    format!("[providers.m]\nwire = \"openai_chat\"\nmodel = \"m-1\"\nbase_url = \"{}/v1\"\n{more}", server.url())
}

fn home_with(config: &str) -> Home {
    let home = Home::sqlite();
    std::fs::write(home.path("config.toml"), config).unwrap();
    home
}

fn add_server(home: &Home, timeout_ms: u64) {
    let program = home.path("server.py");
    std::fs::write(&program, SERVER).unwrap();
    std::fs::create_dir_all(home.data_dir()).unwrap();
    let entry = json!({ "command": "python3", "args": [program], "timeout": timeout_ms });
    std::fs::write(home.data("mcp.json"), json!({ "mcpServers": { "far": entry } }).to_string()).unwrap();
}

/// One question and one answer, asked from a directory.
fn once(home: &Home, directory: &Path, args: &[&str]) -> Ran {
    let question = home.path("question");
    std::fs::write(&question, "go").unwrap();
    let mut command = home.command(&[&["chat", "--once", "--model", "m"], args].concat());
    command.arg("--config").arg(home.path("config.toml")).current_dir(directory);
    command.stdin(std::fs::File::open(&question).unwrap());
    run(command)
}

/// Calls one tool, then repeats what it answered.
fn calling(tool: &'static str) -> ModelServer {
    ModelServer::with(Box::new(move |asked: &Asked| match asked.results.last() {
        None => Reply::tool(tool, json!({})),
        Some(result) => Reply::text(&format!("the tool answered: {result}")),
    }))
    .unwrap()
}

#[test]
fn the_timeout_of_an_mcp_server_has_its_effect() {
    let server = calling("slow");
    let home = home_with(&provider(&server, ""));
    add_server(&home, 400);
    let began = Instant::now();
    let ran = once(&home, home.path("").as_path(), &["--allow", "slow"]);
    assert!(ran.out.contains("no progress for 0.4 s"), "{ran:?}");
    assert!(began.elapsed() < Duration::from_secs(9), "{:?}", began.elapsed());
}

#[test]
fn an_approval_is_remembered_for_the_tool_and_the_project() {
    let server = calling("quick");
    let home = home_with(&provider(&server, ""));
    add_server(&home, 20_000);
    let (project, other) = (home.path("project"), home.path("other"));
    for folder in [project.join(".git"), project.join("below"), other.clone()] {
        std::fs::create_dir_all(folder).unwrap();
    }
    let refused = once(&home, &project, &[]);
    assert!(refused.out.contains("needs a person's approval"), "{refused:?}");
    let allowed = once(&home, &project, &["--allow", "quick"]);
    assert!(allowed.out.contains("it ran"), "{allowed:?}");

    let log = std::fs::File::create(home.path("chat.log")).unwrap();
    let mut command = home.command(&["chat", "--model", "m"]);
    command.arg("--config").arg(home.path("config.toml")).current_dir(project.join("below"));
    let mut child = command.stdin(Stdio::piped()).stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"go\np\n/approve\n/exit\n").unwrap();
    assert!(child.wait().unwrap().success());
    let shown = std::fs::read_to_string(home.path("chat.log")).unwrap();
    assert!(shown.contains("it ran") && shown.contains("quick  always in"), "{shown}");

    let remembered = once(&home, &project, &[]);
    assert!(remembered.out.contains("it ran"), "{remembered:?}");
    let elsewhere = once(&home, &other, &[]);
    assert!(elsewhere.out.contains("needs a person's approval"), "{elsewhere:?}");
}

#[test]
fn turns_and_seconds_of_an_answer_are_settings() {
    let server = calling("get_task_status");
    let home = home_with(&format!("[chat]\nturns_max = 1\n{}", provider(&server, "")));
    let ran = once(&home, home.path("").as_path(), &[]);
    assert!(ran.code == 1 && ran.err.contains("stopped after 1 rounds"), "{ran:?}");
    let silent = ModelServer::start(Script::new().always(Reply::Hang("half".to_owned()))).unwrap();
    let home = home_with(&format!("[chat]\nseconds_max = 1\n{}", provider(&silent, "")));
    let began = Instant::now();
    let ran = once(&home, home.path("").as_path(), &[]);
    assert!(ran.code == 1 && ran.err.contains("no answer within 1 s (chat.seconds_max)"), "{ran:?}");
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
}

#[test]
fn a_silent_model_is_given_up_after_its_timeout() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    let config = format!(
        "[providers.m]\nwire = \"openai_chat\"\nmodel = \"m\"\nbase_url = \"http://{address}/v1\"\ntimeout = 1\n"
    );
    let home = home_with(&config);
    let began = Instant::now();
    let ran = once(&home, home.path("").as_path(), &[]);
    assert!(ran.code == 1 && began.elapsed() < Duration::from_secs(4), "{:?} {ran:?}", began.elapsed());
}

#[test]
fn equal_calls_in_one_round_are_no_circle() {
    let server = ModelServer::with(Box::new(|asked: &Asked| {
        let call = || Part::Tool { name: "list_agents".to_owned(), arguments: json!({}) };
        if asked.results.is_empty() { Reply::Say(vec![call(), call(), call()]) } else { Reply::text("all three") }
    }))
    .unwrap();
    let home = home_with(&provider(&server, ""));
    let ran = once(&home, home.path("").as_path(), &[]);
    assert_eq!((ran.code, ran.out.trim()), (0, "all three"), "{ran:?}");
}

#[test]
fn turns_that_do_not_fit_are_announced() {
    let long = "word ".repeat(400);
    let server = ModelServer::start(Script::new().always(Reply::text(&long))).unwrap();
    let home = home_with(&provider(&server, "context_tokens = 9000\noutput_tokens = 200\n"));
    let mut command = home.command(&["chat", "--model", "m", "--tools", "research"]);
    command.arg("--config").arg(home.path("config.toml"));
    let log = std::fs::File::create(home.path("chat.log")).unwrap();
    let mut child = command.stdin(Stdio::piped()).stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap();
    let lines = format!("question {long}\n").repeat(12);
    child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
    let shown = std::fs::read_to_string(home.path("chat.log")).unwrap();
    assert!(shown.contains("m does not see the oldest "), "{}", &shown[shown.len().saturating_sub(600)..]);
}

#[test]
fn a_saved_chat_stays_as_it_was_and_a_loaded_one_is_shown() {
    let server = ModelServer::start(Script::new().always(Reply::text("fine"))).unwrap();
    let home = home_with(&provider(&server, ""));
    let mut command = home.command(&["chat", "--model", "m"]);
    command.arg("--config").arg(home.path("config.toml"));
    let log = std::fs::File::create(home.path("chat.log")).unwrap();
    let mut child = command.stdin(Stdio::piped()).stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap();
    let script = "first line\n/history save a\nsecond line\n/history save b\nthird line\n/history load a\n\
                  /history load b\n/exit\n";
    child.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
    let shown = std::fs::read_to_string(home.path("chat.log")).unwrap();
    let (before, after) = shown.split_once("[you]: first line").unwrap_or_else(|| panic!("{shown}"));
    let (of_a, of_b) = after.split_once("[you]: first line").unwrap_or_else(|| panic!("{shown}"));
    assert!(before.contains("saved as b"), "{shown}");
    assert!(of_a.contains("(2 entries)") && !of_a.contains("[you]: second line"), "{shown}");
    assert!(of_b.contains("[you]: second line") && of_b.contains("(4 entries)"), "{shown}");
    assert!(!of_b.contains("third line"), "{shown}");
}

#[test]
fn the_doctor_tries_engines_folders_and_models() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let site = matsu_testkit::test_site::TestSite::start().unwrap();
    let config = format!("[providers.m]\nwire = \"openai_chat\"\nmodel = \"m\"\nbase_url = \"http://{closed}/v1\"\n");
    let home = Home::sqlite()
        .with_variable("MATSU_RESEARCH_SEARXNG", site.searxng())
        .with_variable("MATSU_RESEARCH_OPENALEX", format!("http://{closed}"))
        .with_variable("MATSU_RESEARCH_FOLDERS", "/does/not/exist")
        .with_variable("MATSU_RESEARCH_BROWSER", "/does/not/exist/browser");
    std::fs::write(home.path("config.toml"), config).unwrap();
    let file = home.path("config.toml").display().to_string();
    let ran = home.run(&["doctor", "--json", "--config", &file]);
    let found: Value = ran.json();
    let finding =
        |what: &str| found["findings"].as_array().unwrap().iter().find(|f| f["what"] == what).unwrap().clone();
    for (what, words) in
        [("models", "refused"), ("engines", "openalex: "), ("folders", "/does/not/exist"), ("browser", "browser")]
    {
        assert_eq!(finding(what)["state"], "problem", "{what}: {found}");
        assert!(finding(what)["detail"].as_str().unwrap().contains(words), "{what}: {found}");
    }
    assert!(finding("engines")["detail"].as_str().unwrap().contains("searxng: "), "{found}");
}
