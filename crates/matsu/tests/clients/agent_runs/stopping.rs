//! Stopping runs, with and without a daemon: what they had printed, how they ended and what they wrote is kept.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use super::survival::{ASKS, assert_whole, counting, end_politely, said_something, supervisors, whole_result};
use super::worktrees::{git, repository};
use super::{Bench, SOON, end_of, processes, reaches, start, start_with, unique_sleep};
use crate::home::until;

const WRITING: &str = "[agents]\nmode_max = \"workspace-write\"\n";

/// A run that has ended while no daemon lived.
fn ended_alone(bench: &Bench) -> String {
    let go_on = bench.home.signal("go_on");
    let mut client = bench.client();
    let task = start(&mut client, &counting(&go_on, 2000));
    said_something(&mut client, &task);
    client.kill();
    bench.home.run(&["shutdown"]);
    std::fs::write(&go_on, "").unwrap();
    until("its supervisor has ended", SOON, || (supervisors(bench) == 0).then_some(()));
    task
}

#[test]
fn a_stop_without_a_daemon_keeps_the_result_of_a_run_that_has_ended() {
    for words in [["stop", "--now"].as_slice(), &["stop"]] {
        let bench = Bench::new();
        let task = ended_alone(&bench);
        let stopped = bench.home.run(&[words, &[task.as_str()]].concat());
        assert_eq!((&stopped["was_terminal"], &stopped["task"]["status"]), (&json!(true), &json!("completed")));
        let mut client = bench.client();
        assert_eq!(end_of(&mut client, &task)["status"], "completed");
        assert_whole(&whole_result(&mut client, &task), 2000);
    }
}

#[test]
fn a_shutdown_of_runs_counts_none_that_had_ended_and_keeps_its_result() {
    let bench = Bench::new();
    let task = ended_alone(&bench);
    let said = bench.home.run(&["shutdown", "--runs"]);
    assert_eq!((&said["runs_ended"], &said["runs_over"]), (&json!(0), &json!(0)), "{said}");
    let mut client = bench.client();
    assert_eq!(end_of(&mut client, &task)["status"], "completed");
    assert_whole(&whole_result(&mut client, &task), 2000);
}

#[test]
fn a_stop_without_a_daemon_keeps_what_a_living_run_has_printed() {
    let bench = Bench::new();
    let (go_on, nap) = (bench.home.signal("go_on"), unique_sleep());
    let mut client = bench.client();
    let task = start(&mut client, &format!("echo line 1; {}; seq 2 5000; sleep {nap}", until_exists(&go_on)));
    said_something(&mut client, &task);
    client.kill();
    bench.home.run(&["shutdown"]);
    std::fs::write(&go_on, "").unwrap();
    until("it has printed everything", SOON, || (processes(&nap) == 1).then_some(()));
    let stopped = bench.home.run(&["stop", "--now", &task]);
    assert_eq!(stopped["task"]["status"], "cancelled", "{stopped}");
    assert_eq!((processes(&nap), supervisors(&bench)), (0, 0), "what reads cancelled has ended");
    let mut client = bench.client();
    let said = whole_result(&mut client, &task);
    assert!(said.ends_with("\n5000\n"), "{}", &said[said.len().saturating_sub(100)..]);
}

/// Writes a file and waits; the second time it adds to what is there.
fn half(nap: &str) -> String {
    format!(
        "if [ -e half.txt ]; then echo second >> half.txt; cat half.txt
         else echo first > half.txt; echo line 1; sleep {nap}; fi"
    )
}

/// The changes of a stopped run are shown, and the next run goes on from them.
#[track_caller]
fn goes_on(bench: &Bench, task: &str) {
    let mut client = bench.client();
    let status = until("its changes are stored", SOON, || {
        let said = client.call("get_task_status", &json!({ "task_id": task }));
        said["changes"].is_object().then_some(said)
    });
    assert_eq!(status["status"], "cancelled", "{status}");
    let listed: Value = bench.home.run(&["branches"]);
    assert_eq!(listed["items"][0]["task_id"], json!(task), "{listed}");
    let patch = bench.home.command(&["diff", task]).output().unwrap();
    assert!(String::from_utf8_lossy(&patch.stdout).contains("+first"), "{patch:?}");
    let next = bench.home.run(&["retry", "--continue", task])["task_id"].as_str().unwrap().to_owned();
    assert_eq!(end_of(&mut client, &next)["status"], "completed");
    assert_eq!(whole_result(&mut client, &next), "first\nsecond\n", "the same files");
    let branch = client.call("get_task_status", &json!({ "task_id": next }))["changes"]["branch"].clone();
    assert_eq!(git(&bench.root, &["show", &format!("{}:half.txt", branch.as_str().unwrap())]), "first\nsecond\n");
}

fn written_and_stopped(words: &[&str], has_daemon: bool) {
    let bench = Bench::with(WRITING);
    repository(&bench.root);
    let mut client = bench.client();
    let nap = unique_sleep();
    let task = start_with(&mut client, &half(&nap), json!({ "mode": "workspace-write" }));
    said_something(&mut client, &task);
    client.kill();
    if !has_daemon {
        bench.home.run(&["shutdown"]);
    }
    let words: Vec<&str> = words.iter().map(|word| if *word == "TASK" { &task } else { *word }).collect();
    bench.home.run(&words);
    goes_on(&bench, &task);
}

#[test]
fn a_run_that_was_stopped_at_once_goes_on_from_its_files() {
    written_and_stopped(&["stop", "--now", "TASK"], true);
}

#[test]
fn a_run_that_was_stopped_without_a_daemon_goes_on_from_its_files() {
    written_and_stopped(&["stop", "--now", "TASK"], false);
}

#[test]
fn a_run_that_was_ended_by_a_shutdown_goes_on_from_its_files() {
    written_and_stopped(&["shutdown", "--runs"], true);
}

#[test]
fn time_stands_still_for_a_run_that_asks_while_no_daemon_lives() {
    let bench = Bench::new();
    let mut client = bench.client();
    let task = start_with(&mut client, ASKS, json!({ "cli_name": "events", "timeout": 5 }));
    reaches(&mut client, &task, "input_required");
    client.kill();
    end_politely(bench.home.relayed().0);
    std::thread::sleep(Duration::from_secs(8));
    assert_eq!(supervisors(&bench), 1, "it waits for its answer");
    bench.home.run(&["answer", &task, "yes"]);
    let mut client = bench.client();
    let end = end_of(&mut client, &task);
    assert_eq!((&end["status"], &end["result"]), (&json!("completed"), &json!("before after")), "{end}");
}

#[test]
fn an_answer_to_a_run_that_has_ended_is_refused() {
    let bench = Bench::new();
    let mut client = bench.client();
    let leave = bench.home.signal("leave");
    let script = format!("{}\nexit 1", ASKS.replace("read answer", &until_exists(&leave)));
    let task = start_with(&mut client, &script, json!({ "cli_name": "events" }));
    reaches(&mut client, &task, "input_required");
    client.kill();
    bench.home.run(&["shutdown"]);
    std::fs::write(&leave, "").unwrap();
    until("its supervisor has ended", SOON, || (supervisors(&bench) == 0).then_some(()));
    let refused = bench.home.command(&["answer", &task, "yes"]).output().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && said.contains("has ended"), "{said}");
}

fn until_exists(path: &Path) -> String {
    format!("while [ ! -e {} ]; do sleep 0.05; done", path.display())
}
