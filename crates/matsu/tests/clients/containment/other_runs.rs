//! Two runs at once, each with its own socket and its own token: neither opens anything of the other.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use super::identity::{at_socket, way_back};
use super::{Yard, at_every_level, python};
use crate::home::until;

const SOON: Duration = Duration::from_secs(20);

/// A run that goes on until it is cancelled.
struct Other {
    task: Value,
    token: String,
    socket: PathBuf,
}

impl Other {
    fn start(yard: &mut Yard) -> Self {
        let before = sockets(yard);
        let begun = yard.start("project", &format!("{}; sleep 600", way_back("token")), json!({ "cli_name": "back" }));
        let task = begun["task_id"].clone();
        let said = until("it has printed its token", SOON, || {
            let said = yard.call("get_task_status", &json!({ "task_id": task, "tail": 1 }));
            serde_json::from_str::<Value>(said["tail"].as_str()?).ok()
        });
        let token = said["backwards"].as_str().unwrap().chars().rev().collect();
        let new: Vec<PathBuf> = sockets(yard).into_iter().filter(|path| !before.contains(path)).collect();
        assert_eq!(new.len(), 1, "{}: {new:?}", yard.show());
        Self { task, token, socket: new[0].clone() }
    }

    /// What is read at a socket with this run's token as a relay presents it, and after a report in its name.
    fn reports_at(&self, socket: &Path) -> (Value, String) {
        let stream = UnixStream::connect(socket).unwrap();
        stream.set_read_timeout(Some(SOON)).unwrap();
        let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
        let preamble = json!({ "version": "0.1.0", "instance": "other", "tools": "all", "hold": null,
            "session_token": self.token });
        (&stream).write_all(format!("{preamble}\n").as_bytes()).unwrap();
        let greeting = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": { "name": "c", "version": "1" } });
        let report = json!({ "name": "report_completed", "arguments": { "result": "success", "summary": "forged" } });
        let frames = [
            json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello }),
            json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
            json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": report }),
        ];
        // The other end may have closed the connection.
        for frame in frames {
            let _ = (&stream).write_all(format!("{frame}\n").as_bytes());
        }
        let received = lines.map_while(Result::ok).take(2).collect::<Vec<_>>().join("\n");
        (greeting, received)
    }
}

/// The sockets of all runs that are under way.
fn sockets(yard: &Yard) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(yard.home.data_dir().join("runs")).into_iter().flatten().flatten();
    entries.map(|entry| entry.path().join("inside/matsu.sock")).filter(|path| path.exists()).collect()
}

#[test]
fn the_token_of_a_run_is_refused_at_the_socket_of_another() {
    at_every_level(|yard| {
        let (one, two) = (Other::start(yard), Other::start(yard));
        for (own, other) in [(&one, &two), (&two, &one)] {
            let admitted = at_socket(&own.socket, &own.token, "/api/v1/tools");
            assert!(admitted.starts_with("HTTP/1.1 200"), "{}: {admitted}", yard.show());
            let refused = at_socket(&other.socket, &own.token, "/api/v1/tools");
            assert!(refused.starts_with("HTTP/1.1 403"), "{}: {refused}", yard.show());
            assert!(refused.contains("the socket of another run"), "{}: {refused}", yard.show());
            let (greeting, received) = own.reports_at(&other.socket);
            let why = greeting["error"].as_str().unwrap_or_default();
            assert!(why.contains("the socket of another run"), "{}: {greeting}", yard.show());
            assert_eq!(received, "", "{}: it is hung up on", yard.show());
        }
        for other in [&one, &two] {
            let still = yard.call("get_task_status", &json!({ "task_id": other.task }));
            assert_eq!(still["status"], "running", "{}: {still}", yard.show());
        }
        // At its own socket it is the run that it is, and ends nothing but itself.
        let (greeting, received) = one.reports_at(&one.socket);
        assert_eq!(greeting["error"], Value::Null, "{}: {greeting}", yard.show());
        assert!(received.contains("\"ok\":true"), "{}: {received}", yard.show());
        let still = yard.call("get_task_status", &json!({ "task_id": two.task }));
        assert_eq!(still["status"], "running", "{}: {still}", yard.show());
        for other in [&one, &two] {
            yard.call("cancel_task", &json!({ "task_id": other.task, "mode": "immediate" }));
        }
    });
}

#[test]
fn a_run_gets_nothing_at_the_socket_of_another_from_inside() {
    at_every_level(|yard| {
        let victim = Other::start(yard);
        // With its own token, with that of the victim as if it had leaked, and as the supervisor of the victim.
        let script = python(&format!(
            r#"
import os, socket
def ask(path, token, first=""):
    try:
        sock = socket.socket(socket.AF_UNIX)
        sock.settimeout(10)
        sock.connect(path)
        sock.sendall((first + f"GET /api/v1/tools HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
            f"Authorization: Bearer {{token}}\r\n\r\n").encode())
        return sock.recv(100).decode(errors="replace").split("\r\n")[0] or "hung up"
    except OSError as error:
        return f"unreachable {{error.errno}}"
own, stolen = os.environ["MATSU_SESSION_TOKEN"], "{token}"
print("own at own:", ask(os.environ["DATA"] + "/matsu.sock", own))
print("own at other:", ask("{socket}", own))
print("stolen at own:", ask(os.environ["DATA"] + "/matsu.sock", stolen))
line = '{{"matsu_run":"{run}","key":"guess"}}\n'
print("forwarded:", ask("{daemon}", own, line), ask("{daemon}", stolen, line))
"#,
            token = victim.token,
            socket = victim.socket.display(),
            run = victim.socket.parent().and_then(Path::parent).and_then(Path::file_name).unwrap().display(),
            daemon = yard.home.data_dir().join("matsu.sock").display(),
        ));
        let printed = yard.attack_in("project", &script, json!({ "cli_name": "back" }));
        let after = |what: &str| {
            let line = printed.lines().find_map(|line| line.strip_prefix(what));
            line.unwrap_or_else(|| panic!("{}: {what} {printed}", yard.show())).to_owned()
        };
        assert!(after("own at own:").contains(" 200 "), "{}: {printed}", yard.show());
        let expected = if yard.is_sealed() { "unreachable" } else { " 403 " };
        assert!(after("own at other:").contains(expected), "{}: {printed}", yard.show());
        assert!(after("stolen at own:").contains(" 403 "), "{}: {printed}", yard.show());
        assert!(!after("forwarded:").contains("HTTP/1.1 200"), "{}: {printed}", yard.show());
        yard.call("cancel_task", &json!({ "task_id": victim.task, "mode": "immediate" }));
    });
}
