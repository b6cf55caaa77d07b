//! What a person and a client rely on when they read that a check passed: which files were protected, whose run is
//! meant, what it cost, where it worked, and that the terminal says all of it.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use super::costs::{usage, write_streaming};
use super::receipts::{start_checked, write_agent};
use super::worktrees::{git, repository};
use super::{Bench, end_of, processes, reaches, start_with, unique_sleep};
use crate::stdio::Client;

const WRITING: &str = "[agents]\nmode_max = \"workspace-write\"\n";

/// What a command printed and how it ended.
#[derive(Debug)]
struct Ran {
    code: i32,
    out: String,
    err: String,
}

impl Ran {
    fn of(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Self { code: output.status.code().unwrap_or(-1), out: text(output.stdout), err: text(output.stderr) }
    }
}

fn bench() -> Bench {
    let bench = Bench::with(WRITING);
    tested(&bench.root);
    bench
}

/// A repository whose test looks for a word.
fn tested(root: &Path) {
    repository(root);
    std::fs::create_dir_all(root.join("tests")).unwrap();
    std::fs::write(root.join("tests/t.sh"), "grep -q good a.txt\n").unwrap();
    std::fs::write(root.join("Makefile"), "test:\n\tsh tests/t.sh\n").unwrap();
    git(root, &["add", "."]);
    git(root, &["commit", "-qm", "tests"]);
}

fn shell(bench: &Bench, folder: &Path, args: &[&str]) -> Command {
    let mut command = bench.home.command(args);
    command.current_dir(folder).stdin(Stdio::null());
    command
}

fn matsu(bench: &Bench, args: &[&str]) -> Ran {
    Ran::of(shell(bench, &bench.root, args).output().unwrap())
}

fn task_of(ran: &Ran) -> String {
    ran.err.split_whitespace().next().unwrap_or_else(|| panic!("{ran:?}")).to_owned()
}

fn allowed(bench: &Bench, text: &str) {
    std::fs::write(bench.root.join(".matsu.toml"), text).unwrap();
    bench.home.run(&["allow", bench.root.to_str().unwrap(), "--yes"]);
}

#[test]
fn the_command_line_works_where_it_was_started_whatever_that_folder_is_called() {
    let other = tempfile::tempdir().unwrap();
    let roots = format!("{WRITING}roots = {:?}\n", other.path());
    for settings in [WRITING, roots.as_str()] {
        let bench = Bench::with(settings);
        for name in ["日本 語", "100%41", "a\tb"] {
            let folder = if settings == WRITING { bench.home.path(name) } else { other.path().join(name) };
            std::fs::create_dir_all(&folder).unwrap();
            tested(&folder);
            let check = ["--mode", "workspace-write", "--check", "sh tests/t.sh"];
            let args = [&["run", "script", "echo good > a.txt; pwd"][..], &check].concat();
            let ran = Ran::of(shell(&bench, &folder, &args).output().unwrap());
            assert_eq!(ran.code, 0, "{name}: {ran:?}");
            assert_eq!(std::fs::read_to_string(folder.join("a.txt")).unwrap(), "a\n", "a tree of its own: {ran:?}");
            assert!(git(&folder, &["branch", "--list", "matsu/*"]).contains("matsu/"), "{name}: {ran:?}");
        }
    }
}

#[test]
fn the_root_of_a_client_is_its_default_folder_although_others_are_configured() {
    let configured = tempfile::tempdir().unwrap();
    let bench = Bench::with(&format!("{WRITING}roots = {:?}\n", configured.path()));
    repository(&bench.root);
    let mut command = bench.home.command(&["mcp", "--tools", "all", "--root", bench.root.to_str().unwrap()]);
    command.current_dir(configured.path());
    let mut client = Client::shaken(command);
    let task = start_with(&mut client, "echo good > a.txt; ls", json!({ "mode": "workspace-write" }));
    let end = end_of(&mut client, &task);
    assert_eq!(end["result"], "a.txt\nb.txt\n", "{end}");
    assert_eq!(end["changes"]["files"], 1, "{end}");
    assert_eq!(std::fs::read_dir(configured.path()).unwrap().count(), 0, "{end}");
}

/// A task of two agents: `script` passes its check, the other one does not.
fn two_runs(client: &mut Client, message: &str) -> (String, Value) {
    let wish = json!({
        "message": message, "cli_names": ["script", "other"], "mode": "workspace-write",
        "check": "grep -q good a.txt", "run_async": true,
    });
    let task = client.call("use_agents", &wish)["task_id"].as_str().unwrap().to_owned();
    let end = end_of(client, &task);
    (task, end)
}

#[test]
fn of_several_runs_the_one_that_passed_is_taken_and_others_must_be_named() {
    let bench = bench();
    let mut client = bench.client();
    let (task, end) = two_runs(&mut client, "[ \"$1\" = new ] && echo good > a.txt || echo bad > a.txt");
    for result in end["results"].as_array().unwrap() {
        let command = format!("matsu apply {task} --agent {}", result["cli_name"].as_str().unwrap());
        assert!(result["changes"]["how"].as_str().unwrap().contains(&command), "{result}");
    }
    let shown = matsu(&bench, &["diff", &task]);
    assert!(shown.out.contains("+good") && shown.err.contains("Changes of script"), "{shown:?}");
    let diff = client.call("get_task_status", &json!({ "task_id": task, "diff": {} }));
    assert_eq!(diff["diff"]["agent"], "script", "{diff}");
    let diff = client.call("get_task_status", &json!({ "task_id": task, "diff": { "agent": "other" } }));
    assert_eq!(diff["diff"]["agent"], "other", "{diff}");
    assert_eq!(bench.home.run(&["receipt", &task])["receipt"]["agent"], "script");
    for command in ["apply", "diff", "receipt"] {
        let unknown = matsu(&bench, &[command, &task, "--agent", "zzz"]);
        assert!(
            unknown.code != 0 && unknown.err.contains("zzz") && unknown.err.contains("script, other"),
            "{unknown:?}"
        );
    }
    let discarded = matsu(&bench, &["discard", &task]);
    assert!(discarded.code != 0 && discarded.err.contains("--agent other (failed its check)"), "{discarded:?}");
    let applied = matsu(&bench, &["apply", &task]);
    assert_eq!(applied.code, 0, "{applied:?}");
    assert_eq!(std::fs::read_to_string(bench.root.join("a.txt")).unwrap(), "good\n");
    assert_eq!(matsu(&bench, &["apply", &task, "--undo"]).code, 0, "the only one that is applied");
    assert_eq!(std::fs::read_to_string(bench.root.join("a.txt")).unwrap(), "a\n");

    let (task, _) = two_runs(&mut client, "echo \"good $1\" > a.txt");
    for command in ["apply", "diff", "receipt"] {
        let refused = matsu(&bench, &[command, &task]);
        assert_ne!(refused.code, 0, "{refused:?}");
        for agent in ["script", "other"] {
            let whole = format!("matsu {command} {task} --agent {agent} (passed its check)");
            assert!(refused.err.contains(&whole), "{refused:?}");
        }
    }
    assert_eq!(std::fs::read_to_string(bench.root.join("a.txt")).unwrap(), "a\n", "nothing was written");
}

#[test]
fn a_budget_that_is_passed_by_the_last_words_of_a_run_is_said_and_ends_nothing_that_is_over() {
    let bench = bench();
    let done = format!("{}; echo good > a.txt", usage(1000, 500, ""));
    write_streaming(&bench, "done", "run", &[&done]);
    let bad = format!("{}; echo bad > a.txt", usage(1000, 500, ""));
    write_streaming(&bench, "bad", "run", &[&bad, "echo good > a.txt"]);
    let sleep = unique_sleep();
    write_streaming(&bench, "long", "run", &[&format!("{}; sleep {sleep}", usage(1000, 500, ""))]);
    for tokens in ["10", "1500"] {
        for _ in 0..4 {
            let args = ["run", "done", "Do it", "--mode", "workspace-write", "--budget-tokens", tokens];
            let ran = matsu(&bench, &args);
            assert_eq!(ran.code, 0, "{ran:?}");
            assert!(ran.err.contains(&format!("1500 of {tokens} tokens")), "{ran:?}");
            let report = bench.home.run(&["status", &task_of(&ran)]);
            assert!(report["over_budget"].as_str().is_some_and(|words| words.contains("1500 of")), "{report}");
        }
    }
    let mut client = bench.client();
    let more = json!({ "cli_name": "bad", "retries": 3, "fallback": ["done"], "budget": { "tokens": 1000 } });
    let task = start_checked(&mut client, "Do it", &json!("sh tests/t.sh"), more);
    let end = end_of(&mut client, &task);
    assert_eq!(end["error_code"], "BUDGET_EXHAUSTED", "{end}");
    let error = end["error"].as_str().unwrap();
    assert!(error.contains("no further round and no other agent") && !error.contains("was ended"), "{end}");
    assert_eq!((&end["receipt"]["rounds"], &end["receipt"]["passed"]), (&json!(1), &json!(false)), "{end}");

    let task = start_with(&mut client, "Do it", json!({ "cli_name": "long", "budget": { "tokens": 1000 } }));
    let end = end_of(&mut client, &task);
    assert_eq!((&end["error_code"], processes(&sleep)), (&json!("BUDGET_EXHAUSTED"), 0), "{end}");
    assert!(end["error"].as_str().unwrap().contains("the run was ended"), "{end}");
}

#[test]
fn patterns_protect_what_they_seem_to_and_others_are_refused_by_name() {
    let bench = bench();
    let mut client = bench.client();
    let file = |pattern: &str| format!("[check]\ncommand = \"make test\"\nprotect = [{pattern:?}]\n");
    for pattern in ["./tests/**", "*.sh", "t.sh", "tests/"] {
        allowed(&bench, &file(pattern));
        let task = start_with(&mut client, "echo true > tests/t.sh", json!({ "mode": "workspace-write" }));
        let end = end_of(&mut client, &task);
        assert_eq!(end["error_code"], "CHECK_FAILED", "{pattern}: {end}");
        assert!(end["error"].as_str().unwrap().contains("protected files: tests/t.sh"), "{pattern}: {end}");
    }
    // What stands in for a protected file, or changes what it is when it is checked out.
    for (pattern, script, named) in [
        ("Makefile", "printf 'test:\\n\\ttrue\\n' > GNUmakefile", "GNUmakefile"),
        ("tests/**", "echo 't.sh eol=crlf' > .gitattributes; echo good > a.txt", ".gitattributes"),
    ] {
        allowed(&bench, &file(pattern));
        let task = start_with(&mut client, script, json!({ "mode": "workspace-write" }));
        let end = end_of(&mut client, &task);
        assert_eq!(end["error_code"], "CHECK_FAILED", "{pattern}: {end}");
        assert!(end["error"].as_str().unwrap().contains(named), "{pattern}: {end}");
    }
    for pattern in ["../x", "/etc/**", "[bad", ""] {
        std::fs::write(bench.root.join(".matsu.toml"), file(pattern)).unwrap();
        let refused = matsu(&bench, &["allow", "--yes"]);
        assert_ne!(refused.code, 0, "{pattern}: {refused:?}");
        assert!(refused.err.contains(&format!("{pattern:?}")) && refused.err.contains(".matsu.toml"), "{refused:?}");
        let wish = json!({ "cli_name": "script", "message": "true", "mode": "workspace-write" });
        let said = client.call("use_agent", &wish);
        assert!(said["error"].as_str().unwrap().contains(&format!("{pattern:?}")), "{said}");
    }
}

#[test]
fn setup_cannot_change_what_is_protected_before_the_check_reads_it() {
    let bench = bench();
    std::fs::write(bench.root.join("prep.sh"), "true\n").unwrap();
    git(&bench.root, &["add", "."]);
    git(&bench.root, &["commit", "-qm", "prep"]);
    let file = "[worktree]\nsetup = \"sh prep.sh\"\n[check]\ncommand = \"make test\"\nprotect = [\"tests/**\", \"Makefile\"]\n";
    allowed(&bench, file);
    let mut client = bench.client();
    for (script, named) in [
        ("echo 'echo true > tests/t.sh' > prep.sh", "tests/t.sh"),
        ("echo 'rm -r tests; mkdir tests; echo > tests/t.sh' > prep.sh", "tests/t.sh"),
        ("echo 'git update-index --assume-unchanged tests/t.sh; echo true > tests/t.sh' > prep.sh", "tests/t.sh"),
        ("echo 'printf \"test:\\\\n\\\\ttrue\\\\n\" > GNUmakefile' > prep.sh", "GNUmakefile"),
    ] {
        let task = start_with(&mut client, script, json!({ "mode": "workspace-write" }));
        let end = end_of(&mut client, &task);
        assert_eq!(end["error_code"], "CHECK_FAILED", "{script}: {end}");
        let error = end["error"].as_str().unwrap();
        assert!(error.contains("setup") && error.contains(named), "{script}: {end}");
    }
    let honest = "echo 'echo made > made.txt' > prep.sh; echo good > a.txt";
    let task = start_with(&mut client, honest, json!({ "mode": "workspace-write" }));
    let end = end_of(&mut client, &task);
    assert_eq!(end["status"], "completed", "{end}");
}

#[test]
fn the_terminal_says_what_a_check_came_to_and_what_it_can_rely_on() {
    let bench = bench();
    let run =
        |script: &str| matsu(&bench, &["run", "script", script, "--mode", "workspace-write", "--check", "make test"]);
    let weakened = run("echo 'exit 0' > tests/t.sh; printf 'test:\\n\\ttrue\\n' > Makefile");
    assert_eq!(weakened.code, 0, "{weakened:?}");
    let says = |ran: &Ran, all: &[&str]| {
        for words in all {
            assert!(ran.err.contains(words), "{words}: {ran:?}");
        }
    };
    let named = ["check make test: passed", "1 round)", "changed tests: tests/t.sh", "build files: Makefile"];
    says(&weakened, &named);
    let task = task_of(&weakened);
    says(&matsu(&bench, &["status", &task]), &named);
    says(&matsu(&bench, &["apply", &task]), &["check of these changes: passed", "changed tests: tests/t.sh"]);
    assert_eq!(matsu(&bench, &["apply", &task, "--undo"]).code, 0);

    let failed = run("printf bad > a.txt; printf done");
    assert_eq!(failed.code, 3, "{failed:?}");
    says(&failed, &["\nfailed: the check failed", "check make test: failed (exit code", "--check-network"]);
    assert!(!failed.err.contains("use_agent") && !failed.err.contains("network: true"), "{failed:?}");
    let task = task_of(&failed);
    let applied = matsu(&bench, &["apply", &task]);
    assert_eq!(applied.code, 0, "{applied:?}");
    says(&applied, &["check of these changes: failed (exit code", "the applied changes did not pass it"]);
    let verified = matsu(&bench, &["receipt", &task, "--verify"]);
    assert_eq!(verified.code, 3, "{verified:?}");
    assert!(verified.out.contains("it failed again"), "{verified:?}");

    let nothing = run("echo nothing");
    let receipt = matsu(&bench, &["receipt", &task_of(&nothing)]);
    assert!(receipt.err.contains("changed no file") && receipt.err.contains("NO_CHANGE"), "{receipt:?}");
    let odd = matsu(&bench, &["run", "script", "x", "--retries", "-1"]);
    assert!(odd.err.contains("invalid value '-1'") && !odd.err.contains("-- -1"), "{odd:?}");
}

#[test]
fn the_terminal_says_which_agents_were_left_out_tried_and_at_work() {
    let bench = bench();
    write_agent(&bench, "first", &["echo bad > a.txt"]);
    write_agent(&bench, "second", &["echo good > a.txt"]);
    let mut args = vec!["run", "first", "Do it", "--mode", "workspace-write", "--check", "sh tests/t.sh"];
    args.extend(["--fallback", "absent,second"]);
    let ran = matsu(&bench, &args);
    assert_eq!(ran.code, 0, "{ran:?}");
    for words in ["left out: absent", "first was tried before: the check failed", "second worked on it last"] {
        assert!(ran.err.contains(words), "{words}: {ran:?}");
    }
    let chosen = matsu(&bench, &["run", "auto", "true"]);
    assert!(chosen.err.contains("Chosen: "), "{chosen:?}");
}

#[test]
fn a_check_of_the_repository_takes_time_network_and_retries_from_the_command_line() {
    let bench = bench();
    allowed(&bench, "[check]\ncommand = \"sleep 3; sh tests/t.sh\"\nprotect = [\"tests/**\"]\n");
    write_agent(&bench, "second", &["echo bad > a.txt", "echo good > a.txt"]);
    let run = |more: &[&str]| matsu(&bench, &[&["run", "second", "Do it", "--mode", "workspace-write"], more].concat());
    let slow = run(&["--check-timeout", "1"]);
    assert!(slow.code == 3 && slow.err.contains("longer than its limit of 1 s"), "{slow:?}");
    let ran = run(&["--retries", "1", "--check-network"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let receipt = bench.home.run(&["receipt", &task_of(&ran)]);
    let receipt = &receipt["receipt"];
    assert_eq!((&receipt["rounds"], &receipt["network"]), (&json!(2), &json!("on")), "{receipt}");
    assert_eq!(receipt["check"]["protect"], json!(["tests/**"]), "{receipt}");
    std::fs::remove_file(bench.root.join(".matsu.toml")).unwrap();
    for (more, words) in [(["--check-timeout", "1"], "name the command"), (["--retries", "1"], "retries needs a check")]
    {
        let refused = run(&more);
        assert!(refused.code != 0 && refused.err.contains(words), "{refused:?}");
    }
}

#[test]
fn a_file_that_waits_for_consent_is_answered_by_its_own_command_alone() {
    let bench = bench();
    std::fs::write(bench.root.join(".matsu.toml"), "[check]\ncommand = \"make test\"\n").unwrap();
    let ran = matsu(&bench, &["run", "script", "echo good > a.txt", "--mode", "workspace-write"]);
    let allow = format!("matsu allow {}", bench.root.canonicalize().unwrap().display());
    assert!(ran.err.contains(&allow) && !ran.err.contains("matsu answer"), "{ran:?}");
    let task = task_of(&ran);
    for answer in [&["answer", &task][..], &["answer", &task, "yes"]] {
        let refused = matsu(&bench, answer);
        assert!(refused.code != 0 && refused.err.contains("matsu allow"), "{refused:?}");
        assert!(!refused.err.contains("matsu answer"), "{refused:?}");
    }
    let mut client = bench.client();
    reaches(&mut client, &task, "input_required");
    for (text, words) in [
        ("[agents]\nretries = 99\n", "agents.retries must be a whole number from 0 to 5, got 99"),
        ("[check]\ncommand = \"\"\n", "check.command must be a command"),
    ] {
        std::fs::write(bench.root.join(".matsu.toml"), text).unwrap();
        let refused = matsu(&bench, &["allow", "--yes"]);
        assert!(refused.code != 0 && refused.err.contains(words) && refused.err.contains(".matsu.toml"), "{refused:?}");
    }
    client.call("cancel_task", &json!({ "task_id": task, "mode": "immediate" }));
}

#[test]
fn what_is_wrong_with_a_check_or_a_body_is_named() {
    let bench = bench();
    let mut client = bench.client();
    for (check, words) in [
        (json!({}), "check is empty"),
        (json!({ "command": "true", "netwrk": true }), "check.netwrk is not a parameter"),
        (json!({ "command": 7 }), "check.command must be a string"),
        (json!(["a", 7]), "check[1] must be a string"),
        (json!(7), "check must be a string or a list"),
    ] {
        let said = client.call("use_agent", &json!({ "cli_name": "script", "message": "true", "check": check }));
        assert!(said["error"].as_str().is_some_and(|error| error.contains(words)), "{check}: {said}");
    }
    let mut tasks = Vec::new();
    for script in ["echo 1 > a.txt", "echo 2 > a.txt", "echo nothing", "echo nothing"] {
        let task = start_with(&mut client, script, json!({ "mode": "workspace-write" }));
        end_of(&mut client, &task);
        tasks.push(task);
    }
    let (_, http) = bench.home.relayed();
    let refused = http.rest("POST", &format!("/tasks/{}/apply", tasks[0]), &json!({ "merge": true }));
    assert!(refused.status == 400 && refused.body.contains("merge"), "{refused:?}");
    assert_eq!(std::fs::read_to_string(bench.root.join("a.txt")).unwrap(), "a\n", "nothing was applied");
    let first = http.rest("GET", "/branches?limit=1", &Value::Null).json();
    assert_eq!(first["items"][0]["task_id"], json!(tasks[1]), "{first}");
    assert_eq!(first["items"].as_array().unwrap().len(), 1, "{first}");
    let rest = http.rest("GET", &format!("/branches?limit=2&after={}", first["next"]), &Value::Null).json();
    assert_eq!(rest["items"][0]["task_id"], json!(tasks[0]), "{rest}");
}
