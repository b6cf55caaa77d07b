//! An unused daemon ends by itself; one of another version ends on request; neither loses work.

use std::io::Read;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::api::{noop, over_socket, sleep, until};
use crate::home::{Backend, Daemon, Home, START_MAX, announced_by};

const SOON: Duration = Duration::from_secs(10);
const IDLE: &[&str] = &["--idle-exit", "1"];

/// It stays for this long.
#[track_caller]
fn stays(daemon: &mut Daemon, span: Duration) {
    let began = Instant::now();
    until("the time is over", span + SOON, || {
        assert_eq!(daemon.process.has_ended(), None, "{}", daemon.process.printed());
        (began.elapsed() > span).then_some(())
    });
}

#[track_caller]
fn leaves(home: &Home, mut daemon: Daemon) {
    let (status, _) = daemon.process.ends_within(SOON);
    assert_eq!(status.code(), Some(0));
    for name in ["matsu.sock", "matsu.closing", "server.json"] {
        assert!(!home.data(name).exists(), "{name} was left behind");
    }
}

#[test]
fn an_idle_daemon_ends_and_the_next_one_finds_everything() {
    let home = Home::sqlite();
    let daemon = home.serve_with(IDLE);
    let task = daemon.api.submit(vec![noop()]);
    daemon.api.ended(&task, SOON);
    leaves(&home, daemon);
    assert_eq!(home.serve().api.task(&task)["status"], "completed");
}

#[test]
fn a_connected_client_keeps_the_daemon() {
    let home = Home::sqlite();
    let mut daemon = home.serve_with(IDLE);
    let mut client = UnixStream::connect(home.data("matsu.sock")).unwrap();
    stays(&mut daemon, Duration::from_millis(2_500));
    client.set_nonblocking(true).unwrap();
    let still_open = client.read(&mut [0]).unwrap_err();
    assert_eq!(still_open.kind(), std::io::ErrorKind::WouldBlock);
    drop(client);
    leaves(&home, daemon);
}

#[test]
fn an_unfinished_job_keeps_the_daemon() {
    let home = Home::sqlite();
    let mut daemon = home.serve_with(IDLE);
    let task = daemon.api.submit(vec![sleep(3_500)]);
    stays(&mut daemon, Duration::from_millis(2_800));
    leaves(&home, daemon);
    assert_eq!(home.run_json(&["status", &task])["status"], "completed");
}

/// Two versions and four jobs: one that runs, one that waits, and two that come while it ends.
fn another_version_takes_over(backend: Backend) {
    let home = Home::new(backend).with_variable("MATSU_SLOTS_AGENT_CLI", "1");
    let mut old = home.serve();
    let runs = old.api.submit(vec![sleep(2_500)]);
    old.api.job_becomes(&runs, "running", SOON);
    let waits = old.api.submit(vec![sleep(10)]);
    let new = home.start(&["serve", "--test-jobs", "--port", "0", "--as-version", "9.9"]);
    let info = || over_socket(&home.data("matsu.sock"), "GET", "/control/info", None).unwrap().json();
    until("the old one was asked", SOON, || (info()["handing_over_to"] == "9.9").then_some(()));
    assert!(
        new.printed().contains("version 9.9 starts when the jobs that would end with it are finished"),
        "{}",
        new.printed()
    );

    // Until then it serves as before, only it starts nothing.
    let later = old.api.submit(vec![noop()]);
    let elsewhere = old.api.post("/test/tasks", &json!({ "jobs": [{ "kind": "noop", "slot": "cpu" }] }));
    let elsewhere = elsewhere["task"]["task_id"].as_str().unwrap().to_owned();
    assert_eq!(old.api.ended(&runs, SOON)["status"], "completed");
    let (status, _) = old.process.ends_within(SOON);
    assert_eq!(status.code(), Some(0), "{}", old.process.printed());

    let new = Daemon::announced(new, &home.data_dir());
    assert_eq!(info()["version"], "9.9");
    for task in [&runs, &waits, &later, &elsewhere] {
        assert_eq!(new.api.ended(task, SOON)["status"], "completed");
        let job = &new.api.jobs_of(task)[0];
        assert_eq!((&job["attempt"], &job["failures"]), (&json!(1), &json!(0)), "{job:#}");
    }
    // The old one had finished its job before the new one started any.
    let at = |task: &str, field: &str| new.api.jobs_of(task)[0][field].as_str().unwrap().to_owned();
    for task in [&waits, &later, &elsewhere] {
        assert!(at(task, "started_at") >= at(&runs, "finished_at"), "{task}");
    }
}

#[test]
fn another_version_takes_over_on_sqlite() {
    another_version_takes_over(Backend::Sqlite);
}

#[test]
fn another_version_takes_over_on_postgres() {
    another_version_takes_over(Backend::Postgres);
}

#[test]
fn a_client_that_waits_through_the_hand_over_gets_an_answer() {
    let home = Home::sqlite();
    let mut old = home.serve();
    let task = old.api.submit(vec![sleep(1_500)]);
    old.api.job_becomes(&task, "running", SOON);
    let (api, path) = (old.api.clone(), format!("/test/wait?task={task}&since=3&timeout=50&wait_for=all"));
    let waiter = std::thread::spawn(move || api.send("GET", &path, None));
    let new = home.start(&["serve", "--test-jobs", "--port", "0", "--as-version", "9.9"]);
    let reply = waiter.join().unwrap().expect("an answer");
    assert_eq!(reply.json()["task"]["status"], "completed", "{reply:?}");
    assert_eq!(old.process.ends_within(SOON).0.code(), Some(0));
    until("the new one serves", START_MAX, || announced_by(&home.data_dir(), new.pid()));
}

#[test]
fn a_newcomer_that_dies_takes_its_wish_with_it() {
    let home = Home::sqlite();
    let old = home.serve();
    let runs = old.api.submit(vec![sleep(60_000)]);
    old.api.job_becomes(&runs, "running", SOON);
    let mut new = home.start(&["serve", "--test-jobs", "--port", "0", "--as-version", "9.9"]);
    let successor = || {
        over_socket(&home.data("matsu.sock"), "GET", "/control/info", None).unwrap().json()["handing_over_to"].clone()
    };
    until("the old one was asked", SOON, || (successor() == "9.9").then_some(()));
    let held_back = old.api.submit(vec![noop()]);
    assert_eq!(old.api.jobs_of(&held_back)[0]["state"], "queued");
    new.kill();
    assert_eq!(old.api.ended(&held_back, SOON)["status"], "completed");
    assert_eq!(old.api.jobs_of(&runs)[0]["state"], "running", "and the store was not given to a dead process");
    assert_eq!(successor(), json!(null));
}

#[test]
fn a_command_does_not_wait_for_ever_for_a_daemon_that_was_stopped() {
    let home = Home::sqlite();
    let daemon = home.serve();
    let pid = daemon.process.pid().to_string();
    let signal =
        |word: &str| assert!(std::process::Command::new("kill").args([word, &pid]).status().unwrap().success());
    signal("-STOP");
    let tried = home.run(&["tasks"]);
    signal("-CONT");
    assert!(tried.code != 0 && tried.err.contains("does not answer within"), "{tried:?}");
    assert_eq!(home.run(&["tasks"]).good().code, 0);
}
