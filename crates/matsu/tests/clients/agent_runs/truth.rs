//! Every text that speaks of whether a run goes on, compared with whether its program lives.

use rustix::process::Signal;
use serde_json::json;

use super::survival::{end_politely, said_something, supervisor_pids};
use super::{Bench, SOON, end_of, processes, start, unique_sleep};
use crate::home::{kill, send, until};
use crate::stdio::Client;

/// Words that claim that work goes on without the daemon or after an end.
const CLAIMS: &[&str] = &["go on", "goes on", "going on", "still running", "keep running", "keeps running", "continue"];

/// What offers a command says nothing about what happens now.
const OFFERS: &[&str] = &[
    "to go on from there",
    "to continue at the point where its runs were stopped",
    "retry --continue",
    "matsu shutdown --runs",
];

fn claims_to_go_on(text: &str) -> bool {
    let text = OFFERS.iter().fold(text.to_lowercase(), |text, offer| text.replace(offer, ""));
    CLAIMS.iter().any(|claim| text.contains(claim))
}

/// A run at work: its client, its task, and an argument that its program alone has.
fn at_work(bench: &Bench) -> (Client, String, String) {
    let mut client = bench.client();
    let nap = unique_sleep();
    let task = start(&mut client, &format!("echo line 1; sleep {nap}"));
    said_something(&mut client, &task);
    (client, task, nap)
}

/// What a command prints for people, however it ends: the end of a task is also an exit code.
fn printed(bench: &Bench, args: &[&str]) -> String {
    let output = bench.home.command(args).output().unwrap();
    [output.stdout, output.stderr].map(|part| String::from_utf8(part).unwrap()).concat()
}

fn logged(bench: &Bench) -> String {
    std::fs::read_to_string(bench.home.data_dir().join("daemon.log")).unwrap()
}

#[track_caller]
fn assert_true(text: &str, nap: &str) {
    let lives = processes(nap) == 1;
    assert_eq!(claims_to_go_on(text), lives, "the program lives: {lives}; the text: {text}");
}

#[test]
fn what_is_printed_at_the_end_of_a_daemon_is_true_of_its_runs() {
    let bench = Bench::new();
    let (client, _, nap) = at_work(&bench);
    client.kill();
    assert_true(&printed(&bench, &["shutdown"]), &nap);
    assert_eq!(processes(&nap), 1, "a run is left alone");
    assert_true(&printed(&bench, &["shutdown", "--runs"]), &nap);
    assert_eq!(processes(&nap), 0, "a run is ended when that is asked for");
    assert!(!claims_to_go_on(&printed(&bench, &["shutdown"])), "there is nothing that could go on");

    let (client, task, nap) = at_work(&bench);
    client.kill();
    end_politely(bench.home.relayed().0);
    let last = logged(&bench);
    let last: Vec<&str> = last.lines().filter(|line| line.contains("runs of agents")).collect();
    assert_true(last.last().expect("a line about the run"), &nap);
    let mut client = bench.client();
    client.call("cancel_task", &json!({ "task_id": task, "mode": "immediate" }));
    assert_eq!(end_of(&mut client, &task)["status"], "cancelled");
}

#[test]
fn a_run_that_has_ended_without_a_daemon_is_not_said_to_live() {
    let bench = Bench::new();
    let (client, task, nap) = at_work(&bench);
    client.kill();
    assert!(printed(&bench, &["shutdown"]).contains("Runs that continue without a daemon: 1."));
    supervisor_pids(&bench).into_iter().for_each(kill);
    until("its program has ended", SOON, || (processes(&nap) == 0).then_some(()));
    let again = printed(&bench, &["shutdown"]);
    assert!(!claims_to_go_on(&again), "{again}");
    assert!(again.contains("Runs that have ended and whose results are not stored yet: 1."), "{again}");
    for command in [vec!["status", &task], vec!["tasks"]] {
        assert!(
            printed(&bench, &command).contains("No daemon runs. This is the state from when the last one ended"),
            "{command:?}"
        );
    }
}

#[test]
fn what_is_replied_after_an_end_does_not_speak_of_work_that_goes_on() {
    let bench = Bench::new();
    let (mut client, task, nap) = at_work(&bench);
    let working = client.call("get_task_status", &json!({ "task_id": task, "timeout": 1 }));
    assert_eq!((working["status"].as_str(), processes(&nap)), (Some("running"), 1), "{working}");
    let cancelled = client.call("cancel_task", &json!({ "task_id": task, "mode": "immediate" }));
    let end = end_of(&mut client, &task);
    until("its program has ended", SOON, || (processes(&nap) == 0).then_some(()));
    assert_true(&format!("{cancelled} {end}"), &nap);
    assert_true(&printed(&bench, &["status", &task]), &nap);

    let (mut client, task, nap) = at_work(&bench);
    supervisor_pids(&bench).into_iter().for_each(kill);
    let end = end_of(&mut client, &task);
    until("its program has ended", SOON, || (processes(&nap) == 0).then_some(()));
    assert_eq!(end["error_code"], "SUPERVISOR_LOST", "{end}");
    assert_true(&end.to_string(), &nap);
    assert!(end["error"].as_str().unwrap().contains("retry --continue"), "the command that goes on is named: {end}");
}

#[test]
fn a_run_whose_supervisor_was_stopped_is_ended_before_it_reads_cancelled() {
    let bench = Bench::new();
    let (mut client, task, nap) = at_work(&bench);
    supervisor_pids(&bench).into_iter().for_each(|pid| send(pid, Signal::STOP));
    client.call("cancel_task", &json!({ "task_id": task, "mode": "immediate" }));
    assert_eq!(end_of(&mut client, &task)["status"], "cancelled");
    assert_eq!(processes(&nap), 0, "its program lives");
}
