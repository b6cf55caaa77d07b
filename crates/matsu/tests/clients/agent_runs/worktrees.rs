//! Isolation: runs that write in one git tree at once, and the user's own work beside them.

use std::path::Path;
use std::process::Command;

use rustix::process::Signal;
use serde_json::{Value, json};

use super::{Bench, SOON, end_of, start_with};
use crate::home::{send, until};

pub fn git(directory: &Path, args: &[&str]) -> String {
    let output = Command::new("git").current_dir(directory).args(args).output().unwrap();
    assert!(output.status.success(), "{args:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

pub fn repository(root: &Path) {
    begin(root, |args| git(root, args));
}

/// A first commit, by this git.
pub fn begin(root: &Path, git: impl Fn(&[&str]) -> String) {
    git(&["init", "-q", "-b", "main"]);
    git(&["config", "user.name", "Test"]);
    git(&["config", "user.email", "test@localhost"]);
    for (name, text) in [("a.txt", "a\n"), ("b.txt", "b\n")] {
        std::fs::write(root.join(name), text).unwrap();
    }
    git(&["add", "."]);
    git(&["commit", "-q", "-m", "begin"]);
}

#[test]
fn two_agents_write_in_one_tree_at_once_and_both_patches_can_be_applied() {
    let bench = Bench::with("[agents]\nmode_max = \"workspace-write\"\n");
    repository(&bench.root);
    std::fs::write(bench.root.join("mine.txt"), "not committed\n").unwrap();
    std::fs::write(bench.root.join("b.txt"), "b, and mine\n").unwrap();
    let mut client = bench.client();
    let write = |client: &mut crate::stdio::Client, script: &str| {
        start_with(client, script, json!({ "mode": "workspace-write" }))
    };
    let one = write(&mut client, "sleep 1; echo one >> a.txt; echo new > one.txt; ls");
    let two = write(&mut client, "sleep 1; echo two > two.txt; git add two.txt; git commit -qm two; cat a.txt");
    let (one_end, two_end) = (end_of(&mut client, &one), end_of(&mut client, &two));
    for (end, files) in [(&one_end, 2), (&two_end, 1)] {
        assert_eq!(end["status"], "completed", "{end}");
        let changes = &end["changes"];
        assert_eq!(
            (changes["files"].as_u64(), changes["uncommitted_at_start"].as_u64()),
            (Some(files), Some(2)),
            "{end}"
        );
        let begun = format!("{}^", changes["base"].as_str().unwrap());
        assert_eq!(git(&bench.root, &["rev-parse", &begun]), git(&bench.root, &["rev-parse", "main"]), "{end}");
        assert_eq!(changes["started_from"], "your working tree, with 2 uncommitted files", "{end}");
        let branch = changes["branch"].as_str().unwrap();
        assert!(git(&bench.root, &["branch", "--list", branch]).contains(branch));
    }
    assert_ne!(one_end["changes"]["branch"], two_end["changes"]["branch"]);
    let listed = one_end["result"].as_str().unwrap();
    assert!(listed.contains("mine.txt"), "what is not committed is there: {one_end}");
    assert_eq!(git(&bench.root, &["status", "--porcelain"]), " M b.txt\n?? mine.txt\n", "the user's tree is as it was");
    assert_eq!(std::fs::read_dir(bench.home.data_dir().join("worktrees")).unwrap().count(), 0);

    for task in [&one, &two] {
        let said: Value = bench.home.run(&["apply", task]);
        assert_eq!(said["ok"], true, "{said}");
    }
    let read = |name: &str| std::fs::read_to_string(bench.root.join(name)).unwrap();
    assert_eq!(
        (read("a.txt").as_str(), read("one.txt").as_str(), read("two.txt").as_str()),
        ("a\none\n", "new\n", "two\n")
    );
    assert_eq!((read("mine.txt").as_str(), read("b.txt").as_str()), ("not committed\n", "b, and mine\n"));
}

#[test]
fn a_run_whose_folder_was_removed_fails_and_deletes_nothing() {
    let bench = Bench::with("[agents]\nmode_max = \"workspace-write\"\n");
    repository(&bench.root);
    let (mut client, go_on) = (bench.client(), bench.home.signal("go_on"));
    let script = format!("echo new > new.txt; until [ -e {} ]; do sleep 0.05; done; echo done", go_on.display());
    let task = start_with(&mut client, &script, json!({ "mode": "workspace-write" }));
    let trees = bench.home.data_dir().join("worktrees");
    let tree = until("it has written", SOON, || {
        let mut entries = std::fs::read_dir(&trees).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
        entries.find(|path| path.join("new.txt").exists())
    });
    std::fs::remove_dir_all(tree).unwrap();
    std::fs::write(go_on, "").unwrap();
    let end = end_of(&mut client, &task);
    assert_eq!(end["status"], "failed", "{end}");
    assert!(end["error"].as_str().unwrap().contains("was removed or emptied while it ran"), "{end}");
    assert!(end["changes"].is_null() && end["left_work"].is_null(), "{end}");
    assert_eq!(git(&bench.root, &["status", "--porcelain"]), "");
}

#[test]
fn several_agents_that_write_must_be_isolated() {
    let bench = Bench::with("[agents]\nmode_max = \"workspace-write\"\n");
    let mut client = bench.client();
    let arguments = json!({ "message": "echo", "cli_names": ["script", "other"], "mode": "workspace-write" });
    let said = client.call("use_agents", &arguments);
    assert_eq!(said["error_code"], "INVALID_PARAMS", "{said}");
    assert!(said["error"].as_str().unwrap().contains("worktree"), "{said}");
}

/// The files that a run changed, as `git diff --name-status` shows them.
fn changed(root: &Path, end: &Value) -> String {
    let commit = |name: &str| end["changes"][name].as_str().unwrap_or_else(|| panic!("{end}")).to_owned();
    git(root, &["diff", "--name-status", "--no-renames", &commit("base"), &commit("branch")])
}

#[test]
fn files_count_as_they_lie_there_whatever_a_run_does_to_its_own_git() {
    let bench = Bench::with("[agents]\nmode_max = \"workspace-write\"\n");
    repository(&bench.root);
    let mut client = bench.client();
    let cases = [
        ("git update-index --skip-worktree a.txt; echo new >> a.txt", "M\ta.txt\n"),
        ("git update-index --assume-unchanged a.txt; echo new >> a.txt", "M\ta.txt\n"),
        ("git config core.fileMode false; chmod +x a.txt", "M\ta.txt\n"),
        ("git config core.ignoreCase true; echo other > A.TXT", "A\tA.TXT\n"),
        ("echo '*' > .git/info/exclude; git config core.worktree /tmp; echo new > b.txt", "M\tb.txt\n"),
        (
            "git rm -q --cached a.txt; echo a.txt > .gitignore; git add .gitignore; git commit -qm out; echo x >> a.txt",
            "A\t.gitignore\nD\ta.txt\n",
        ),
        ("rm -rf .git; echo new > b.txt", "M\tb.txt\n"),
        ("echo rubbish > .git/index; echo new > b.txt", "M\tb.txt\n"),
    ];
    for (script, expected) in cases {
        let task = start_with(&mut client, script, json!({ "mode": "workspace-write" }));
        let end = end_of(&mut client, &task);
        assert_eq!(end["status"], "completed", "{script}: {end}");
        assert_eq!(changed(&bench.root, &end), expected, "{script}: {end}");
    }
}

#[test]
fn a_daemon_killed_when_a_run_is_taken_over_changes_nothing_in_the_result() {
    let bench = Bench::with("[agents]\nmode_max = \"workspace-write\"\n");
    repository(&bench.root);
    std::fs::create_dir(bench.root.join("many")).unwrap();
    for number in 0..3_000 {
        std::fs::write(bench.root.join(format!("many/{number}")), "text\n").unwrap();
    }
    git(&bench.root, &["add", "."]);
    git(&bench.root, &["commit", "--quiet", "-m", "many"]);
    for signal in [Signal::KILL, Signal::TERM] {
        let mut client = bench.client();
        let wish = json!({ "mode": "workspace-write", "check": "test -f many/1" });
        let task = start_with(&mut client, "echo new >> many/1", wish);
        let head = bench.root.join(format!(".git/refs/matsu/{task}/head"));
        until("the commit is taken over", SOON, || head.exists().then_some(()));
        send(bench.home.relayed().0, signal);
        // A client whose daemon a person has ended does not start another. One that comes afterwards does, although
        // it may find the old one still ending.
        let mut client = if signal == Signal::TERM { bench.client() } else { client };
        let end = end_of(&mut client, &task);
        assert_eq!(end["status"], "completed", "{end}");
        assert_eq!(changed(&bench.root, &end), "M\tmany/1\n", "{end}");
    }
}
