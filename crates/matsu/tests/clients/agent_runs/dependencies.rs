//! Runs that begin later: after other tasks, or at a time.

use serde_json::{Value, json};

use super::worktrees::{git, repository};
use super::{Bench, SOON, end_of, reaches, start_with};
use crate::home::{kill, until};
use crate::stdio::Client;

fn bench() -> Bench {
    let bench = Bench::with("[agents]\nmode_max = \"workspace-write\"\n");
    repository(&bench.root);
    bench
}

/// A script that writes, after these tasks. What is behind `exit` is what Matsu adds to the message.
fn after(client: &mut Client, script: &str, ids: &[&str]) -> String {
    let more = json!({ "mode": "workspace-write", "depends_on": ids });
    start_with(client, &format!("{script}; cat \"$0\" > \"$PWD\"/said; exit"), more)
}

#[track_caller]
fn on_branch(bench: &Bench, end: &Value, file: &str) -> String {
    let branch = end["changes"]["branch"].as_str().unwrap_or_else(|| panic!("{end}"));
    git(&bench.root, &["show", &format!("{branch}:{file}")])
}

#[test]
fn a_task_starts_after_others_with_their_results_and_changes_also_when_the_daemon_was_killed() {
    let bench = bench();
    std::fs::write(bench.root.join("mine.txt"), "not committed\n").unwrap();
    let mut client = bench.client();
    let go_on = bench.home.signal("go_on");
    let wait = format!("while [ ! -e {} ]; do sleep 0.05; done", go_on.display());
    let write = |text: &str| json!({ "mode": "workspace-write", "session_id": text });
    let one = start_with(&mut client, &format!("{wait}; echo one >> mine.txt; echo found one"), write("one"));
    let two = start_with(&mut client, &format!("{wait}; echo two > b.txt; echo found two"), write("two"));
    let both = after(&mut client, "cat mine.txt b.txt > seen", &[&two, &one]);
    let last = after(&mut client, "cat seen > last", &[&both]);
    let said = reaches(&mut client, &both, "queued");
    assert!(
        said["status_message"].as_str().is_some_and(|text| text.contains(&one)),
        "it says what it waits for: {said}"
    );
    let (daemon, _) = bench.home.relayed();
    kill(daemon);
    client = bench.client();
    until("another daemon serves", SOON, || (bench.home.relayed().0 != daemon).then_some(()));
    std::fs::write(&go_on, "").unwrap();
    let end = end_of(&mut client, &both);
    assert_eq!(end["status"], "completed", "{end}");
    assert_eq!(on_branch(&bench, &end, "seen"), "not committed\none\ntwo\n");
    let said = on_branch(&bench, &end, "said");
    assert!(said.contains("found one") && said.contains("found two") && said.contains(&one), "{said}");
    assert_eq!(end["changes"]["files"], 2, "only what it changed itself: {end}");
    let end = end_of(&mut client, &last);
    assert_eq!(
        on_branch(&bench, &end, "last"),
        "not committed\none\ntwo\n",
        "what comes before what it waits for, too"
    );
}

#[test]
fn a_task_whose_dependency_fails_or_is_cancelled_fails_and_so_does_what_waits_for_it() {
    let bench = bench();
    let mut client = bench.client();
    let fails = start_with(&mut client, "exit 7", json!({}));
    let first = after(&mut client, "true", &[&fails]);
    let next = after(&mut client, "true", &[&first]);
    for (task, before) in [(&first, &fails), (&next, &first)] {
        let end = end_of(&mut client, task);
        assert_eq!((&end["status"], &end["error_code"]), (&json!("failed"), &json!("DEPENDENCY_FAILED")), "{end}");
        assert!(end["error"].as_str().unwrap().contains(before.as_str()), "{end}");
    }
    let long = start_with(&mut client, "sleep 100", json!({}));
    let waits = after(&mut client, "true", &[&long]);
    client.call("cancel_task", &json!({ "task_id": long, "mode": "immediate" }));
    let end = end_of(&mut client, &waits);
    assert!(end["error"].as_str().is_some_and(|error| error.contains("is cancelled")), "{end}");
}

#[test]
fn changes_that_conflict_stop_the_task_that_needs_both_and_the_files_are_named() {
    let bench = bench();
    let mut client = bench.client();
    let write = |name: &str| json!({ "mode": "workspace-write", "session_id": name });
    let one = start_with(&mut client, "echo one > a.txt", write("one"));
    let two = start_with(&mut client, "echo two > a.txt", write("two"));
    let both = after(&mut client, "true", &[&one, &two]);
    let end = end_of(&mut client, &both);
    assert_eq!(end["status"], "failed", "{end}");
    assert!(end["error"].as_str().is_some_and(|error| error.contains("conflicts in a.txt")), "{end}");
}

#[test]
fn unknown_tasks_and_times_that_cannot_be_are_refused_and_nothing_is_stored() {
    let bench = bench();
    let mut client = bench.client();
    let mut refused = |more: Value, expected: &str| {
        let mut wish = json!({ "cli_name": "script", "message": "true", "run_async": true });
        wish.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let said = client.call("use_agent", &wish);
        assert!(said.to_string().contains(expected), "{said}");
    };
    refused(json!({ "depends_on": ["task_none"] }), "TASK_NOT_FOUND");
    refused(json!({ "run_at": "tomorrow" }), "run_at must be");
    refused(json!({ "run_at": "2999-01-01T00:00:00Z" }), "at most 30 days");
    let said = client.call("get_task_status", &json!({}));
    assert!(!said.to_string().contains("\"queued\""), "{said}");
}

#[test]
fn a_task_starts_at_its_time_also_when_the_daemon_was_killed() {
    let bench = bench();
    let mut client = bench.client();
    let began = std::time::Instant::now();
    let later = start_with(&mut client, "echo late", json!({ "run_at": "4s" }));
    let far = bench.home.run(&["run", "script", "echo never", "--at", "2h", "--detach"]);
    let said = reaches(&mut client, &later, "queued");
    assert!(said["status_message"].as_str().is_some_and(|text| text.contains("starts at")), "{said}");
    let (daemon, _) = bench.home.relayed();
    kill(daemon);
    client = bench.client();
    let end = end_of(&mut client, &later);
    assert_eq!((&end["status"], &end["result"]), (&json!("completed"), &json!("late\n")), "{end}");
    assert!(began.elapsed().as_secs() >= 4, "{:?}", began.elapsed());
    let far = client.call("get_task_status", &json!({ "task_id": far["task_id"] }));
    assert_eq!(far["status"], "queued", "{far}");
}
