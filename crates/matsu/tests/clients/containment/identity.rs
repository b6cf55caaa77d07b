//! The identity of a run and how it ended: neither can be forged from inside, and nothing of it is left when it is
//! over.

use serde_json::{Value, json};

use super::{Yard, at_every_level, prepared, python};
use crate::home::{Home, until};
use crate::http::Http;

const SOON: std::time::Duration = std::time::Duration::from_secs(20);

/// A script that makes calls over MCP and prints what was answered, a line each.
pub fn way_back(words: &str) -> String {
    format!("python3 {}/tests/clients/agent_runs/way_back.py {words}", env!("CARGO_MANIFEST_DIR"))
}

/// How a run of the agent with a way back ended, whatever it printed.
fn ends(yard: &mut Yard, script: &str, more: Value) -> Value {
    ends_in(yard, "project", script, more)
}

fn ends_in(yard: &mut Yard, folder: &str, script: &str, more: Value) -> Value {
    let mut arguments = json!({ "cli_name": "back" });
    arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let begun = yard.start(folder, script, arguments);
    assert!(begun["task_id"].is_string(), "{}: {begun}", yard.show());
    yard.end_of(&begun["task_id"])
}

/// The answers that a run printed.
fn answers(yard: &mut Yard, script: &str, more: Value) -> Vec<Value> {
    answers_in(yard, "project", script, more)
}

pub fn answers_in(yard: &mut Yard, folder: &str, script: &str, more: Value) -> Vec<Value> {
    let end = ends_in(yard, folder, script, more);
    assert_eq!(end["status"], "completed", "{}: {end}", yard.show());
    let lines = end["result"].as_str().unwrap_or_default().lines();
    lines.map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
}

#[test]
fn how_a_run_ended_cannot_be_forged() {
    at_every_level(|yard| {
        let data = yard.home.data_dir();
        let script = python(&format!(
            r#"
import glob, os
lines = [b'{{"Ended":{{"code":0,"signal":null,"processes":0}}}}\n', b'{{"Exited":{{"code":0,"signal":null}}}}\n']
# What it has open itself, what the processes above it have open, and every file of its run and of others.
paths = glob.glob("/proc/[0-9]*/fd/*") + glob.glob("/run/matsu/*")
for name in ("exit", "exit.json", "ended", "ended.json", "report.json", "lock"):
    paths += [f"{data}/runs/{{name}}", f"/run/matsu/{{name}}", os.path.join(os.environ["TMPDIR"], name)]
for folder, _, names in os.walk({data:?}):
    paths += [os.path.join(folder, name) for name in names]
written = 0
for line in lines:
    for fd in range(0, 64):
        try:
            os.write(fd, line); written += 1
        except OSError:
            pass
    for path in paths:
        # Not the folder of the tests' own output.
        try:
            fd = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY)
            os.write(fd, line); os.close(fd); written += 1
        except OSError:
            pass
os._exit(23)
"#,
            data = data.display().to_string()
        ));
        let end = ends(yard, &script, json!({}));
        assert_eq!(end["status"], "failed", "{}: {end}", yard.show());
        assert!(end["error"].as_str().unwrap_or_default().contains("code 23"), "{}: {end}", yard.show());
    });
}

#[test]
fn a_run_cannot_make_research_read_other_folders() {
    at_every_level(|yard| {
        let elsewhere = yard.home.path("elsewhere");
        let folder = elsewhere.display();
        let words = format!(
            "--root {folder} create_task '{{\"query\":\"pines\"}}' create_task '{{\"query\":\"pines\",\"config\":{{\"folders\":[\"{folder}\"]}}}}' \
             use_agent '{{\"cli_name\":\"script\",\"message\":\"pwd\",\"working_directory\":\"{folder}\"}}'"
        );
        let given = answers(yard, &way_back(&words), json!({}));
        assert_eq!(given[0]["ok"], true, "{}: {}", yard.show(), given[0]);
        assert_ne!(given[1]["ok"], true, "{}: no such field: {}", yard.show(), given[1]);
        assert_eq!(given[2]["error_code"], "FORBIDDEN", "{}: {}", yard.show(), given[2]);
        let stored = crate::agent_runs::connect_back::folders_of(&yard.home, given[0]["task_id"].as_str().unwrap());
        assert_eq!(stored, json!([yard.project.canonicalize().unwrap()]), "{}", yard.show());
    });
}

/// The configuration allows more than the run has.
fn allows_everything(home: &mut Home) {
    let path = home.path(".config/matsu/config.toml");
    let settings = std::fs::read_to_string(&path).unwrap();
    std::fs::write(path, settings.replace("workspace-write", "full")).unwrap();
}

#[test]
fn a_run_cannot_start_a_less_confined_one() {
    prepared(&allows_everything, |yard| {
        let ask = |more: &str| {
            format!(" use_agent '{{\"cli_name\":\"script\",\"message\":\"cat ../data/token ../.ssh/*; true\"{more}}}'")
        };
        let words = [
            ask(",\"mode\":\"full\""),
            ask(",\"mode\":\"workspace-write\""),
            ask(",\"confinement\":\"open\""),
            ask(",\"confine\":\"open\""),
            ask(",\"env\":{\"MATSU_AGENTS_CONFINE\":\"open\"}"),
            " use_agents '{\"agents\":[{\"cli_name\":\"script\",\"message\":\"true\",\"mode\":\"full\"}]}'".to_owned(),
        ];
        // What the run puts into its own environment is not the daemon's.
        let script =
            format!("export MATSU_AGENTS_CONFINE=open MATSU_AGENTS_MODE_MAX=full; {}", way_back(&words.concat()));
        for (number, given) in answers(yard, &script, json!({ "mode": "read-only" })).iter().enumerate() {
            assert_ne!(given["ok"], true, "{}: {number}: {given}", yard.show());
            assert!(given["task_id"].is_null(), "{}: {number}: {given}", yard.show());
        }
        // The child of a run that may write has the mode it asks for, and the level of its parent.
        let child =
            answers(yard, &way_back(&ask(",\"mode\":\"workspace-write\"")), json!({ "mode": "workspace-write" }));
        let said = child[0].to_string();
        assert_eq!(child[0]["confinement"], yard.level, "{}: {said}", yard.show());
        assert!(!said.contains(&yard.token()) && !said.contains(super::SECRET), "{}: {said}", yard.show());
        // A daemon of its own, configured to confine nothing, is as confined as the run.
        let own = format!(
            "MATSU_AGENTS_CONFINE=open MATSU_SERVER_PORT=off timeout 20 $MATSU --data-dir $TMPDIR/own run script \
             'cat {0}/token {1}/.ssh/*' --mode full 2>&1; true",
            yard.home.data_dir().display(),
            yard.home.folder().display()
        );
        let end = ends(yard, &own, json!({})).to_string();
        assert!(!end.contains(super::SECRET), "{}: {end}", yard.show());
    });
}

/// Asks with a token at a socket; the whole answer.
pub fn at_socket(socket: &std::path::Path, token: &str, path: &str) -> String {
    use std::io::{Read, Write};
    let mut socket = std::os::unix::net::UnixStream::connect(socket).unwrap();
    let head = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n");
    write!(socket, "{head}Authorization: Bearer {token}\r\n\r\n").unwrap();
    let mut reply = String::new();
    let _ = socket.read_to_string(&mut reply);
    reply
}

#[test]
fn a_token_opens_nothing_after_its_run() {
    at_every_level(|yard| {
        // A process that survives the run's end and calls when it is over, and the token itself in another process.
        let late = way_back("get_task_status '{}'");
        let nap = format!("8{}.{}", std::process::id(), u8::from(yard.is_root) + 2 * u8::from(yard.is_sealed()));
        let script = format!(
            "(setsid sh -c 'trap \"\" TERM HUP INT; sleep {nap}; {} > late.txt 2>&1; echo over >> late.txt' >/dev/null 2>&1 &); {}",
            late.replace('\'', "'\\''"),
            way_back("token")
        );
        let given = answers(yard, &script, json!({ "mode": "workspace-write" }));
        let token: String = given[0]["backwards"].as_str().unwrap().chars().rev().collect();
        let (_, http) = yard.home.relayed();
        let http = Http { token: token.clone(), ..http };
        let refused = http.call("get_task_status", &json!({}));
        assert_eq!(refused["result"]["structuredContent"]["error_code"], "SESSION_ENDED", "{}: {refused}", yard.show());
        let rest = http.rest("GET", "/tasks", &Value::Null);
        assert!(rest.status == 401 || rest.status == 403, "{}: {rest:?}", yard.show());
        let said = at_socket(&yard.home.data_dir().join("matsu.sock"), &token, "/api/v1/tasks");
        let line = said.lines().next().unwrap_or_default();
        assert!(line.contains(" 401 ") || line.contains(" 403 "), "{}: {line}", yard.show());
        until("the process is gone", SOON, || (crate::agent_runs::processes(&nap) == 0).then_some(()));
        assert!(!yard.project.join("late.txt").exists(), "{}: it went on after its run", yard.show());
    });
}
