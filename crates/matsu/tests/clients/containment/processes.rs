//! Processes: the supervisor, other runs, and what is left when a run is over.

use serde_json::{Value, json};

use super::{at_every_level, python};
use crate::home::until;

const SOON: std::time::Duration = std::time::Duration::from_secs(20);

#[test]
fn the_supervisor_cannot_be_killed_from_inside() {
    at_every_level(|yard| {
        let printed = yard.attack(&python(
            r#"
import os, signal
def parent(pid):
    return int(open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[1])
def name(pid):
    return open(f"/proc/{pid}/comm").read().strip()
# Not the shells that this runs in: what is above them.
pid = os.getppid()
while name(pid) in ("sh", "dash", "bash"):
    pid = parent(pid)
    if pid <= 0:
        break
for _ in range(8):
    try:
        os.kill(pid, signal.SIGKILL)
        print("sent", pid)
    except OSError as error:
        print("refused", error.errno)
    try:
        pid = parent(pid)
    except OSError:
        break
    # Further up are the tests themselves.
    if pid <= 0 or b"__run" not in open(f"/proc/{pid}/cmdline", "rb").read():
        break
print("alive")
"#,
        ));
        assert!(printed.contains("alive"), "{}: {printed}", yard.show());
        let next = yard.attack("echo the daemon is there");
        assert!(next.contains("the daemon is there"));
    });
}

#[test]
fn nothing_outlives_its_run() {
    at_every_level(|yard| {
        let nap = format!("6{}.{}", std::process::id(), u8::from(yard.is_root) + 2 * u8::from(yard.is_sealed()));
        let script = format!(
            "for i in 1 2 3; do (setsid env -i sh -c 'trap \"\" TERM HUP INT; (setsid sleep {nap} &) ; sleep {nap}' \
             >/dev/null 2>&1 </dev/null &) ; done; sleep 0.3; echo started"
        );
        let printed = yard.attack(&script);
        assert!(printed.contains("started"));
        until("every process of the run is gone", SOON, || (crate::agent_runs::processes(&nap) == 0).then_some(()));
    });
}

#[test]
fn other_processes_cannot_be_seen_traced_or_read() {
    at_every_level(|yard| {
        let printed = yard.attack(&python(
            r#"
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
me = {os.getpid(), os.getppid()}
seen = [int(name) for name in os.listdir("/proc") if name.isdigit()]
print("seen", len(seen))
for pid in seen:
    # Its own pipeline, and what is gone already.
    try:
        own = open(f"/proc/{pid}/comm").read().strip() in ("sh", "dash", "sed")
    except OSError:
        own = True
    if pid in me or own: continue
    for name in ("environ", "mem", "cwd", "root", "fd"):
        path = f"/proc/{pid}/{name}"
        try:
            if name in ("cwd", "root"):
                print("REACHED", name, os.listdir(path + "/"))
            elif name == "fd":
                found = [os.readlink(f"{path}/{fd}") for fd in os.listdir(path)]
                if found: print("REACHED", name, found[:3])
            else:
                data = open(path, "rb").read(64)
                # A thread of the kernel has none.
                if data: print("REACHED", name, data)
        except (OSError, ValueError):
            pass
    if libc.ptrace(16, pid, None, None) == 0:
        print("REACHED ptrace", pid)
print("done")
"#,
        ));
        assert!(printed.contains("done"), "{}: {printed}", yard.show());
        assert!(!printed.contains("REACHED"), "{}: {printed}", yard.show());
        if yard.is_sealed() {
            let seen = printed.split("seen ").nth(1).and_then(|rest| rest.split_whitespace().next()).unwrap();
            assert!(seen.parse::<u32>().unwrap() <= 6, "only its own: {printed}");
        }
    });
}

#[test]
fn another_run_cannot_be_spoken_for() {
    at_every_level(|yard| {
        let victim = yard.start("project", "sleep 60", json!({ "cli_name": "back" }));
        let victim = victim["task_id"].clone();
        let way_back = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clients/agent_runs/way_back.py");
        let runs = yard.home.data_dir().join("runs");
        let name = |entry: std::io::Result<std::fs::DirEntry>| entry.ok()?.file_name().into_string().ok();
        let marks = until("the victim runs", SOON, || {
            let names = std::fs::read_dir(&runs).ok()?.filter_map(name);
            let marks: Vec<String> = names.collect();
            (!marks.is_empty()).then_some(marks)
        });
        let report = r#"'{"result":"success","summary":"forged"}'"#;
        for mark in marks {
            let script = format!(
                "ls {}; MATSU_RUN={mark} python3 {way_back} report_completed {report} get_task_status '{{\"task_id\":{victim}}}'",
                runs.display()
            );
            let begun = yard.start("project", &script, json!({ "cli_name": "back" }));
            let end = yard.end_of(&begun["task_id"]);
            let printed = end["result"].as_str().unwrap_or_default();
            let answers = printed.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
            for answer in answers {
                assert!(answer["task_id"] != victim || answer["status"] != "running", "{}: {printed}", yard.show());
            }
            assert!(printed.contains("The session is over"), "it reports for itself: {}: {printed}", yard.show());
        }
        let still = yard.call("get_task_status", &json!({ "task_id": victim }));
        assert_eq!(still["status"], "running", "{}: {still}", yard.show());
        yard.call("cancel_task", &json!({ "task_id": victim, "mode": "immediate" }));
    });
}

#[test]
fn the_owners_socket_gives_a_run_no_rights() {
    at_every_level(|yard| {
        let socket = yard.home.data_dir().join("matsu.sock");
        let printed = yard.attack(&python(&format!(
            r#"
import os, socket, subprocess, sys
path = {:?}
# Even with the token itself, as if it had leaked.
token = {:?}
def ask(sock, words):
    head = f"\r\nHost: localhost\r\nAuthorization: Bearer {{token}}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    sock.sendall((words + head).encode())
    return sock.recv(200).decode(errors="replace").split("\r\n")[0]
# A child connects, hands the connection over and is gone before anything is asked.
for attempt in range(150):
    ours, theirs = socket.socketpair()
    if os.fork() == 0:
        try:
            sock = socket.socket(socket.AF_UNIX)
            sock.connect(path)
            socket.send_fds(theirs, [b"x"], [sock.fileno()])
        except OSError as error:
            theirs.send(b"-")
        os._exit(0)
    os.wait()
    message, fds, _, _ = socket.recv_fds(ours, 1, 1)
    if fds:
        with socket.socket(fileno=fds[0]) as sock:
            print(ask(sock, ("POST /control/login-code", "GET /api/v1/tokens")[attempt % 2] + " HTTP/1.1"))
    else:
        print("unreachable")
"#,
            socket.display().to_string(),
            yard.token(),
        )));
        assert!(!printed.contains(" 200 "), "{}: {printed}", yard.show());
        if yard.is_sealed() {
            assert!(printed.contains("unreachable"), "{}: {printed}", yard.show());
        }
    });
}

#[test]
fn abstract_sockets_of_other_programs_are_out_of_reach() {
    use std::os::linux::net::SocketAddrExt;
    let name = format!("matsu-test-{}", std::process::id());
    let address = std::os::unix::net::SocketAddr::from_abstract_name(&name).unwrap();
    let _listener = std::os::unix::net::UnixListener::bind_addr(&address).unwrap();
    at_every_level(|yard| {
        let printed = yard.attack(&python(&format!(
            "import socket\ns = socket.socket(socket.AF_UNIX)\ntry:\n    s.connect('\\0{name}')\n    print('REACHED')\nexcept OSError as error:\n    print('refused', error)"
        )));
        let listed = yard.call("list_agents", &json!({}));
        let is_covered =
            !listed.to_string().contains("abstract sockets") && !listed.to_string().contains("signals to other");
        assert!(!is_covered || printed.contains("refused"), "{}: {printed}", yard.show());
    });
}
