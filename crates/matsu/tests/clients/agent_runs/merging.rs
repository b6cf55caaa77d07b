//! The branches of many runs into one that passes its check.

use std::time::Instant;

use serde_json::{Value, json};

use super::worktrees::{git, repository};
use super::{Bench, SOON, end_of, program, start_with};
use crate::home::{kill, until};

fn bench() -> Bench {
    let bench = Bench::with("[agents]\nmode_max = \"workspace-write\"\n");
    repository(&bench.root);
    bench
}

/// An agent whose conversation can be resumed, and which leaves no files of its own.
fn write_resumed(bench: &Bench, name: &str, script: &str) {
    let path = bench.home.path(name);
    program(&path, script);
    let definition = format!(
        "name = \"{name}\"\ncommand = \"{}\"\nprompt = \"stdin\"\noutput = \"text\"\n\
         [session]\nchoose = true\nstart = {{ args = [\"new\", \"{{session}}\"] }}\n\
         resume = {{ args = [\"resume\", \"{{session}}\"] }}\n",
        path.display()
    );
    std::fs::write(bench.home.path(".config/matsu/agents").join(format!("{name}.toml")), definition).unwrap();
}

/// How many branches overlap; `MATSU_TEST_MERGES` sets another number.
fn count() -> usize {
    std::env::var("MATSU_TEST_MERGES").ok().and_then(|text| text.parse().ok()).unwrap_or(5)
}

fn states(said: &Value) -> Vec<String> {
    let tasks = said["merge"]["tasks"].as_array().unwrap_or_else(|| panic!("{said}"));
    tasks.iter().map(|entry| entry["state"].as_str().unwrap().to_owned()).collect()
}

/// Every agent adds its own line at the same place and a file of its own. Sent back, it keeps what both sides have.
#[test]
fn overlapping_branches_become_one_green_branch_although_the_daemon_is_killed() {
    let bench = bench();
    let script = "cat > /dev/null\n\
                  if ! ls own-* > /dev/null 2>&1; then id=$(date +%N)$$; echo $id > own-$id; echo $id > a.txt; exit; fi\n\
                  grep -q '^=======' a.txt || exit 1; sed -i '/^[<=>]\\{7\\}/d' a.txt\n";
    write_resumed(&bench, "adder", script);
    let mut client = bench.client();
    let head = git(&bench.root, &["rev-parse", "HEAD"]);
    let wish = json!({ "cli_name": "adder", "mode": "workspace-write", "check": "for f in own-*; do grep -qx \"$(cat $f)\" a.txt || exit 1; done" });
    let tasks: Vec<String> = (0..count()).map(|_| start_with(&mut client, "Add your line", wish.clone())).collect();
    for task in &tasks {
        let end = end_of(&mut client, task);
        assert_eq!(end["status"], "completed", "{end}");
    }
    let began = Instant::now();
    let mut args = vec!["merge", "--detach", "--fix", "5"];
    args.extend(tasks.iter().map(String::as_str));
    let merge = bench.home.run(&args)["task_id"].as_str().unwrap().to_owned();
    let path = format!("/tasks/{merge}/merge");
    until("the first ones are merged", SOON, || {
        let said = bench.home.relayed().1.rest("GET", &path, &Value::Null).json();
        said["merge"]["tasks"].as_array().filter(|tasks| tasks.iter().any(|entry| entry["state"] == "merged")).map(drop)
    });
    let (daemon, _) = bench.home.relayed();
    kill(daemon);
    client = bench.client();
    until("another daemon serves", SOON, || (bench.home.relayed().0 != daemon).then_some(()));
    let end = end_of(&mut client, &merge);
    assert_eq!(end["status"], "completed", "{end}");
    let said = bench.home.relayed().1.rest("GET", &path, &Value::Null).json();
    assert!(states(&said).iter().all(|state| state == "merged"), "{said}");
    let sent_back: u64 =
        said["merge"]["tasks"].as_array().unwrap().iter().filter_map(|entry| entry["sent_back"].as_u64()).sum();
    eprintln!("{} branches, {sent_back} send-backs, {:.1} s", tasks.len(), began.elapsed().as_secs_f64());
    let branch = said["merge"]["branch"].as_str().unwrap();
    let lines = git(&bench.root, &["show", &format!("{branch}:a.txt")]);
    let files = git(&bench.root, &["ls-tree", "--name-only", branch]);
    let own: Vec<&str> = files.lines().filter_map(|name| name.strip_prefix("own-")).collect();
    assert_eq!(own.len(), tasks.len(), "{files}");
    assert!(own.iter().all(|id| lines.lines().any(|line| line == *id)), "every line is there: {lines}");
    assert!(sent_back >= tasks.len() as u64 - 1, "they overlap: {said}");
    assert_eq!(git(&bench.root, &["rev-parse", "HEAD"]), head, "the user's own branch stays");
    assert_eq!(git(&bench.root, &["status", "--porcelain"]), "", "the user's tree stays");
}

#[test]
fn what_conflicts_or_fails_is_left_out_and_named_and_a_checked_out_branch_is_refused() {
    let bench = bench();
    std::fs::write(bench.root.join("mine.txt"), "not committed\n").unwrap();
    let mut client = bench.client();
    let writing = json!({ "mode": "workspace-write" });
    let mut ended = |script: &str| {
        let task = start_with(&mut client, script, writing.clone());
        assert_eq!(end_of(&mut client, &task)["status"], "completed");
        task
    };
    let one = ended("echo one > a.txt");
    let other = ended("echo other > a.txt");
    let red = ended("echo red > red.txt");
    let free = ended("echo free > free.txt");
    let nothing = ended("true");
    let said = client.call("get_task_status", &json!({ "task_id": one, "diff": {} }));
    assert_eq!(said["diff"]["files"], json!([{ "path": "a.txt", "added": 1, "removed": 1 }]), "{said}");
    let said = client.call("get_task_status", &json!({ "task_id": one, "diff": { "path": "a.txt" } }));
    assert!(said["diff"]["patch"].as_str().is_some_and(|patch| patch.ends_with("-a\n+one\n")), "{said}");
    let said = client.call("get_task_status", &json!({ "task_id": one, "diff": { "path": "b.txt" } }));
    assert!(said["error"].as_str().is_some_and(|why| why.contains("did not change b.txt")), "{said}");
    let run = |args: &[&str]| {
        let output = bench.home.command(&[&["--json"], args].concat()).output().unwrap();
        let said: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let words = [output.stdout, output.stderr].concat();
        (output.status.code(), said, String::from_utf8_lossy(&words).into_owned())
    };
    let (code, said, _) = run(&["merge", &one, &other, &red, &free, "--check", "! test -e red.txt"]);
    assert_eq!(
        (code, states(&said)),
        (Some(3), ["merged", "conflict", "check_failed", "merged"].map(str::to_owned).to_vec()),
        "{said}"
    );
    assert_eq!(said["task"]["status"], "failed", "{said}");
    let branch = said["merge"]["branch"].as_str().unwrap();
    assert_eq!(
        git(&bench.root, &["ls-tree", "--name-only", branch])
            .lines()
            .filter(|name| ["red.txt", "mine.txt"].contains(name))
            .count(),
        0
    );
    assert_eq!(
        git(&bench.root, &["log", "--format=%s", branch]).lines().filter(|line| line.contains("not committed")).count(),
        0
    );
    assert_eq!(git(&bench.root, &["show", &format!("{branch}:a.txt")]), "one\n");
    let (code, said, _) = run(&["merge", &one, "--into", branch]);
    assert_eq!((code, states(&said)), (Some(0), vec!["merged".to_owned()]), "it is there already: {said}");
    for (args, expected) in [
        (vec!["merge", &one, "--into", "main"], "checked out"),
        (vec!["merge", &one, "--into", "a..b"], "cannot be the name of a branch"),
        (vec!["merge", &nothing], "changed no file"),
        (vec!["merge", "task_00000000000000000000000000"], "task_0000"),
        (vec!["merge", &one, "--fix", "9"], "at most 5"),
    ] {
        let (code, _, words) = run(&args);
        assert!(code != Some(0) && words.contains(expected), "{args:?}: {words}");
    }
}

fn numbers(bench: &Bench) {
    let lines: String = (1..=100).map(|line| format!("{line}\n")).collect();
    std::fs::write(bench.root.join("n"), lines).unwrap();
    git(&bench.root, &["add", "n"]);
    git(&bench.root, &["commit", "-qm", "numbers"]);
}

/// The first round changes lines of `n`; when a conflict comes back, the second script runs.
fn write_fixer(bench: &Bench, name: &str, first: &str, second: &str) {
    write_resumed(bench, name, &format!("cat > /dev/null\nif [ $1 = new ]; then {first}; else {second}; fi"));
}

#[test]
fn a_conflict_that_its_agent_leaves_stays_a_conflict_and_the_work_of_the_others_stays() {
    let bench = bench();
    numbers(&bench);
    for (name, first, second) in [
        ("ten", "sed -i 's/^10$/ten/' n", "true"),
        ("twenty", "sed -i 's/^20$/twenty/' n", "true"),
        ("idle", "sed -i 's/^10$/TEN/; s/^50$/fifty/' n", "true"),
        ("keeper", "sed -i 's/^10$/Ten/; s/^70$/seventy/' n", "sed -i '/^<<<<<<</,/^=======/d; /^>>>>>>>/d' n"),
        ("remover", "rm n", "echo looked"),
    ] {
        write_fixer(&bench, name, first, second);
    }
    let mut client = bench.client();
    let ended = |agent: &str| {
        let task = start_with(&mut client, "Count", json!({ "cli_name": agent, "mode": "workspace-write" }));
        assert_eq!(end_of(&mut client, &task)["status"], "completed");
        task
    };
    let tasks = ["ten", "twenty", "idle", "keeper", "remover"].map(ended);
    let mut args = vec!["--json", "merge", "--fix", "2", "--into", "combo"];
    args.extend(tasks.iter().map(String::as_str));
    let output = bench.home.command(&args).output().unwrap();
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    let expected = ["merged", "merged", "conflict", "merged", "conflict"].map(str::to_owned);
    assert_eq!((output.status.code(), states(&said)), (Some(3), expected.to_vec()), "{said}");
    let entry = |at: usize| &said["merge"]["tasks"][at];
    assert!(entry(2)["why"].as_str().is_some_and(|why| why.ends_with("left conflict markers in n")), "{said}");
    assert!(entry(4)["why"].as_str().is_some_and(|why| why.contains("changed nothing")), "{said}");
    assert_eq!((&entry(2)["sent_back"], &entry(3)["sent_back"]), (&json!(2), &json!(1)), "{said}");
    let lines = git(&bench.root, &["show", "combo:n"]);
    let lines: Vec<&str> = lines.lines().collect();
    assert_eq!((lines.len(), lines[9], lines[19], lines[49], lines[69]), (100, "Ten", "twenty", "50", "seventy"));
    assert_eq!(git(&bench.root, &["status", "--porcelain"]), "");
}

/// Its own work and that of the others are both in the tree that it gets; what was not committed is not in the branch.
#[test]
fn a_failed_check_goes_back_with_the_merged_tree_and_without_uncommitted_files() {
    let bench = bench();
    numbers(&bench);
    std::fs::write(bench.root.join("mine.txt"), "not committed\n").unwrap();
    write_fixer(&bench, "one", "echo one > one", "true");
    write_fixer(&bench, "two", "echo two > two", "test -e one && cat one >> two");
    let mut client = bench.client();
    let mut ended = |agent: &str| {
        let task = start_with(&mut client, "Count", json!({ "cli_name": agent, "mode": "workspace-write" }));
        assert_eq!(end_of(&mut client, &task)["status"], "completed");
        task
    };
    let (one, two) = (ended("one"), ended("two"));
    let check = "! test -e two || grep -q one two";
    let said = bench.home.run(&["merge", &one, &two, "--fix", "1", "--check", check, "--into", "both"]);
    assert_eq!(states(&said), ["merged", "merged"], "{said}");
    assert_eq!(git(&bench.root, &["show", "both:two"]), "two\none\n");
    assert_eq!(
        git(&bench.root, &["ls-tree", "--name-only", "both"]).lines().filter(|name| *name == "mine.txt").count(),
        0
    );
    let log = git(&bench.root, &["log", "--format=%s", "both"]);
    assert!(!log.contains("Uncommitted"), "{log}");
}

#[test]
fn the_status_of_a_merge_is_its_table_and_says_whether_anything_was_checked() {
    let bench = bench();
    let mut client = bench.client();
    let mut ended = |script: &str| {
        let task = start_with(&mut client, script, json!({ "mode": "workspace-write" }));
        assert_eq!(end_of(&mut client, &task)["status"], "completed");
        task
    };
    let (one, two) = (ended("echo one > one"), ended("echo two > two"));
    let said = |args: &[&str]| {
        let output = bench.home.command(args).output().unwrap();
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
    };
    let unchecked = bench.home.run(&["merge", &one, "--detach"])["task_id"].as_str().unwrap().to_owned();
    let checked = bench.home.run(&["merge", &one, &two, "--check", "true", "--detach"]);
    let checked = checked["task_id"].as_str().unwrap().to_owned();
    end_of(&mut client, &unchecked);
    end_of(&mut client, &checked);
    let words = said(&["status", &unchecked]);
    assert!(words.contains("SENT BACK") && words.contains(&one) && !words.contains("\"has_branch\""), "{words}");
    assert!(words.contains("Nothing was checked"), "{words}");
    let words = said(&["status", &checked]);
    assert!(words.contains("passed its check: true") && !words.contains("Nothing was checked"), "{words}");
    let tasks = bench.home.run(&["tasks"]);
    let checks = tasks["items"].as_array().unwrap().iter().filter(|task| task["parent_id"] == checked.as_str());
    let checks: Vec<&str> = checks.filter_map(|task| task["task_id"].as_str()).collect();
    assert_eq!(checks.len(), 2, "{tasks}");
    for check in checks {
        let words = said(&["status", check]);
        assert!(words.contains("Only checked here") && !words.contains("Apply it"), "{words}");
    }
}
