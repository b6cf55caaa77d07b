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

/// Every agent adds its own line at the same place and a file of its own. Sent back, it takes the others' lines from the
/// commit that its message names and adds its own again.
#[test]
fn overlapping_branches_become_one_green_branch_although_the_daemon_is_killed() {
    let bench = bench();
    let script = "prompt=$(cat); own=$(ls own-* 2>/dev/null | head -1)\n\
                  if [ -z \"$own\" ]; then id=$(date +%N)$$; echo $id > own-$id; echo $id > a.txt; exit; fi\n\
                  tip=$(printf '%s' \"$prompt\" | grep -o 'commit [0-9a-f]\\{40\\}' | head -1 | cut -d' ' -f2)\n\
                  git show $tip:a.txt > a.txt; cat $own >> a.txt\n";
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
