//! A job that is there each time the server dies: it runs alone, and if the server dies again it is failed, so that no
//! restart begins it once more.

use std::time::Duration;

use crate::api::{Api, noop, sleep, until};
use crate::home::{Daemon, Home};

/// A lone job is looked for after ten seconds, then every five; the rest is for a busy machine.
const SOON: Duration = Duration::from_secs(40);
/// Longer than any of these tests.
const FOR_EVER_MS: u64 = 600_000;

fn state(api: &Api, task: &str) -> String {
    api.jobs_of(task)[0]["state"].as_str().unwrap().to_owned()
}

/// Until a later attempt than this one runs; returns which. A dead daemon's job is still running in its store.
#[track_caller]
fn runs(daemon: &Daemon, task: &str, after: i64) -> i64 {
    until("the job runs", SOON, || {
        let job = daemon.api.jobs_of(task).remove(0);
        job["attempt"].as_i64().filter(|attempt| job["state"] == "running" && *attempt > after)
    })
}

/// A daemon whose job has seen three others die.
fn after_three_deaths(home: &Home, milliseconds: u64) -> (Daemon, String, i64) {
    let mut daemon = home.serve();
    let task = daemon.api.submit(vec![sleep(milliseconds)]);
    let mut attempt = 0;
    for _ in 0..3 {
        attempt = runs(&daemon, &task, attempt);
        daemon.process.kill();
        daemon = home.serve();
    }
    (daemon, task, attempt)
}

#[test]
fn a_job_that_kills_its_server_runs_alone_and_then_fails() {
    let home = Home::sqlite();
    let (mut daemon, killer, attempt) = after_three_deaths(&home, FOR_EVER_MS);
    runs(&daemon, &killer, attempt);
    let other = daemon.api.submit(vec![noop()]);
    // Several times as long as a job takes to start.
    std::thread::sleep(Duration::from_millis(700));
    assert_eq!(state(&daemon.api, &other), "queued", "nothing starts beside it");
    assert_eq!(state(&daemon.api, &killer), "running");
    daemon.process.kill();
    let daemon = home.serve();
    assert_eq!(daemon.api.ended(&other, SOON)["status"], "completed");
    assert_eq!(daemon.api.ended(&killer, SOON)["status"], "failed");
    let failed = daemon.api.jobs_of(&killer).remove(0);
    assert_eq!(
        (failed["state"].as_str(), failed["error_code"].as_str()),
        (Some("failed"), Some("JOB_KILLED_ITS_WORKER"))
    );
}

#[test]
fn a_job_that_survives_alone_completes_and_others_go_on() {
    let home = Home::sqlite();
    let (daemon, task, _) = after_three_deaths(&home, 3_000);
    let other = daemon.api.submit(vec![noop()]);
    assert_eq!(daemon.api.ended(&task, SOON)["status"], "completed");
    assert_eq!(daemon.api.ended(&other, SOON)["status"], "completed");
}

/// What ends every process within a second is not the fault of a job that happens to be there.
#[test]
fn a_job_is_not_blamed_for_deaths_that_come_without_it() {
    let home = Home::sqlite();
    let (mut daemon, task, _) = after_three_deaths(&home, 3_000);
    for _ in 0..5 {
        std::thread::sleep(Duration::from_millis(700));
        assert_eq!(state(&daemon.api, &task), "queued");
        daemon.process.kill();
        daemon = home.serve();
    }
    assert_eq!(daemon.api.ended(&task, SOON)["status"], "completed");
}
