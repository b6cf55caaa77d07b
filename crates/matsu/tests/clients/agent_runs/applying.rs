//! What a person does with the changes of a run: apply, take back, discard, list. Each decision is stored and shown.

use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};

use super::receipts::write_agent;
use super::worktrees::{git, repository};
use super::{Bench, SOON, end_of, processes, start_with, unique_sleep};
use crate::home::{kill, until};
use crate::stdio::Client;

const WRITING: &str = "[agents]\nmode_max = \"workspace-write\"\n";

fn bench() -> (Bench, Client) {
    let bench = Bench::with(WRITING);
    repository(&bench.root);
    let client = bench.client();
    (bench, client)
}

fn write(client: &mut Client, script: &str) -> (String, Value) {
    let task = start_with(client, script, json!({ "mode": "workspace-write" }));
    let end = end_of(client, &task);
    (task, end)
}

fn read(root: &Path, name: &str) -> String {
    std::fs::read_to_string(root.join(name)).unwrap_or_else(|error| format!("{name}: {error}"))
}

#[track_caller]
fn refused(bench: &Bench, words: &[&str]) -> String {
    let output = bench.home.command(words).output().unwrap();
    assert!(!output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn branches(root: &Path) -> String {
    git(root, &["for-each-ref", "--format=%(refname)", "refs/heads/matsu"])
}

fn review(client: &mut Client, task: &str) -> Value {
    client.call("get_task_status", &json!({ "task_id": task }))["review"].clone()
}

#[test]
fn the_same_changes_are_applied_once_and_the_state_is_stored_and_shown() {
    let (bench, mut client) = bench();
    let (task, end) = write(&mut client, "# Fix greeting\necho more >> a.txt; echo new > new.txt");
    let shown = bench.home.command(&["diff", &task]).output().unwrap();
    assert!(String::from_utf8_lossy(&shown.stdout).contains("+more"), "{shown:?}");
    let branch = end["changes"]["branch"].as_str().unwrap();
    let listed = bench.home.run(&["branches"]);
    assert_eq!((&listed["items"][0]["branch"], &listed["items"][0]["task_id"]), (&json!(branch), &json!(task)));
    assert!(branch.starts_with("matsu/fix-greeting-"), "{branch}");

    let said = bench.home.run(&["apply", &task]);
    assert_eq!((&said["task"]["review"], &said["conflicts"]), (&json!("applied"), &json!([])), "{said}");
    assert!(refused(&bench, &["apply", &task]).contains("applied already"));
    assert_eq!((read(&bench.root, "a.txt").as_str(), read(&bench.root, "new.txt").as_str()), ("a\nmore\n", "new\n"));
    assert_eq!(review(&mut client, &task), "applied");
    assert_eq!(bench.home.run(&["status", &task])["review"], "applied");
    assert_eq!(bench.home.run(&["tasks"])["items"][0]["review"], "applied");
    assert_eq!(branches(&bench.root), "", "a branch that was applied is removed");
    assert_eq!(git(&bench.root, &["show", &format!("refs/matsu/{task}/head:new.txt")]), "new\n");
    assert_eq!(bench.home.run(&["branches"])["items"], json!([]));
    assert_eq!(bench.home.run(&["branches", "--all"])["items"][0]["state"], "applied");
    assert!(refused(&bench, &["discard", &task]).contains("--undo"));
}

#[test]
fn changes_that_are_in_the_tree_already_are_not_written_again() {
    let (bench, mut client) = bench();
    let (task, _) = write(&mut client, "echo more >> a.txt");
    std::fs::write(bench.root.join("a.txt"), "a\nmore\n").unwrap();
    assert!(refused(&bench, &["apply", &task]).contains("in your tree already"));
    assert_eq!(review(&mut client, &task), "applied");
}

#[test]
fn what_was_applied_is_taken_back_and_later_edits_stay() {
    let (bench, mut client) = bench();
    let lines: String = (1..=9).map(|line| format!("line {line}\n")).collect();
    std::fs::write(bench.root.join("a.txt"), &lines).unwrap();
    git(&bench.root, &["commit", "-qam", "lines"]);
    let (task, _) =
        write(&mut client, "sed -i 's/line 5/line five/' a.txt; echo new > new.txt; rm b.txt; chmod +x a.txt");
    assert!(refused(&bench, &["apply", &task, "--undo"]).contains("were not applied"));
    let mine = lines.replace("line 1\n", "line one\n");
    std::fs::write(bench.root.join("a.txt"), &mine).unwrap();
    let before = git(&bench.root, &["status", "--porcelain"]);
    bench.home.run(&["apply", &task]);
    let applied = read(&bench.root, "a.txt");
    assert!(applied.contains("line one\n") && applied.contains("line five\n"), "{applied}");
    std::fs::write(bench.root.join("a.txt"), applied.replace("line 9\n", "line nine\n")).unwrap();
    let said = bench.home.run(&["apply", &task, "--undo"]);
    assert_eq!(said["task"]["review"], Value::Null, "{said}");
    assert_eq!(read(&bench.root, "a.txt"), mine.replace("line 9\n", "line nine\n"));
    assert_eq!(git(&bench.root, &["status", "--porcelain"]), before, "no file more, no file less");
    assert_eq!(branches(&bench.root).lines().count(), 1, "the branch is there again");
    bench.home.run(&["apply", &task]);
    std::fs::write(bench.root.join("a.txt"), lines.replace("line 5\n", "line V\n")).unwrap();
    let said = refused(&bench, &["apply", &task, "--undo"]);
    assert!(said.contains("a.txt") && said.contains("changed since"), "{said}");
    assert!(read(&bench.root, "a.txt").contains("line V"), "nothing was written");
}

#[test]
fn a_conflict_offers_markers_and_writes_them_only_when_asked() {
    let (bench, mut client) = bench();
    let (task, _) = write(&mut client, "echo theirs > a.txt; echo new > new.txt");
    std::fs::write(bench.root.join("a.txt"), "mine\n").unwrap();
    let said = refused(&bench, &["apply", &task]);
    assert!(said.contains("a.txt") && said.contains("--merge"), "{said}");
    assert!(read(&bench.root, "a.txt") == "mine\n" && !bench.root.join("new.txt").exists());
    assert_eq!(review(&mut client, &task), Value::Null);
    let said = bench.home.run(&["apply", &task, "--merge"]);
    assert_eq!(said["conflicts"], json!(["a.txt"]), "{said}");
    let merged = read(&bench.root, "a.txt");
    assert!(merged.contains("<<<<<<<") && merged.contains("mine\n") && merged.contains("theirs\n"), "{merged}");
    assert_eq!(git(&bench.root, &["status", "--porcelain"]), " M a.txt\n?? new.txt\n", "the index is left alone");
    bench.home.run(&["apply", &task, "--undo"]);
    assert!(read(&bench.root, "a.txt") == "mine\n" && !bench.root.join("new.txt").exists());
}

/// The user's own filter, which git runs while it reads the tree, changes a file that was read before.
#[test]
fn a_file_that_changes_while_it_is_merged_stops_the_apply() {
    let (bench, mut client) = bench();
    let lines: String = (1..=9).map(|line| format!("line {line}\n")).collect();
    std::fs::write(bench.root.join("a.txt"), &lines).unwrap();
    std::fs::write(bench.root.join(".gitattributes"), "z.txt filter=busy\n").unwrap();
    git(&bench.root, &["add", "."]);
    git(&bench.root, &["commit", "-qm", "lines"]);
    let (task, _) = write(&mut client, "sed -i 's/line 1/line one/' a.txt; echo zz > z.txt; echo new > new.txt");
    let filter = format!("echo later >> '{}'; cat", bench.root.join("a.txt").display());
    git(&bench.root, &["config", "filter.busy.clean", &filter]);
    std::fs::write(bench.root.join("z.txt"), "zz\n").unwrap();
    let said = refused(&bench, &["apply", &task]);
    assert!(said.contains("changed at the same time"), "{said}");
    let now = read(&bench.root, "a.txt");
    assert!(now.starts_with(&lines) && now.contains("later"), "{now}");
    assert!(!bench.root.join("new.txt").exists(), "nothing was written");
    assert_eq!(review(&mut client, &task), Value::Null);
}

/// The user's own filter, which git runs while it writes, does not come to its end.
#[test]
fn an_apply_whose_daemon_is_killed_is_taken_back_whole() {
    let (bench, mut client) = bench();
    std::fs::write(bench.root.join(".gitattributes"), "z.txt filter=slow\n").unwrap();
    std::fs::write(bench.root.join("z.txt"), "z\n").unwrap();
    git(&bench.root, &["add", "."]);
    git(&bench.root, &["commit", "-qm", "more"]);
    let (task, _) = write(&mut client, "echo more >> a.txt; echo new > new.txt; rm b.txt; echo zz > z.txt");
    let nap = unique_sleep();
    git(&bench.root, &["config", "filter.slow.smudge", &format!("sleep {nap}; cat")]);
    let mut command = bench.home.command(&["apply", &task]);
    let mut applying = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    until("it is writing", SOON, || (processes(&nap) > 0).then_some(()));
    assert!(read(&bench.root, "a.txt") == "a\nmore\n" && bench.root.join("new.txt").exists(), "a part is written");
    kill(bench.home.relayed().0);
    assert!(!applying.wait().unwrap().success());
    until("its git has ended", SOON, || (processes(&nap) == 0).then_some(()));
    git(&bench.root, &["config", "filter.slow.smudge", "cat"]);
    let mut client = bench.client();
    until("everything is as it was", SOON, || {
        let is_back = git(&bench.root, &["status", "--porcelain"]).is_empty();
        (is_back && read(&bench.root, "z.txt") == "z\n").then_some(())
    });
    assert_eq!(review(&mut client, &task), Value::Null);
    bench.home.run(&["apply", &task]);
    assert_eq!(git(&bench.root, &["status", "--porcelain"]), " M a.txt\n D b.txt\n M z.txt\n?? new.txt\n");
    bench.home.run(&["apply", &task, "--undo"]);
    assert_eq!(git(&bench.root, &["status", "--porcelain"]), "");
}

#[test]
fn two_applies_at_once_write_once() {
    let (bench, mut client) = bench();
    let (task, _) = write(&mut client, "echo more >> a.txt");
    let mut started: Vec<_> = (0..3)
        .map(|_| {
            let mut command = bench.home.command(&["apply", &task]);
            command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
        })
        .collect();
    let good = started.iter_mut().filter_map(|child| child.wait().ok()).filter(|status| status.success()).count();
    assert_eq!((good, read(&bench.root, "a.txt").as_str()), (1, "a\nmore\n"));
}

#[test]
fn discarded_changes_lose_their_branch_and_can_still_be_applied() {
    let (bench, mut client) = bench();
    let (task, end) = write(&mut client, "echo more >> a.txt");
    let branch = end["changes"]["branch"].as_str().unwrap();
    git(&bench.root, &["checkout", "-q", branch]);
    let said = refused(&bench, &["discard", &task]);
    assert!(said.contains("checked out"), "{said}");
    git(&bench.root, &["checkout", "-q", "main"]);
    let said = bench.home.run(&["discard", &task]);
    assert_eq!(said["task"]["review"], "discarded", "{said}");
    assert_eq!((branches(&bench.root).as_str(), read(&bench.root, "a.txt").as_str()), ("", "a\n"));
    assert!(refused(&bench, &["discard", &task]).contains("discarded already"));
    bench.home.run(&["apply", &task]);
    assert_eq!(read(&bench.root, "a.txt"), "a\nmore\n");
    let (nothing, _) = write(&mut client, "cat a.txt");
    assert!(refused(&bench, &["discard", &nothing]).contains("changed no file"));
}

#[test]
fn a_comment_goes_back_into_the_same_conversation_and_branch() {
    let (bench, mut client) = bench();
    let (task, first) = write(&mut client, "echo one > one.txt");
    let shown = bench.home.command(&["review", &task]).output().unwrap();
    let (patch, hint) = (String::from_utf8_lossy(&shown.stdout), String::from_utf8_lossy(&shown.stderr));
    assert!(patch.contains("+one") && hint.contains("--send-back"), "{patch}{hint}");
    assert!(refused(&bench, &["review", &task, "--send-back", " "]).contains("empty"));
    let next = bench.home.run(&["review", &task, "--send-back", "cat one.txt; echo two > two.txt"]);
    let next = next["task_id"].as_str().unwrap_or_else(|| panic!("{next}")).to_owned();
    let end = end_of(&mut client, &next);
    assert_eq!((&end["status"], &end["result"]), (&json!("completed"), &json!("one\n")), "{end}");
    assert_eq!(
        (&end["changes"]["branch"], &end["changes"]["files"]),
        (&first["changes"]["branch"], &json!(2)),
        "{end}"
    );
    assert_eq!(
        (end["session_id"].clone(), review(&mut client, &task)),
        (first["session_id"].clone(), json!("sent_back"))
    );
    assert_eq!(bench.home.run(&["status", &task])["next_task_id"], next.as_str());
    bench.home.run(&["apply", &next]);
    assert_eq!((read(&bench.root, "one.txt").as_str(), read(&bench.root, "two.txt").as_str()), ("one\n", "two\n"));
    assert!(refused(&bench, &["review", &next, "--send-back", "true"]).contains("applied"));
}

#[test]
fn changes_that_conflict_go_back_to_their_agent_which_resolves_them_on_the_tree_as_it_is() {
    let bench = Bench::with(WRITING);
    repository(&bench.root);
    let resolve = "grep -q '^=======' a.txt || exit 1; sed -i '/^[<=>]\\{7\\}/d' a.txt; cat mine.txt";
    write_agent(&bench, "solver", &["echo the run > a.txt; echo new > new.txt", resolve]);
    let mut client = bench.client();
    let task = start_with(&mut client, "Greet", json!({ "cli_name": "solver", "mode": "workspace-write" }));
    let end = end_of(&mut client, &task);
    assert_eq!(end["status"], "completed", "{end}");
    let (branch, root) = (end["changes"]["branch"].as_str().unwrap(), &bench.root);
    std::fs::write(root.join("a.txt"), "the user\n").unwrap();
    std::fs::write(root.join("mine.txt"), "mine\n").unwrap();
    assert!(refused(&bench, &["apply", &task]).contains("--send-back"));
    let said = bench.home.run(&["apply", &task, "--send-back"]);
    assert_eq!(said["conflicts"], json!(["a.txt"]), "{said}");
    let next = said["sent_back"]["task_id"].as_str().unwrap().to_owned();
    assert_eq!(review(&mut client, &task), "sent_back");
    let end = end_of(&mut client, &next);
    assert_eq!((&end["status"], &end["result"]), (&json!("completed"), &json!("mine\n")), "{end}");
    assert_eq!(end["changes"]["branch"], branch, "the same branch: {end}");
    assert_eq!(read(root, "a.txt"), "the user\n", "nothing was written yet");
    let said = bench.home.run(&["apply", &next, "--send-back"]);
    assert_eq!(said["task"]["review"], "applied", "without a conflict it is applied: {said}");
    assert_eq!((read(root, "a.txt").as_str(), read(root, "new.txt").as_str()), ("the user\nthe run\n", "new\n"));
    assert_eq!(read(root, "mine.txt"), "mine\n");
}
