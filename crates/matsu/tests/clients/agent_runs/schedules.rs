//! Work that starts by itself: through the command line and the daemon, across an end of the daemon.

use std::time::Duration;

use matsu_core::clock::Clock;
use serde_json::Value;

use super::{Bench, SOON};
use crate::home::{kill, until};

/// A time so many seconds from now.
fn in_seconds(seconds: u64) -> String {
    Clock::system().now().plus(Duration::from_secs(seconds)).to_string()
}

fn add(bench: &Bench, name: &str, at: &str, script: &str) -> Value {
    bench.home.run(&["schedule", "add", "--at", at, "--name", name, "run", "script", script])
}

/// What came of the times of a schedule, once the newest is settled.
fn history(bench: &Bench, name: &str) -> Vec<Value> {
    until("the schedule has fired", SOON, || {
        let page: Value = bench.home.run(&["schedule", "history", name]);
        let items = page["items"].as_array()?.clone();
        (!items.is_empty() && items[0]["state"] != "waiting").then_some(items)
    })
}

#[test]
fn a_schedule_starts_its_run_at_its_time_and_names_it() {
    let bench = Bench::new();
    let added = add(&bench, "soon", &in_seconds(2), "echo started by a schedule");
    assert!(added["next_at"].is_string() && added["paused"].is_null(), "{added}");
    let fired = history(&bench, "soon");
    assert_eq!(fired.len(), 1, "{fired:?}");
    assert_eq!(fired[0]["state"], "started", "{fired:?}");
    let task = fired[0]["task_id"].as_str().unwrap();
    let mut client = bench.client();
    let end = super::end_of(&mut client, task);
    assert_eq!(end["status"], "completed", "{end}");
    assert!(end["result"].as_str().unwrap().contains("started by a schedule"), "{end}");
    let listed: Value = bench.home.run(&["schedule", "list"]);
    assert!(listed["items"][0]["next_at"].is_null(), "it was for one time: {listed}");
    bench.home.run(&["schedule", "remove", "soon"]);
    let listed: Value = bench.home.run(&["schedule", "list"]);
    assert_eq!(listed["items"].as_array().unwrap().len(), 0, "{listed}");
}

#[test]
fn a_time_that_passes_without_a_daemon_is_made_up_for_once() {
    let bench = Bench::new();
    let at = in_seconds(4);
    add(&bench, "later", &at, "echo made up for");
    add(&bench, "paused", &at, "echo never");
    bench.home.run(&["schedule", "pause", "paused"]);
    std::fs::write(bench.home.data_dir().join("stopped"), "").unwrap();
    kill(bench.home.relayed().0);
    until("the time has passed", SOON, || (in_seconds(0) > at).then_some(()));
    let client = bench.client();
    let fired = history(&bench, "later");
    assert_eq!((fired.len(), fired[0]["state"].as_str()), (1, Some("started")), "{fired:?}");
    drop(client);
    let mut client = bench.client();
    let end = super::end_of(&mut client, fired[0]["task_id"].as_str().unwrap());
    assert_eq!(end["status"], "completed", "{end}");
    let paused: Value = bench.home.run(&["schedule", "history", "paused"]);
    assert_eq!(paused["items"].as_array().unwrap().len(), 0, "{paused}");
}

#[test]
fn what_cannot_be_scheduled_is_refused_with_what_is_expected() {
    let bench = Bench::new();
    let refused = |args: &[&str], expected: &str| {
        let output = bench.home.command(&[&["schedule", "add"], args].concat()).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && text.contains(expected), "{args:?}: {text}");
    };
    refused(&["* * * * * *", "run", "script", "true"], "five fields");
    refused(&["0 0 30 2 *", "run", "script", "true"], "never fire");
    refused(&["--every", "10s", "run", "script", "true"], "at least 60");
    refused(&["--tz", "Mars/Base", "0 7 * * *", "run", "script", "true"], "Europe/Berlin");
    refused(&["--at", "tomorrow", "run", "script", "true"], "2030-01-31");
    refused(&["0 7 * * *", "run", "script", "true", "--mode", "everything"], "mode");
}
