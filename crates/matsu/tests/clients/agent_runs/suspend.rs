//! The lid is closed in mid-run: daemon, relay, shim and program all stand still, and none of that time counts.

use std::path::Path;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::{Bench, SOON, reaches, start_with};
use crate::home::until;

/// Half a second at a time: one long sleep would be over when everybody wakes.
const WORK: &str = "echo begun; for i in 1 2 3 4 5 6; do sleep 0.5; done; echo awake";

/// Everything stands still for this long while a run is at work and a client waits for it.
pub fn sleeps_through(span: Duration) {
    let bench = Bench::new();
    let mut client = bench.client();
    // Less than the sleep, more than the work.
    let task = start_with(&mut client, WORK, json!({ "timeout": 8 }));
    let running = reaches(&mut client, &task, "running");
    let wish = json!({ "task_id": task, "timeout": 45, "wait_for": "all", "since": running["revision"] });
    let waiting = client.request("tools/call", &json!({ "name": "get_task_status", "arguments": wish }));
    // A run counts as running a moment before its program does.
    let everybody = until("daemon, relay, shim and program are there", SOON, || {
        Some(everybody(&bench.home.data_dir())).filter(|found| found.len() >= 4)
    });
    signal(&everybody, Signal::STOP);
    // The time that passes is what this is about.
    std::thread::sleep(span);
    signal(&everybody, Signal::CONT);
    let said = client.answer(waiting)["result"]["structuredContent"].clone();
    let end = if said["status"] == "completed" { said } else { super::end_of(&mut client, &task) };
    assert_eq!((end["status"].as_str(), end["result"].as_str()), (Some("completed"), Some("begun\nawake\n")), "{end}");
}

fn signal(processes: &[i32], signal: Signal) {
    for pid in processes.iter().filter_map(|pid| Pid::from_raw(*pid)) {
        // A short one may have ended by itself.
        let _ = kill_process(pid, signal);
    }
}

/// The processes of this data directory and their descendants, parents first.
fn everybody(data: &Path) -> Vec<i32> {
    let pids = std::fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let pids: Vec<i32> = pids.collect();
    let ours = |pid: &i32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).any(|part| part == data.as_os_str().as_encoded_bytes())
    };
    let parent = |pid: i32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.get(stat.rfind(')')? + 1..)?.split_whitespace().nth(1)?.parse::<i32>().ok()
    };
    let mut found: Vec<i32> = pids.iter().copied().filter(ours).collect();
    let mut at = 0;
    while let Some(above) = found.get(at).copied() {
        at += 1;
        let below: Vec<i32> = pids.iter().copied().filter(|pid| parent(*pid) == Some(above)).collect();
        found.extend(below.into_iter().filter(|pid| !found.contains(pid)).collect::<Vec<_>>());
    }
    found
}

#[test]
fn a_run_sleeps_through_a_closed_lid() {
    sleeps_through(Duration::from_secs(12));
}
