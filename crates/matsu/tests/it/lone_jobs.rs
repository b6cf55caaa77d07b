//! A job that is there each time the server dies: it runs alone, and if the server dies again it is failed, so that no
//! restart begins it once more.

use std::time::Duration;

use crate::api::{Api, noop, sleep, until};
use crate::home::{Daemon, Home};

/// A lone job is looked for every five seconds; the rest is for a busy machine.
const SOON: Duration = Duration::from_secs(40);
/// Longer than any of these tests.
const FOR_EVER_MS: u64 = 600_000;

fn state(api: &Api, task: &str) -> String {
    api.jobs_of(task)[0]["state"].as_str().unwrap().to_owned()
}

#[track_caller]
fn runs(daemon: &Daemon, task: &str) {
    until("the job runs", SOON, || (state(&daemon.api, task) == "running").then_some(()));
}

/// A daemon whose job has seen three others die.
fn after_three_deaths(home: &Home, milliseconds: u64) -> (Daemon, String) {
    let mut daemon = home.serve();
    let task = daemon.api.submit(vec![sleep(milliseconds)]);
    for _ in 0..3 {
        runs(&daemon, &task);
        daemon.process.kill();
        daemon = home.serve();
    }
    (daemon, task)
}

#[test]
fn a_job_that_kills_its_server_runs_alone_and_then_fails() {
    let home = Home::sqlite();
    let (mut daemon, killer) = after_three_deaths(&home, FOR_EVER_MS);
    runs(&daemon, &killer);
    let other = daemon.api.submit(vec![noop()]);
    // Several times as long as a job takes to start.
    std::thread::sleep(Duration::from_millis(700));
    assert_eq!(state(&daemon.api, &other), "queued", "nothing starts beside it");
    assert_eq!(state(&daemon.api, &killer), "running");
    daemon.process.kill();
    let daemon = home.serve();
    assert_eq!(daemon.api.ended(&other, SOON)["status"], "completed");
    let failed = daemon.api.jobs_of(&killer).remove(0);
    assert_eq!(
        (failed["state"].as_str(), failed["error_code"].as_str()),
        (Some("failed"), Some("JOB_KILLED_ITS_WORKER"))
    );
}

#[test]
fn a_job_that_survives_alone_completes_and_others_go_on() {
    let home = Home::sqlite();
    let (daemon, task) = after_three_deaths(&home, 3_000);
    let other = daemon.api.submit(vec![noop()]);
    assert_eq!(daemon.api.ended(&task, SOON)["status"], "completed");
    assert_eq!(daemon.api.ended(&other, SOON)["status"], "completed");
}
