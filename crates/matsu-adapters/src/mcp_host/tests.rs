//! The host against MCP servers of others, as real processes: list, call, kill in mid-call, reconnect, leave nothing.
#![expect(clippy::disallowed_methods, reason = "tests look at processes and at the real clock")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use matsu_core::clock::Clock;
use matsu_core::ports::provider::Danger;
use matsu_core::ports::tool_source::{ToolAnswer, ToolReply, ToolRequest, ToolSource};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::config::McpConfig;
use super::{ChatServers, McpHost};

/// Where the servers are installed; installs them if they are missing.
static SERVERS: LazyLock<PathBuf> = LazyLock::new(|| {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/clients.sh");
    let output = Command::new(script).arg("servers").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    PathBuf::from(String::from_utf8(output.stdout).unwrap().trim())
});

fn program(name: &str) -> String {
    SERVERS.join("bin").join(name).display().to_string()
}

fn host(servers: &Value) -> McpHost {
    let servers = McpConfig::parse(&json!({ "mcpServers": servers }).to_string(), &|_| None).unwrap();
    let environment = ["PATH", "HOME"].map(|name| (name.to_owned(), std::env::var(name).unwrap_or_default()));
    McpHost::new(McpConfig { servers, environment: environment.to_vec() }, vec![], Clock::system())
}

fn time() -> Value {
    json!({ "command": program("mcp-server-time"), "args": ["--local-timezone", "UTC"] })
}

fn everything() -> Value {
    json!({ "command": program("mcp-server-everything") })
}

async fn names(servers: &ChatServers) -> Vec<String> {
    let offered = servers.offer().await;
    assert_eq!(offered.notes, Vec::<String>::new());
    offered.tools.into_iter().map(|tool| tool.name.to_string()).collect()
}

fn request(name: &str, arguments: Value) -> ToolRequest {
    let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
    ToolRequest { name: name.to_owned(), arguments, alive: Arc::new(|| {}) }
}

async fn call(servers: &ChatServers, name: &str, arguments: Value) -> ToolAnswer {
    match servers.call(request(name, arguments)).await {
        ToolReply::Now(answer) => answer,
        ToolReply::Later(answer) => answer.await,
    }
}

/// Processes below this one whose command line holds `mark`.
fn children(mark: &str) -> Vec<i32> {
    let output = Command::new("ps").args(["-A", "-o", "pid=,args="]).output().unwrap();
    let lines = String::from_utf8_lossy(&output.stdout).into_owned();
    let with_mark = lines.lines().filter(|line| line.contains(mark) && !line.contains("ps -A"));
    with_mark.filter_map(|line| line.split_whitespace().next()?.parse().ok()).collect()
}

/// Processes whose environment has this mark.
fn marked(mark: &str) -> Vec<i32> {
    let wanted = format!("MARK={mark}");
    let pids = std::fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let has_mark = |pid: &i32| {
        let surroundings = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        String::from_utf8_lossy(&surroundings).contains(&wanted)
    };
    pids.filter(has_mark).collect()
}

fn signal(pids: &[i32], signal: Signal) {
    for pid in pids {
        let pid = rustix::process::Pid::from_raw(*pid).unwrap();
        let _ = rustix::process::kill_process(pid, signal);
    }
}

#[tokio::test]
async fn a_server_is_listed_and_called() {
    let host = host(&json!({ "time": time() }));
    let servers = host.for_chat("a");
    assert_eq!(names(&servers).await, ["convert_time", "get_current_time"]);
    let answer = call(&servers, "get_current_time", json!({ "timezone": "Asia/Tokyo" })).await;
    assert!(!answer.is_error && answer.content.contains("Asia/Tokyo"), "{answer:?}");
    let refused = call(&servers, "get_current_time", json!({ "timezone": "Nowhere/At_All" })).await;
    assert!(refused.is_error, "{refused:?}");
    host.close_all().await;
}

#[tokio::test]
async fn two_servers_with_one_tool_are_called_apart_under_legal_names() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = (folder.path().join("one"), folder.path().join("two"));
    for (place, text) in [(&one, "first"), (&two, "second")] {
        std::fs::create_dir(place).unwrap();
        std::fs::write(place.join("x.txt"), text).unwrap();
    }
    let files = |place: &Path| json!({ "command": program("mcp-server-filesystem"), "args": [place] });
    let host = host(&json!({ "one": files(&one), "two": files(&two), "time": time() }));
    let servers = host.for_chat("a");
    let offered = names(&servers).await;
    assert!(offered.contains(&"one__read_text_file".to_owned()) && offered.contains(&"get_current_time".to_owned()));
    assert_eq!(names(&servers).await, offered, "the same again");
    for (server, place, text) in [("one", &one, "first"), ("two", &two, "second")] {
        let path = place.join("x.txt");
        let answer = call(&servers, &format!("{server}__read_text_file"), json!({ "path": path })).await;
        assert!(answer.content.contains(text), "{answer:?}");
    }
    host.close_all().await;
}

#[tokio::test]
async fn a_server_killed_in_mid_call_is_an_error_and_comes_back() {
    let host = host(&json!({ "all": everything() }));
    let servers = host.for_chat("a");
    let offered = names(&servers).await;
    assert!(offered.contains(&"echo".to_owned()), "{offered:?}");
    let slow = json!({ "duration": 60, "steps": 60 });
    let long = servers.call(request("trigger-long-running-operation", slow));
    let kill = async {
        Clock::system().sleep(Duration::from_millis(500)).await;
        signal(&children("mcp-server-everything"), Signal::KILL);
    };
    let (reply, ()) = tokio::join!(long, kill);
    let ToolReply::Now(answer) = reply else { panic!("a legacy server has no tasks") };
    assert!(answer.is_error && answer.content.contains("lost"), "{answer:?}");
    let answer = call(&servers, "echo", json!({ "message": "back" })).await;
    assert!(!answer.is_error && answer.content.contains("back"), "{answer:?}");
    host.close_all().await;
    assert_eq!(children("mcp-server-everything"), Vec::<i32>::new());
}

#[tokio::test]
async fn each_real_peer_is_killed_in_mid_call_and_started_again_by_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let mark = folder.path().display().to_string();
    let files = json!({ "command": program("mcp-server-filesystem"), "args": [mark] });
    let mut clock = time();
    clock["env"] = json!({ "MARK": mark });
    let peers = [
        ("time", clock, "get_current_time", json!({ "timezone": "UTC" })),
        ("filesystem", files, "list_allowed_directories", json!({})),
    ];
    for (name, server, tool, arguments) in peers {
        let host = host(&json!({ name: server }));
        let servers = host.for_chat("a");
        names(&servers).await;
        // Their tools answer at once; one that is stopped first is sure to be in the middle of the call.
        let pids: Vec<i32> = children(&mark).into_iter().chain(marked(&mark)).collect();
        signal(&pids, Signal::STOP);
        let kill = async {
            Clock::system().sleep(Duration::from_millis(300)).await;
            signal(&pids, Signal::KILL);
        };
        let (answer, ()) = tokio::join!(call(&servers, tool, arguments.clone()), kill);
        assert!(answer.is_error && answer.content.contains("lost"), "{name}: {answer:?}");
        let answer = call(&servers, tool, arguments).await;
        assert!(!answer.is_error, "{name}: {answer:?}");
        host.close_all().await;
        assert_eq!((children(&mark), marked(&mark)), (vec![], vec![]), "{name}");
    }
}

#[tokio::test]
async fn a_server_that_is_down_is_named_and_the_others_work() {
    let host = host(&json!({ "gone": { "command": "/does/not/exist" }, "time": time() }));
    let servers = host.for_chat("a");
    let offered = servers.offer().await;
    assert_eq!(offered.tools.len(), 2);
    assert!(offered.notes[0].contains("gone") && offered.notes[0].contains("cannot be started"), "{:?}", offered.notes);
    host.close_all().await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_down_is_tried_again_with_growing_pauses() {
    let host = host(&json!({ "gone": { "command": "/does/not/exist" } }));
    let servers = host.for_chat("a");
    for pause in [1, 2, 4, 8] {
        assert!(!servers.offer().await.notes[0].contains("tried again"), "tried now");
        let text = servers.offer().await.notes[0].clone();
        assert!(
            text.contains(&format!("tried again in {pause} s")) || text.contains(&format!("in {} s", pause + 1)),
            "{text}"
        );
        Clock::system().sleep(Duration::from_secs(pause)).await;
    }
    host.close_all().await;
}

#[tokio::test]
async fn a_strict_server_is_greeted_first_and_a_hundred_rounds_leave_no_child() {
    // It answers everything but a greeting with an error until it was greeted, and ends if it was not.
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("strict-server.py");
    std::fs::write(&script, include_str!("tests/strict_server.py")).unwrap();
    let host = host(&json!({ "strict": { "command": "python3", "args": [script] } }));
    for round in 0..100 {
        let chat = format!("chat {round}");
        let servers = host.for_chat(&chat);
        assert_eq!(names(&servers).await, ["ping_me"], "round {round}");
        host.close_chat(&chat).await;
    }
    assert_eq!(children(&script.display().to_string()), Vec::<i32>::new());
}

#[tokio::test]
async fn a_server_that_is_slow_to_start_is_there_all_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("strict-server.py");
    std::fs::write(&script, include_str!("tests/strict_server.py")).unwrap();
    let host = host(&json!({ "slow": { "command": "python3", "args": [script, "--slow"] } }));
    assert_eq!(names(&host.for_chat("a")).await, ["ping_me"]);
    host.close_all().await;
    assert_eq!(children(&script.display().to_string()), Vec::<i32>::new());
}

/// Three servers of others, a hundred rounds together.
#[tokio::test]
async fn real_peers_are_opened_called_and_closed_a_hundred_times_and_leave_no_child() {
    let folder = tempfile::tempdir().unwrap();
    let mark = folder.path().display().to_string();
    // An argument that none of them minds tells our processes from others of the same program.
    let files = json!({ "command": program("mcp-server-filesystem"), "args": [mark] });
    let clock =
        json!({ "command": program("mcp-server-time"), "args": ["--local-timezone", "UTC"], "env": { "MARK": mark } });
    let all = json!({ "command": program("mcp-server-everything"), "args": ["stdio", mark] });
    let peers = [
        ("time", clock, "get_current_time", json!({ "timezone": "UTC" }), 33),
        ("everything", all, "echo", json!({ "message": "hello" }), 33),
        ("filesystem", files, "list_allowed_directories", json!({}), 34),
    ];
    let rounds = peers.map(|(name, server, tool, arguments, rounds)| async move {
        let host = host(&json!({ name: server }));
        for round in 0..rounds {
            let chat = format!("chat {round}");
            let servers = host.for_chat(&chat);
            assert!(names(&servers).await.iter().any(|offered| offered == tool), "{name} {round}");
            let answer = call(&servers, tool, arguments.clone()).await;
            assert!(!answer.is_error, "{name} {round}: {answer:?}");
            host.close_chat(&chat).await;
        }
    });
    futures_util::future::join_all(rounds).await;
    assert_eq!(children(&mark), Vec::<i32>::new());
    assert_eq!(marked(&mark), Vec::<i32>::new());
}

#[tokio::test]
async fn chats_have_servers_of_their_own_unless_they_are_shared() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("strict-server.py");
    std::fs::write(&script, include_str!("tests/strict_server.py")).unwrap();
    let server = |mark: &str, shared: bool| json!({ "command": "python3", "args": [script, mark], "shared": shared });
    let host = host(&json!({ "own": server("own-mark", false), "common": server("common-mark", true) }));
    let (one, two) = (host.for_chat("one"), host.for_chat("two"));
    let place = |mark: &str| format!("{} {mark}", script.display());
    assert!(children(&place("own-mark")).is_empty(), "nothing is started before it is used");
    assert_eq!(names(&one).await, names(&two).await);
    assert_eq!((children(&place("own-mark")).len(), children(&place("common-mark")).len()), (2, 1));
    host.close_chat("one").await;
    assert_eq!((children(&place("own-mark")).len(), children(&place("common-mark")).len()), (1, 1));
    host.close_idle(Duration::ZERO).await;
    assert_eq!(children(&place("own-mark")), Vec::<i32>::new());
    host.close_all().await;
    assert_eq!(children(&place("common-mark")), Vec::<i32>::new());
}

#[tokio::test]
async fn annotations_say_what_a_call_may_do() {
    let folder = tempfile::tempdir().unwrap();
    let host = host(&json!({ "files": { "command": program("mcp-server-filesystem"), "args": [folder.path()] } }));
    let offered = host.for_chat("a").offer().await;
    let danger = |name: &str| offered.tools.iter().find(|tool| &*tool.name == name).map(|tool| tool.danger);
    assert_eq!(danger("read_text_file"), Some(Danger::ReadOnly));
    assert_eq!(danger("write_file"), Some(Danger::Destructive));
    host.close_all().await;
}

#[tokio::test]
async fn only_the_tools_that_are_wanted_are_offered() {
    let mut wanted = time();
    wanted["includeTools"] = json!(["convert_time"]);
    let host = host(&json!({ "time": wanted }));
    assert_eq!(names(&host.for_chat("a")).await, ["convert_time"]);
    assert_eq!(host.probe().await, [("time".to_owned(), Ok(1))]);
    host.close_all().await;
}
