//! What a long life leaves behind: logs, tokens, lists; and several processes around one store.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::api::{noop, sleep, sleep_with, until};
use crate::home::{Backend, Daemon, Home, START_MAX, announced_by, run};

const SOON: Duration = Duration::from_secs(10);

#[test]
fn an_ephemeral_server_gives_the_token_file_back() {
    let home = Home::sqlite();
    let mut durable = home.serve();
    durable.process.signal(Signal::TERM);
    assert_eq!(durable.process.ends_within(SOON).0.code(), Some(0));
    let before = fs::read_to_string(home.data("token")).unwrap();

    // Killed, it leaves its own behind; the next start puts that right. Ended, it leaves nothing.
    for signal in [Signal::KILL, Signal::TERM] {
        let process = home.start(&["serve", "--ephemeral", "--test-jobs", "--port", "0"]);
        let mut passing = Daemon::announced(process, &home.data_dir());
        assert_ne!(passing.api.token, before.trim(), "a store of its own has a token of its own");
        passing.process.signal(signal);
        passing.process.ends_within(SOON);
    }
    assert_eq!(fs::read_to_string(home.data("token")).unwrap(), before);
    assert!(!home.data("token.aside").exists());
    assert_eq!(home.serve().api.token, before.trim(), "and it opens its own store as before");

    let fresh = Home::sqlite();
    let process = fresh.start(&["serve", "--ephemeral", "--port", "0"]);
    let mut passing = Daemon::announced(process, &fresh.data_dir());
    passing.process.signal(Signal::TERM);
    assert_eq!(passing.process.ends_within(SOON).0.code(), Some(0));
    assert!(!fresh.data("token").exists() && !fresh.data("token.id").exists());
}

#[test]
fn a_full_log_is_put_aside_while_the_daemon_runs() {
    let home = Home::sqlite();
    fs::create_dir(home.data_dir()).unwrap();
    let log = home.data("daemon.log");
    fs::write(&log, "x".repeat(5 * 1024 * 1024)).unwrap();
    let file = fs::OpenOptions::new().append(true).open(&log).unwrap();
    let mut command = home.command(&["serve", "--test-jobs", "--port", "0", "-v"]);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(file).spawn().unwrap();
    let api = until("it serves", START_MAX, || announced_by(&home.data_dir(), child.id()));
    let task = api.submit(vec![noop()]);
    api.ended(&task, SOON);
    until("a fresh log has its lines", SOON, || fs::read_to_string(&log).ok().filter(|text| text.contains("ended")));
    assert!(fs::metadata(&log).unwrap().len() < 1024 * 1024);
    assert!(fs::metadata(home.data("daemon.log.old")).unwrap().len() >= 5 * 1024 * 1024);
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_flood_of_refused_requests_is_a_few_lines_in_the_log() {
    let home = Home::sqlite();
    let daemon = home.serve();
    for _ in 0..300 {
        let refused = daemon.api.send_raw("GET", "/api/v1/tasks", &["Authorization: Bearer nope"], b"").unwrap();
        assert_eq!(refused.status, 401);
    }
    let lines = daemon.process.printed().matches("request refused").count();
    assert!((1..=40).contains(&lines), "{lines} lines");
    let metrics = daemon.api.send("GET", "/metrics", None).unwrap().body;
    assert!(metrics.contains("matsu_requests_refused_total 300"), "{metrics}");
}

#[test]
fn long_lists_have_pages() {
    let home = Home::sqlite();
    let daemon = home.serve();
    let made: Vec<String> = (0..7).map(|_| daemon.api.submit(vec![noop()])).rev().collect();
    let ids = |list: &Value| -> Vec<String> {
        list["items"].as_array().unwrap().iter().map(|task| task["task_id"].as_str().unwrap().to_owned()).collect()
    };
    let first = home.run_json(&["tasks", "--limit", "3"]);
    let after = first["next"].to_string();
    let second = home.run_json(&["tasks", "--limit", "3", "--after", &after]);
    assert_eq!([ids(&first), ids(&second)].concat(), made.iter().rev().take(6).cloned().collect::<Vec<_>>());
    assert_eq!(ids(&home.run_json(&["tasks", "--all"])), made.iter().rev().cloned().collect::<Vec<_>>());
    let shown = home.run(&["tasks", "--limit", "3"]).good();
    assert!(shown.out.contains(&format!("--after {after}")), "{shown:?}");

    for n in 0..4 {
        daemon.api.post("/api/v1/tokens", &json!({ "name": format!("t{n}") }));
    }
    let page = daemon.api.get("/api/v1/tokens?limit=3");
    assert_eq!(page["items"].as_array().unwrap().len(), 3);
    assert_eq!(daemon.api.all("tokens").len(), 5, "the token file's and four more");
    assert_eq!(home.run_json(&["token", "list"])["items"].as_array().unwrap().len(), 5);
}

#[test]
fn slots_are_counted_however_many_jobs_run() {
    let home = Home::sqlite().with_variable("MATSU_SLOTS_AGENT_CLI", "300");
    let daemon = home.serve();
    for _ in 0..3 {
        daemon.api.submit((0..100).map(|_| sleep(60_000)).collect());
    }
    until("all of them are counted", SOON, || {
        let slots = daemon.api.get("/api/v1/slots");
        let slot = slots["items"].as_array().unwrap().iter().find(|slot| slot["slot"] == "agent_cli").unwrap().clone();
        (slot["running"] == 300 && slot["limit"] == 300).then_some(())
    });
}

/// A client's own server beside the daemon: it has the store open and runs nothing.
#[test]
fn a_server_without_workers_is_not_counted_among_the_nodes_that_work() {
    let home = Home::sqlite();
    let daemon = home.serve();
    let mut command = home.command(&["mcp", "--no-daemon"]);
    let mut beside = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let roles = until("both are known", SOON, || {
        let nodes = daemon.api.get("/api/v1/nodes")["items"].as_array().unwrap().clone();
        (nodes.len() == 2).then(|| nodes.iter().map(|node| node["role"].clone()).collect::<Vec<_>>())
    });
    assert_eq!(roles, [json!("serve"), json!("command")]);
    beside.kill().unwrap();
    beside.wait().unwrap();
}

/// A command whose own data directory knows no daemon, on the file that the daemon serves.
fn elsewhere(home: &Home, args: &[&str]) -> std::process::Command {
    let mut command = home.bare(args);
    command.arg("--data-dir").arg(home.path("elsewhere")).arg("--store").arg(&home.store);
    command
}

#[test]
fn a_second_process_on_the_same_file_waits_and_stops() {
    let home = Home::sqlite();
    let daemon = home.serve();
    let task = daemon.api.submit(vec![sleep(1_500)]);
    let mut waiting = elsewhere(&home, &["status", &task, "--wait", "--timeout", "30"]);
    let waiting = waiting.stdout(Stdio::null()).spawn().unwrap();
    assert_eq!(daemon.api.ended(&task, SOON)["status"], "completed");
    let ended = Instant::now();
    assert_eq!(waiting.wait_with_output().unwrap().status.code(), Some(0));
    assert!(ended.elapsed() < Duration::from_secs(2), "{:?}", ended.elapsed());

    let task = daemon.api.submit(vec![sleep_with(json!({ "ms": 60_000, "ignore_stop": true }))]);
    daemon.api.job_becomes(&task, "running", SOON);
    let stopped = run(elsewhere(&home, &["stop", &task, "--now", "--json"])).good().json();
    assert_eq!((&stopped["task"]["status"], &stopped["cancelled"]["running"]), (&json!("cancelled"), &json!(1)));
    until("the body in the other process is gone", SOON, || {
        let metrics = daemon.api.send("GET", "/metrics", None).unwrap().body;
        metrics.contains("matsu_jobs_running{slot=\"agent_cli\"} 0").then_some(())
    });
}

/// On two machines the folders have the same name more often than not.
#[test]
fn two_nodes_whose_data_directories_have_the_same_name_share_a_store() {
    let home = Home::new(Backend::Postgres);
    let machines = ["one", "two"].map(|machine| {
        let folder = home.path(machine);
        fs::create_dir(&folder).unwrap();
        let mut command =
            home.bare(&["serve", "--test-jobs", "--port", "0", "--data-dir", "data", "--store", &home.store]);
        command.current_dir(&folder);
        Daemon::announced(home.start_command(command), &folder.join("data"))
    });
    let [one, two] = &machines;
    assert_ne!(one.api.token, two.api.token);
    let task = one.api.submit(vec![sleep(10)]);
    assert_eq!(two.api.ended(&task, SOON)["status"], "completed");
    let nodes = two.api.get("/api/v1/nodes");
    assert_eq!(nodes["items"].as_array().unwrap().len(), 2);
    for machine in machines {
        let mut process = machine.process;
        process.signal(Signal::TERM);
        assert_eq!(process.ends_within(SOON).0.code(), Some(0));
    }
}

/// Clients that connect, send half a request or nothing, and never send again.
#[test]
fn half_open_connections_keep_no_client_out() {
    let home = Home::sqlite();
    let mut daemon = home.serve();
    let mut silent = Vec::new();
    for n in 0..150 {
        let mut stream = TcpStream::connect(daemon.api.address).unwrap();
        if n % 2 == 0 {
            stream.write_all(b"POST /test/tasks HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Le").unwrap();
        }
        silent.push(stream);
    }
    let sockets: Vec<_> = (0..50).map(|_| UnixStream::connect(home.data("matsu.sock")).unwrap()).collect();
    // And one that asked for a wait and is not there to read the answer.
    let task = daemon.api.submit(vec![sleep(1_000)]);
    let mut gone = TcpStream::connect(daemon.api.address).unwrap();
    let wait = format!(
        "GET /test/wait?task={task}&since=9&timeout=50 HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {}\r\n\r\n",
        daemon.api.token
    );
    gone.write_all(wait.as_bytes()).unwrap();
    let began = Instant::now();
    assert_eq!(daemon.api.ended(&task, SOON)["status"], "completed");
    let next = daemon.api.submit(vec![noop()]);
    assert_eq!(daemon.api.ended(&next, SOON)["status"], "completed");
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());

    // Nor do they hold up the end.
    daemon.process.signal(Signal::TERM);
    let (status, took) = daemon.process.ends_within(Duration::from_secs(12));
    assert_eq!(status.code(), Some(0));
    assert!(took < Duration::from_secs(10), "{took:?}");
    for mut stream in silent {
        stream.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
        assert!(!matches!(stream.read(&mut [0]), Err(error) if error.kind() == std::io::ErrorKind::WouldBlock));
    }
    drop(sockets);
}
