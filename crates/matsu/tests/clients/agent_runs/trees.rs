//! What a run starts ends with it: cancelled, timed out, the daemon stopped or killed, the shim itself killed.

use std::time::{Duration, Instant};

use serde_json::json;

use super::{Bench, SOON, end_of, processes, reaches, start, start_with, unique_sleep};
use crate::home::{kill, until};
use crate::stdio::Client;

/// Everything is gone this soon after it should be.
const GONE: Duration = Duration::from_secs(5);

/// A tree that does not want to end: a grandchild in a session of its own, and one that ignores SIGTERM.
fn stubborn(nap: &str) -> String {
    format!(
        "setsid sleep {nap} &\n(trap '' TERM; sleep {nap}; sleep {nap}) &\necho begun; echo oops >&2\nsleep {nap}\n"
    )
}

#[test]
fn a_cancelled_run_ends_with_all_its_processes() {
    let bench = Bench::new();
    let mut client = bench.client();
    let nap = unique_sleep();
    let task = start(&mut client, &stubborn(&nap));
    until("three sleep", SOON, || (processes(&nap) == 3).then_some(()));
    let began = Instant::now();
    let said = client.call("cancel_task", &json!({ "task_id": task, "mode": "immediate" }));
    assert!(began.elapsed() < GONE, "{:?}", began.elapsed());
    assert_eq!((said["status"].as_str(), processes(&nap)), (Some("cancelled"), 0), "{said}");
    assert!(said["processes_ended"].as_u64().unwrap() >= 4, "{said}");
    let again = client.call("cancel_task", &json!({ "task_id": task, "mode": "immediate" }));
    assert_eq!(
        (again["already_ended"].as_bool(), again["status"].as_str()),
        (Some(true), Some("cancelled")),
        "{again}"
    );
    let unknown = client.call("cancel_task", &json!({ "task_id": "task_nope" }));
    assert_eq!((unknown["ok"].as_bool(), unknown["error_code"].as_str()), (Some(false), Some("TASK_NOT_FOUND")));
    assert_eq!(end_of(&mut client, &task)["status"], "cancelled", "and it stays so");
}

#[test]
fn a_graceful_cancel_lets_a_run_finish_and_keeps_its_result() {
    let bench = Bench::new();
    let mut client = bench.client();
    let task = start(&mut client, "echo begun; sleep 2; echo done");
    reaches(&mut client, &task, "running");
    let said = client.call("cancel_task", &json!({ "task_id": task }));
    assert_eq!(said["status"], "cancelled", "{said}");
    let end = end_of(&mut client, &task);
    assert_eq!(end["result"], "begun\ndone\n", "{end}");
}

#[test]
fn a_timeout_ends_the_whole_tree_and_shows_what_was_said() {
    let bench = Bench::new();
    let mut client = bench.client();
    let nap = unique_sleep();
    let began = Instant::now();
    let task = start_with(&mut client, &stubborn(&nap), json!({ "timeout": 1 }));
    let end = end_of(&mut client, &task);
    assert!(began.elapsed() < Duration::from_secs(1) + GONE, "{:?}", began.elapsed());
    assert_eq!((end["status"].as_str(), end["error_code"].as_str()), (Some("failed"), Some("JOB_TIMEOUT")), "{end}");
    assert_eq!(processes(&nap), 0);
    assert_eq!((end["stdout_tail"].as_str(), end["stderr_tail"].as_str()), (Some("begun\n"), Some("oops\n")), "{end}");
    assert!(end["error"].as_str().unwrap().contains("timeout"), "{end}");
}

/// The last lines of a run, once there are any.
fn said_so_far(client: &mut Client, task: &str) -> Option<String> {
    let said = client.call("get_task_status", &json!({ "task_id": task, "tail": 5 }));
    said["tail"].as_str().filter(|tail| !tail.is_empty()).map(str::to_owned)
}

/// A run of three that do not listen: its task, what they sleep for, and the process of its supervisor.
fn start_and_find_its_supervisor(client: &mut Client) -> (String, String, u32) {
    let nap = unique_sleep();
    let task = start(client, &format!("echo begun\n{}", stubborn(&nap)));
    until("three sleep", SOON, || (processes(&nap) == 3).then_some(()));
    until("what it said is stored", SOON, || said_so_far(client, &task));
    (task, nap.clone(), supervisor_above(&nap))
}

/// The supervisor above a process with this argument. The run itself cannot tell: it may have process ids of its own.
fn supervisor_above(argument: &str) -> u32 {
    let words = |pid: u32| std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let has = |pid: u32, word: &str| words(pid).split(|byte| *byte == 0).any(|part| part == word.as_bytes());
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let mut pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let mut pid = pids.find(|pid| has(*pid, argument)).unwrap();
    while !has(pid, "__supervise") {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        pid = stat.rsplit(')').next().unwrap().split_whitespace().nth(1).unwrap().parse().unwrap();
        assert!(pid > 1, "no supervisor above {argument}");
    }
    pid
}

#[test]
fn what_a_killed_supervisor_leaves_behind_is_ended_too() {
    let bench = Bench::new();
    let mut client = bench.client();
    let (task, nap, supervisor) = start_and_find_its_supervisor(&mut client);
    kill(supervisor);
    until("its processes are gone", GONE, || (processes(&nap) == 0).then_some(()));
    let end = end_of(&mut client, &task);
    assert_eq!(
        (end["status"].as_str(), end["error_code"].as_str()),
        (Some("failed"), Some("SUPERVISOR_LOST")),
        "{end}"
    );
    assert_eq!(end["result"], "begun\nbegun\n", "what it had said is kept: {end}");
}

#[test]
fn what_a_daemon_and_a_supervisor_leave_that_were_both_killed_the_next_daemon_ends() {
    let bench = Bench::new();
    let mut client = bench.client();
    let (task, nap, supervisor) = start_and_find_its_supervisor(&mut client);
    let (daemon, _) = bench.home.relayed();
    // Still, so that it does not notice what becomes of the supervisor.
    let pid = rustix::process::Pid::from_raw(i32::try_from(daemon).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
    client.kill();
    kill(supervisor);
    kill(daemon);
    let end = end_of(&mut bench.client(), &task);
    assert_eq!((end["error_code"].as_str(), processes(&nap)), (Some("SUPERVISOR_LOST"), 0), "{end}");
}

#[test]
fn a_run_that_leaves_something_behind_ends_only_when_that_is_gone() {
    let bench = Bench::new();
    let mut client = bench.client();
    let nap = unique_sleep();
    let task = start(&mut client, &format!("setsid sleep {nap} >/dev/null 2>&1 &\necho done"));
    let end = end_of(&mut client, &task);
    assert_eq!((end["result"].as_str(), processes(&nap)), (Some("done\n"), 0), "{end}");
}
