//! The daemon's life: how it starts, what it leaves for others to find, how it ends, what it survives.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::json;

use crate::api::{noop, over_socket, sleep, sleep_with, until};
use crate::home::{Backend, Daemon, Home, START_MAX, announced_by, read_server_json};

const SOON: Duration = Duration::from_secs(10);

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_machine_without_certificates_is_served() {
    let home = Home::sqlite().with_variable("SSL_CERT_FILE", "/nowhere").with_variable("SSL_CERT_DIR", "/nowhere");
    let daemon = home.serve();
    assert_eq!(daemon.api.send("GET", "/api/v1/tasks", None).unwrap().status, 200);
    let found = home.run_json(&["doctor"]);
    let https = found["findings"].as_array().unwrap().iter().find(|finding| finding["what"] == "https").unwrap();
    assert!(https["detail"].as_str().unwrap().contains("no certificates"), "{https}");
    assert!(https["advice"].as_str().unwrap().contains("ca-certificates"), "{https}");
}

#[test]
fn the_first_start_leaves_a_private_token_and_says_where_it_serves() {
    let home = Home::sqlite();
    let mut process = home.start(&["serve", "--test-jobs", "--port", "0"]);
    // A client that sees server.json can read the token and connect at once.
    let server = until("server.json appears", START_MAX, || read_server_json(&home.data_dir()));
    let api = announced_by(&home.data_dir(), process.pid()).expect("token and address are there");
    assert_eq!(server["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(mode(&home.data("token")), 0o600);
    assert_eq!(mode(&home.data("server.json")), 0o600);
    assert_eq!(mode(&home.data("matsu.sock")), 0o600);
    assert_eq!(mode(&home.data_dir()), 0o700);
    assert_eq!(api.get("/api/v1/tasks")["items"], json!([]));
    assert_eq!(process.has_ended(), None);
    let said = process.printed();
    assert!(said.contains(&format!("matsu serves at http://{}", api.address)), "{said}");
}

#[test]
fn a_restart_keeps_the_token() {
    let home = Home::sqlite();
    let mut first = home.serve();
    first.process.kill();
    let second = home.serve();
    assert_eq!(first.api.token, second.api.token);
}

#[test]
fn of_two_starters_at_once_one_serves_and_the_other_says_where() {
    let home = Home::sqlite();
    let mut starters = [0, 1].map(|_| home.start(&["serve", "--port", "0"]));
    let gone = until("one of them ends", START_MAX, || (0..2).find_map(|nth| Some((nth, starters[nth].has_ended()?))));
    let (loser, status) = gone;
    let winner = &mut starters[1 - loser];
    let api = until("the other serves", START_MAX, || announced_by(&home.data_dir(), winner.pid()));
    assert_eq!(winner.has_ended(), None);
    let said = starters[loser].printed();
    assert_eq!(status.code(), Some(0), "{said}");
    assert!(said.contains("already serves this store"), "{said}");
    assert!(said.contains(&starters[1 - loser].pid().to_string()), "{said}");
    assert!(api.get("/api/v1/nodes")["items"].as_array().unwrap().len() == 1);
}

#[test]
fn a_taken_port_is_passed_over() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let home = Home::sqlite();
    let process = home.start(&["serve", "--port", &port.to_string()]);
    let daemon = Daemon::announced(process, &home.data_dir());
    let found = daemon.api.address.port();
    assert!((port + 1..=port.saturating_add(20)).contains(&found), "{port} is taken, {found} was chosen");
}

#[test]
fn an_ephemeral_server_leaves_nothing() {
    let home = Home::sqlite();
    let temp = home.path("tmp");
    std::fs::create_dir(&temp).unwrap();
    let mut command = home.bare(&["serve", "--ephemeral", "--test-jobs", "--port", "0", "--json"]);
    command.env("TMPDIR", &temp);
    let mut process = home.start_command(command);
    let scratch = until("its scratch folder is announced", START_MAX, || {
        let folders = std::fs::read_dir(&temp).unwrap();
        folders.map(|entry| entry.unwrap().path()).find(|folder| announced_by(folder, process.pid()).is_some())
    });
    let api = announced_by(&scratch, process.pid()).unwrap();
    let task = api.submit(vec![noop()]);
    assert_eq!(api.ended(&task, SOON)["status"], "completed");
    process.signal(Signal::TERM);
    assert_eq!(process.ends_within(SOON).0.code(), Some(0));
    assert_eq!(std::fs::read_dir(&temp).unwrap().count(), 0);
    assert!(!home.path(".local").exists(), "the usual data directory was not asked for");
}

/// Ends a daemon in mid-work and looks what its successor makes of it.
fn sigterm_loses_nothing(backend: Backend) {
    let home = Home::new(backend).with_variable("MATSU_SLOTS_AGENT_CLI", "2");
    let mut first = home.serve();
    let task = first.api.submit(vec![sleep(2_000), sleep(2_000), sleep(50), noop()]);
    until("two jobs run", SOON, || (first.api.task(&task)["jobs"]["running"] == 2).then_some(()));
    first.process.signal(Signal::TERM);
    let (status, took) = first.process.ends_within(Duration::from_secs(15));
    assert_eq!(status.code(), Some(0));
    assert!(took < Duration::from_secs(10), "{took:?}");
    assert!(!home.data("server.json").exists() && !home.data("matsu.sock").exists());
    // A clean shutdown leaves nothing to take over: no heartbeat has to run out first.
    assert_eq!(home.run_json(&["status", &task])["jobs"]["running"], 0);

    let second = home.serve();
    assert_eq!(second.api.ended(&task, SOON)["status"], "completed");
    for job in second.api.jobs_of(&task) {
        assert_eq!((job["state"].as_str(), job["failures"].as_i64()), (Some("completed"), Some(0)), "{job:#}");
    }
}

#[test]
fn sigterm_loses_nothing_on_sqlite() {
    sigterm_loses_nothing(Backend::Sqlite);
}

#[test]
fn sigterm_loses_nothing_on_postgres() {
    sigterm_loses_nothing(Backend::Postgres);
}

#[test]
fn a_body_that_does_not_listen_delays_the_end_by_less_than_ten_seconds() {
    let home = Home::sqlite();
    let mut first = home.serve();
    let task = first.api.submit(vec![sleep_with(json!({ "ms": 60_000, "ignore_stop": true }))]);
    first.api.job_becomes(&task, "running", SOON);
    first.process.signal(Signal::TERM);
    let (status, took) = first.process.ends_within(Duration::from_secs(15));
    assert_eq!(status.code(), Some(0));
    assert!(took < Duration::from_secs(10), "{took:?}");
    let job = &home.run_json(&["status", &task])["jobs"];
    assert_eq!((&job["queued"], &job["failed"]), (&json!(1), &json!(0)));
}

#[test]
fn a_waiting_client_is_answered_when_the_server_ends() {
    let home = Home::sqlite();
    let mut daemon = home.serve();
    let task = daemon.api.submit(vec![sleep(60_000)]);
    daemon.api.job_becomes(&task, "running", SOON);
    let (api, path) = (daemon.api.clone(), format!("/test/wait?task={task}&since=1000&timeout=50"));
    let waiter = std::thread::spawn(move || api.send("GET", &path, None));
    until("the wait is parked", SOON, || (!waiter.is_finished()).then_some(()));
    daemon.process.signal(Signal::TERM);
    daemon.process.ends_within(SOON);
    let reply = waiter.join().unwrap().expect("an answer, not a broken connection");
    assert!(matches!(reply.status, 200 | 503), "{reply:?}");
}

#[test]
fn what_kill_9_leaves_behind_does_not_hinder_the_next_start() {
    let home = Home::sqlite();
    let mut first = home.serve();
    first.process.kill();
    assert!(home.data("matsu.sock").exists() && home.data("server.json").exists());
    // Commands see that no daemon runs and open the store themselves.
    assert!(home.run(&["tasks"]).good().out.contains("No tasks."));
    let doctor = home.run_json(&["doctor"]);
    let daemon = doctor["findings"].as_array().unwrap().iter().find(|finding| finding["what"] == "daemon").unwrap();
    assert_eq!(daemon["state"], "note", "{daemon:#}");
    let second = home.serve();
    assert!(over_socket(&home.data("matsu.sock"), "GET", "/healthz", None).is_ok());
    assert_ne!(second.process.pid(), first.process.pid());
}

#[test]
fn without_http_only_the_socket_is_served() {
    let home = Home::sqlite().with_variable("MATSU_SERVER_HTTP", "off");
    let mut process = home.start(&["serve", "--test-jobs"]);
    let server = until("server.json appears", START_MAX, || read_server_json(&home.data_dir()));
    assert!(server["address"].is_null(), "{server}");
    let socket = home.data("matsu.sock");
    let reply = over_socket(&socket, "POST", "/test/tasks", Some(&json!({ "jobs": [noop()] }))).unwrap();
    assert_eq!(reply.status, 200, "{reply:?}");
    let task = reply.json()["task"]["task_id"].as_str().unwrap().to_owned();
    assert_eq!(home.run(&["status", &task, "--wait"]).code, 0);
    process.signal(Signal::TERM);
    assert_eq!(process.ends_within(SOON).0.code(), Some(0));
}

#[test]
fn a_removed_socket_is_made_again() {
    let home = Home::sqlite();
    let _daemon = home.serve();
    let socket = home.data("matsu.sock");
    std::fs::remove_file(&socket).unwrap();
    until("the socket is made again", START_MAX, || over_socket(&socket, "GET", "/healthz", None).ok());
    assert_eq!(std::fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_daemon_of_another_store_is_left_alone() {
    let home = Home::sqlite();
    let first = home.serve();
    let task = first.api.submit(vec![noop()]);
    let other = format!("sqlite:{}", home.path("other.db").display());
    let refused = home.run(&["serve", "--port", "0", "--store", &other]);
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(refused.err.contains("--data-dir"), "{refused:?}");
    // A command with another store means that store, not the daemon's.
    assert!(home.run(&["tasks", "--store", &other]).good().out.contains("No tasks."));
    assert!(home.run(&["tasks"]).good().out.contains(&task));
    assert_eq!(first.api.get("/api/v1/tasks")["items"].as_array().unwrap().len(), 1);
}

#[test]
fn a_store_that_is_served_from_another_directory_is_refused_with_a_sentence() {
    let home = Home::sqlite();
    let _first = home.serve();
    let refused = crate::home::run({
        let mut command = home.bare(&["serve", "--port", "0", "--store", &home.store]);
        command.arg("--data-dir").arg(home.path("elsewhere"));
        command
    });
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(refused.err.contains("another data directory"), "{refused:?}");
}
