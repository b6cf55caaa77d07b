//! A machine that slept: all processes of Matsu stand still for a while, and no job or node is judged by that time.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::api::{sleep, sleep_with, until};
use crate::home::{Backend, Home};
use crate::process::Process;

const SOON: Duration = Duration::from_secs(15);

/// What came through the sleep.
#[derive(Debug, Default)]
pub struct Slept {
    pub jobs: usize,
    pub repeated: usize,
    pub failed: usize,
}

/// Stops everything for this long in mid-work, and looks what became of the work.
pub fn sleep_through(backend: Backend, span: Duration) -> Slept {
    let home = Home::new(backend).with_variable("MATSU_SLOTS_AGENT_CLI", "40");
    let daemon = home.serve();
    let workers: Vec<Process> = match backend {
        Backend::Sqlite => Vec::new(),
        Backend::Postgres => (0..2).map(|_| home.work()).collect(),
    };
    let seconds = span.as_secs();
    // Longer than it may run, if the sleep counted.
    let long = json!({ "ms": (seconds + 3) * 1_000, "run_seconds_max": (seconds / 2).max(6) });
    let retried = json!({ "ms": 100, "fail": "once", "fail_attempts": 1 });
    let tasks: Vec<String> = (0..5)
        .flat_map(|_| [sleep(2_000), sleep_with(long.clone()), sleep_with(retried.clone())])
        .map(|job| daemon.api.submit(vec![job]))
        .collect();
    let running = || daemon.api.get("/api/v1/jobs?state=running&limit=200")["items"].as_array().unwrap().len();
    until("ten jobs run", SOON, || (running() >= 10).then_some(()));
    // The store knows of a claim before its node has the answer: a node stopped in between begins after the sleep.
    pass(Duration::from_secs(1));

    let everyone = || std::iter::once(&daemon.process).chain(&workers);
    everyone().for_each(|process| process.signal(Signal::STOP));
    pass(span);
    everyone().for_each(|process| process.signal(Signal::CONT));

    let mut slept = Slept::default();
    for task in &tasks {
        daemon.api.ended(task, SOON);
        let job: Value = daemon.api.jobs_of(task).remove(0);
        let failed = job["state"] != "completed";
        // One attempt for each, and one more for each failure of its own.
        let repeated = job["attempt"].as_i64() != Some(1 + job["failures"].as_i64().unwrap());
        if failed || repeated {
            eprintln!("{job:#}");
        }
        slept.jobs += 1;
        slept.failed += usize::from(failed);
        slept.repeated += usize::from(repeated);
    }
    slept
}

/// Real time goes by.
fn pass(span: Duration) {
    let began = Instant::now();
    until("the time is over", span + SOON, || (began.elapsed() >= span).then_some(()));
}

fn a_short_sleep_does_no_harm(backend: Backend) {
    let slept = sleep_through(backend, Duration::from_secs(5));
    assert_eq!((slept.jobs, slept.failed, slept.repeated), (15, 0, 0), "{slept:?}");
}

#[test]
fn a_short_sleep_does_no_harm_on_sqlite() {
    a_short_sleep_does_no_harm(Backend::Sqlite);
}

#[test]
fn a_short_sleep_does_no_harm_on_postgres() {
    a_short_sleep_does_no_harm(Backend::Postgres);
}
