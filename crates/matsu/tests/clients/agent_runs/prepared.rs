//! Trees that are prepared as the repository's own file says, before a run and before its check.

use serde_json::{Value, json};

use super::receipts::write_agent;
use super::worktrees::{git, repository};
use super::{Bench, end_of, start_with};
use crate::stdio::Client;

fn bench(file: &str) -> (Bench, Client) {
    let bench = project(file);
    let client = bench.client();
    (bench, client)
}

fn project(file: &str) -> Bench {
    let bench = Bench::with("[agents]\nmode_max = \"workspace-write\"\n");
    repository(&bench.root);
    std::fs::write(bench.root.join(".gitignore"), ".env\nkeys/\nnode_modules/\nbuilt\n").unwrap();
    std::fs::write(bench.root.join("package-lock.json"), "{}\n").unwrap();
    std::fs::write(bench.root.join(".matsu.toml"), file).unwrap();
    git(&bench.root, &["add", "."]);
    git(&bench.root, &["commit", "-qm", "a project"]);
    bench.home.run(&["allow", bench.root.to_str().unwrap(), "--yes"]);
    bench
}

#[track_caller]
fn ended(client: &mut Client, script: &str, more: Value) -> Value {
    let mut wish = json!({ "mode": "workspace-write" });
    wish.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let task = start_with(client, script, wish);
    end_of(client, &task)
}

#[test]
fn ignored_files_are_copied_and_setup_runs_for_the_run_and_for_its_check() {
    let file = "[worktree]\ncopy = [\".env\", \"keys\", \"missing\"]\nsetup = \"cat .env && mkdir node_modules && \
                date +%N > node_modules/made && echo built > built\"\n\
                [check]\ncommand = \"cat .env keys/a built && ! cmp made.txt node_modules/made\"\n";
    let (bench, mut client) = bench(file);
    std::fs::write(bench.root.join(".env"), "secret\n").unwrap();
    std::fs::create_dir(bench.root.join("keys")).unwrap();
    std::fs::write(bench.root.join("keys/a"), "key\n").unwrap();
    // What leads out of the tree is not followed.
    std::os::unix::fs::symlink(bench.home.data_dir().join("token"), bench.root.join("keys/link")).unwrap();
    let script = "cat .env keys/a built; cat keys/link; git status --short; cp node_modules/made made.txt";
    let end = ended(&mut client, script, json!({}));
    assert_eq!((&end["status"], &end["result"]), (&json!("completed"), &json!("secret\nkey\nbuilt\n")), "{end}");
    let changes = &end["changes"];
    assert_eq!((&changes["files"], &changes["ignored"]), (&json!(1), &Value::Null), "{end}");
}

#[test]
fn what_setup_made_is_used_again_while_the_lock_files_are_the_same() {
    let file = "[worktree]\nsetup = \"mkdir node_modules && date +%N > node_modules/made\"\n\
                [check]\ncommand = \"cmp made.txt node_modules/made\"\n";
    let (bench, mut client) = bench(file);
    let script = "cat node_modules/made; cp node_modules/made made.txt; echo mine > node_modules/made";
    let first = ended(&mut client, script, json!({}));
    assert_eq!(first["status"], "completed", "the check has the same copy: {first}");
    let second = ended(&mut client, script, json!({}));
    assert_eq!(second["result"], first["result"], "a run cannot change what is kept: {second}");
    std::fs::write(bench.root.join("package-lock.json"), "{ }\n").unwrap();
    let third = ended(&mut client, script, json!({}));
    assert_eq!(third["status"], "completed", "{third}");
    assert_ne!(third["result"], first["result"], "another lock file is another setup");
}

#[test]
fn a_setup_that_fails_says_so_with_its_output_and_nothing_is_started() {
    let (bench, mut client) = bench("[worktree]\nsetup = \"echo no network here; exit 3\"\n");
    let end = ended(&mut client, "echo never > never.txt", json!({}));
    assert_eq!((&end["status"], &end["error_code"]), (&json!("failed"), &json!("AGENT_START_FAILED")), "{end}");
    let error = end["error"].as_str().unwrap();
    assert!(
        error.contains("worktree.setup") && error.contains("exit code 3") && error.contains("no network here"),
        "{end}"
    );
    assert_eq!(git(&bench.root, &["for-each-ref", "refs/heads/matsu", "refs/matsu"]), "", "nothing is left");
}

#[test]
fn a_run_can_begin_with_the_last_commit_alone() {
    let (bench, mut client) = bench("[worktree]\nbase = \"HEAD\"\n");
    std::fs::write(bench.root.join("a.txt"), "not committed\n").unwrap();
    let wish = json!({ "cli_name": "script", "message": "cat a.txt; echo b > b.txt", "mode": "workspace-write", "run_async": true });
    let said = client.call("use_agent", &wish);
    assert!(said["message"].as_str().unwrap().contains("starts from your last commit"), "{said}");
    let end = end_of(&mut client, said["task_id"].as_str().unwrap());
    assert_eq!((&end["status"], &end["result"]), (&json!("completed"), &json!("a\n")), "{end}");
    assert!(end["changes"]["not_in_base"][0].as_str().unwrap().contains("uncommitted"), "{end}");
}

#[test]
fn the_repository_sets_what_runs_leave_open_after_a_person_has_allowed_it() {
    let file = "[agents]\nretries = 1\nfallback = [\"second\"]\nbudget = { tokens = 1000 }\n";
    let bench = project(file);
    write_agent(&bench, "first", &["echo bad > a.txt", "echo worse > a.txt"]);
    write_agent(&bench, "second", &["echo good > a.txt"]);
    let mut client = bench.client();
    let mut work = |more: Value| ended(&mut client, "Make it good", more);
    let check = json!("grep -q good a.txt");
    let end = work(json!({ "cli_name": "first", "check": check }));
    assert_eq!((&end["status"], &end["receipt"]["agent"]), (&json!("completed"), &json!("second")), "{end}");
    assert_eq!(end["receipt"]["rounds"], 3, "one retry, and the other agent: {end}");
    // What the caller says counts.
    let end = work(json!({ "cli_name": "first", "check": check, "fallback": [], "retries": 0 }));
    assert_eq!((&end["status"], &end["receipt"]["rounds"]), (&json!("failed"), &json!(1)), "{end}");
    std::fs::write(bench.root.join(".matsu.toml"), format!("{file}timeout = 60\n")).unwrap();
    let mut client = bench.client();
    let task = start_with(&mut client, "true", json!({ "mode": "workspace-write" }));
    let said = super::reaches(&mut client, &task, "input_required");
    assert!(said["question"]["text"].as_str().unwrap().contains("matsu allow"), "{said}");
    client.call("cancel_task", &json!({ "task_id": task, "mode": "immediate" }));
}
