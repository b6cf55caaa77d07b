//! kill -9 in mid-work: what can be repeated is repeated, what cannot is failed with its reason, nothing is stuck.

use std::time::Duration;

use serde_json::{Value, json};

use crate::api::{Api, noop, sleep, until};
use crate::home::{Backend, Home};
use crate::stores;

const SOON: Duration = Duration::from_secs(10);
/// The promise on PostgreSQL, where a dead node is known by its heart only.
const TAKEN_OVER: Duration = Duration::from_secs(45);

/// Work of each kind, caught in the middle.
struct Caught {
    asleep: String,
    agent: String,
    waiting: String,
    finished: String,
}

fn caught(api: &Api) -> Caught {
    let agent = json!({ "ms": 60_000, "progress_every_ms": 50 });
    let finished = api.submit(vec![noop()]);
    api.ended(&finished, SOON);
    let caught = Caught {
        asleep: api.submit(vec![sleep(1_500)]),
        agent: api.submit(vec![json!({ "kind": "agent_run", "slot": "agent_cli", "input": agent })]),
        waiting: api.submit(vec![sleep(1)]),
        finished,
    };
    for id in [&caught.asleep, &caught.agent] {
        api.job_becomes(id, "running", SOON);
    }
    until("the agent has said something", SOON, || api.jobs_of(&caught.agent)[0]["output"].as_str().map(drop));
    caught
}

fn only_job(api: &Api, task: &str) -> Value {
    let mut jobs = api.jobs_of(task);
    assert_eq!(jobs.len(), 1);
    jobs.remove(0)
}

fn a_killed_daemon_loses_nothing(backend: Backend) {
    // Two run, the third waits.
    let home = Home::new(backend).with_variable("MATSU_SLOTS_AGENT_CLI", "2");
    let mut first = home.serve();
    let caught = caught(&first.api);
    first.process.kill();

    let second = home.serve();
    let api = &second.api;
    assert_eq!(api.ended(&caught.asleep, TAKEN_OVER + SOON)["status"], "completed");
    assert_eq!(api.ended(&caught.waiting, SOON)["status"], "completed");
    assert_eq!(api.ended(&caught.agent, SOON)["status"], "failed");

    let asleep = only_job(api, &caught.asleep);
    assert!(asleep["attempt"].as_i64() > Some(1), "it was run again: {asleep:#}");
    assert_eq!(asleep["failures"], 0, "a lost owner is no failure of the job");
    let agent = only_job(api, &caught.agent);
    assert_eq!(agent["error_code"], "SUPERVISOR_LOST", "{agent:#}");
    assert!(agent["output"].as_str().unwrap().contains("slept_ms"), "what it had produced is kept: {agent:#}");
    for task in [&caught.waiting, &caught.finished] {
        let job = only_job(api, task);
        assert_eq!((&job["state"], &job["attempt"]), (&json!("completed"), &json!(1)), "{job:#}");
    }
    assert_each_ended_once(&home.store, [&caught.asleep, &caught.agent, &caught.waiting, &caught.finished]);
    assert_eq!(stores::ask(&home.store, "SELECT count(*) FROM permits WHERE job_id IS NOT NULL"), ["0"]);
    let nodes = api.get("/api/v1/nodes")["items"].as_array().unwrap().len();
    assert_eq!(nodes, 1, "the dead one is forgotten");
}

/// The record of changes has one end for each of these tasks of one job.
fn assert_each_ended_once<'a>(store: &str, tasks: impl IntoIterator<Item = &'a String>) {
    for task in tasks {
        let ends = stores::ask(
            store,
            &format!(
                "SELECT count(*) FROM changes WHERE topic = 'task/{task}' AND kind IN ('job_finished', 'task_status')"
            ),
        );
        assert_eq!(ends, ["1"], "{task}");
    }
}

#[test]
fn a_killed_daemon_loses_nothing_on_sqlite() {
    a_killed_daemon_loses_nothing(Backend::Sqlite);
}

#[test]
fn a_killed_daemon_loses_nothing_on_postgres() {
    a_killed_daemon_loses_nothing(Backend::Postgres);
}

#[test]
fn without_a_daemon_nothing_reads_as_running() {
    let home = Home::sqlite();
    let mut daemon = home.serve();
    let task = daemon.api.submit(vec![sleep(60_000)]);
    daemon.api.job_becomes(&task, "running", SOON);
    daemon.process.kill();
    let jobs = &home.run_json(&["status", &task])["jobs"];
    assert_eq!((&jobs["running"], &jobs["queued"]), (&json!(0), &json!(1)));
    // A stop without a daemon is final too.
    assert_eq!(home.run_json(&["stop", &task])["task"]["status"], "cancelled");
    let next = home.serve();
    assert_eq!(next.api.jobs_of(&task)[0]["state"], "cancelled");
}

#[test]
fn a_stop_that_was_asked_for_outlives_a_crash() {
    let home = Home::sqlite();
    let mut first = home.serve();
    let stubborn = json!({ "ms": 60_000, "ignore_stop": true });
    let task = first.api.submit(vec![crate::api::sleep_with(stubborn)]);
    first.api.job_becomes(&task, "running", SOON);
    let (api, path) = (first.api.clone(), format!("/api/v1/tasks/{task}"));
    let asked = std::thread::spawn(move || api.send("PATCH", &path, Some(&json!({ "status": "cancelled" }))));
    until("the stop is written down", SOON, || first.api.task(&task)["stop"].as_object().map(drop));
    first.process.kill();
    assert!(asked.join().unwrap().is_err(), "no process was there to answer");
    let second = home.serve();
    assert_eq!(second.api.ended(&task, SOON)["status"], "cancelled");
    assert_eq!(only_job(&second.api, &task)["state"], "cancelled");
}

/// A limit on the size of files stands for a disk that takes no more: writes fail until it is lifted.
#[test]
fn a_full_disk_is_a_clear_answer_and_no_end() {
    use rustix::process::{Pid, Resource, Rlimit, prlimit};
    let home = Home::sqlite();
    let mut command = std::process::Command::new("sh");
    let serve = home.command(&["serve", "--test-jobs", "--port", "0"]);
    // A process that ignores this signal gets an error from the write instead.
    command.args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\""]).arg(serve.get_program()).args(serve.get_args());
    command.env("HOME", home.path(""));
    let daemon = crate::home::Daemon::announced(home.start_command(command), &home.data_dir());
    let pid = Pid::from_raw(i32::try_from(daemon.process.pid()).unwrap());
    let limit = |bytes| prlimit(pid, Resource::Fsize, Rlimit { current: bytes, maximum: None }).unwrap();
    let before = daemon.api.submit(vec![noop()]);
    daemon.api.ended(&before, SOON);

    limit(Some(4_096));
    let body = json!({ "jobs": [sleep(1)] });
    let refused = daemon.api.send("POST", "/test/tasks", Some(&body)).unwrap();
    assert_eq!((refused.status, &refused.json()["error_code"]), (503, &json!("STORE_UNAVAILABLE")), "{refused:?}");
    assert_eq!(daemon.api.task(&before)["status"], "completed", "reading goes on");

    limit(None);
    let after = until("it takes work again", SOON, || {
        let reply = daemon.api.send("POST", "/test/tasks", Some(&body)).unwrap();
        (reply.status == 200).then(|| reply.json()["task"]["task_id"].as_str().unwrap().to_owned())
    });
    assert_eq!(daemon.api.ended(&after, SOON)["status"], "completed");
}
