//! Checks and receipts: a task counts as completed only if the check of its last commit passed, whatever its agent says.

use std::net::TcpListener;
use std::path::Path;

use serde_json::{Value, json};

use super::survival::end_politely;
use super::worktrees::{git, repository};
use super::{Bench, SOON, end_of, processes, program, reaches, start_with, unique_sleep};
use crate::home::{kill, until};
use crate::stdio::Client;

const WRITING: &str = "[agents]\nmode_max = \"workspace-write\"\n";

fn bench() -> Bench {
    let bench = Bench::with(WRITING);
    repository(&bench.root);
    bench
}

/// Starts a script whose work is checked.
pub fn start_checked(client: &mut Client, script: &str, check: &Value, more: Value) -> String {
    let mut wish = json!({ "mode": "workspace-write", "check": check });
    wish.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    start_with(client, script, wish)
}

fn checked(client: &mut Client, script: &str, check: &str) -> (String, Value) {
    let task = start_checked(client, script, &json!(check), json!({}));
    let end = end_of(client, &task);
    (task, end)
}

#[track_caller]
fn assert_failed(end: &Value, code: &str) {
    assert_eq!((&end["status"], &end["error_code"]), (&json!("failed"), &json!(code)), "{end}");
}

/// An agent that answers each turn of its conversation with the next of its scripts, and keeps its messages.
pub fn write_agent(bench: &Bench, name: &str, turns: &[&str]) {
    let folder = bench.home.path(".config/matsu/agents");
    let path = bench.home.path(name);
    let cases: String = turns.iter().enumerate().map(|(turn, script)| format!("{}) {script};;\n", turn + 1)).collect();
    let script = format!(
        "turn=1; [ -f turn-{name} ] && turn=$(($(cat turn-{name}) + 1)); echo $turn > turn-{name}\n\
         prompt=$(cat)\n\
         printf '%s %s %s\\n' \"$1\" \"$2\" \"$(printf '%s' \"$prompt\" | tr '\\n' '~')\" >> said-{name}\n\
         case $turn in\n{cases}esac\n"
    );
    program(&path, &script);
    let definition = format!(
        "name = \"{name}\"\ncommand = \"{}\"\nprompt = \"stdin\"\noutput = \"text\"\n\
         [session]\nchoose = true\nstart = {{ args = [\"new\", \"{{session}}\"] }}\n\
         resume = {{ args = [\"resume\", \"{{session}}\"] }}\n[quota]\npatterns = [\"usage limit\"]\n",
        path.display()
    );
    std::fs::write(folder.join(format!("{name}.toml")), definition).unwrap();
}

/// A file of the branch that a run has left.
fn on_branch(root: &Path, end: &Value, file: &str) -> String {
    let branch = end["changes"]["branch"].as_str().unwrap_or_else(|| panic!("{end}"));
    git(root, &["show", &format!("{branch}:{file}")])
}

#[test]
fn a_check_that_passes_completes_the_task_and_its_receipt_can_be_verified() {
    let bench = bench();
    let mut client = bench.client();
    let check = "grep -qx good a.txt && echo checked && echo more > b.txt";
    let (task, end) = checked(&mut client, "echo good > a.txt; echo done", check);
    assert_eq!((&end["status"], &end["result"]), (&json!("completed"), &json!("done\n")), "{end}");
    let branch = end["changes"]["branch"].as_str().unwrap();
    let receipt = &end["receipt"];
    let of = |name: &str| json!(git(&bench.root, &["rev-parse", name]).trim());
    assert_eq!(receipt["head"], of(branch), "{end}");
    assert_eq!((&receipt["tree"], &receipt["base"]), (&of(&format!("{branch}^{{tree}}")), &of("main")));
    assert_eq!((&receipt["passed"], &receipt["exit_code"], &receipt["rounds"]), (&json!(true), &json!(0), &json!(1)));
    assert_eq!((&receipt["command"], &receipt["agent"]), (&json!(check), &json!("script")));
    assert_eq!(on_branch(&bench.root, &end, "b.txt"), "b\n", "what a check writes is not on the branch");
    assert_eq!(std::fs::read_to_string(bench.root.join("b.txt")).unwrap(), "b\n");

    let shown = bench.home.run(&["receipt", &task]);
    assert_eq!(shown["receipt"]["log_sha256"], receipt["log_sha256"], "{shown}");
    let said = bench.home.run(&["receipt", &task, "--verify"]);
    assert_eq!((&said["verified"], &said["same_log"]), (&json!(true), &json!(true)), "{said}");
    let people = bench.home.command(&["receipt", &task]).output().unwrap();
    let people = String::from_utf8(people.stdout).unwrap();
    assert!(people.contains("passed") && people.contains(check), "{people}");
    until("no folder of a check is left", SOON, || {
        let runs = std::fs::read_dir(bench.home.data_dir().join("runs")).unwrap().count();
        (runs == 0).then_some(())
    });
}

#[test]
fn an_agent_that_lies_about_its_tests_fails_with_the_output_of_the_check_and_keeps_its_branch() {
    let bench = bench();
    let mut client = bench.client();
    let (task, end) = checked(
        &mut client,
        "echo broken > a.txt; echo All tests pass.",
        "echo looking at a.txt; cat a.txt >&2; grep -q good a.txt",
    );
    assert_failed(&end, "CHECK_FAILED");
    assert!(end["check_output"].as_str().is_some_and(|said| said == "looking at a.txt\nbroken\n"), "{end}");
    assert_eq!(end["result"], "All tests pass.\n", "{end}");
    assert_eq!((&end["receipt"]["passed"], &end["receipt"]["exit_code"]), (&json!(false), &json!(1)), "{end}");
    assert_eq!(on_branch(&bench.root, &end, "a.txt"), "broken\n");
    let shown = bench.home.command(&["receipt", &task]).output().unwrap();
    assert_eq!(shown.status.code(), Some(3), "{shown:?}");
}

#[test]
fn a_run_with_a_check_that_changes_nothing_fails_as_no_change() {
    let bench = bench();
    let mut client = bench.client();
    let (_, end) = checked(&mut client, "echo I fixed it.", "true");
    assert_failed(&end, "NO_CHANGE");
    assert_eq!(end["result"], "I fixed it.\n", "{end}");
}

#[test]
fn a_changed_or_deleted_test_is_named_in_the_receipt() {
    let bench = bench();
    std::fs::create_dir_all(bench.root.join("tests")).unwrap();
    std::fs::write(bench.root.join("tests/a.sh"), "grep -q good a.txt\n").unwrap();
    git(&bench.root, &["add", "."]);
    git(&bench.root, &["commit", "-qm", "tests"]);
    let mut client = bench.client();
    let (_, end) = checked(&mut client, "rm tests/a.sh; echo x > a.txt", "! test -e tests/a.sh || sh tests/a.sh");
    assert_eq!(end["status"], "completed", "{end}");
    assert_eq!(end["receipt"]["changed_tests"], json!(["tests/a.sh"]), "{end}");
}

#[test]
fn a_check_sees_no_key_and_no_network_unless_it_is_asked_for() {
    let mut bench = bench();
    bench.home.set("SECRET_KEY", "sk-very-secret-0001");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let connect = format!("bash -c 'exec 3<>/dev/tcp/127.0.0.1/{port}' 2>/dev/null");
    let mut client = bench.client();
    let (_, end) = checked(&mut client, "echo x > x", "env; exit 7");
    let output = end["check_output"].as_str().unwrap();
    assert!(output.contains("PATH=") && !output.contains("SECRET_KEY") && !output.contains("MATSU_TOKEN"), "{output}");
    assert_eq!(end["receipt"]["exit_code"], 7, "{end}");
    let (_, end) = checked(&mut client, "echo x > x", &format!("! {connect}"));
    if end["receipt"]["confinement"] == "sealed" {
        assert_eq!((&end["status"], &end["receipt"]["network"]), (&json!("completed"), &json!("off")), "{end}");
    }
    let check = json!({ "command": connect, "network": true });
    let task = start_checked(&mut client, "echo x > x", &check, json!({}));
    let end = end_of(&mut client, &task);
    assert_eq!((&end["status"], &end["receipt"]["network"]), (&json!("completed"), &json!("on")), "{end}");
}

#[test]
fn a_fenced_check_says_that_its_network_was_not_cut() {
    let bench = Bench::with("[agents]\nmode_max = \"workspace-write\"\nconfine = \"fenced\"\n");
    repository(&bench.root);
    let mut client = bench.client();
    let (_, end) = checked(&mut client, "echo x > x", "test -f x && echo y > y");
    assert_eq!(end["status"], "completed", "{end}");
    let receipt = &end["receipt"];
    assert_eq!((&receipt["confinement"], &receipt["network"]), (&json!("fenced"), &json!("not cut")), "{end}");
}

#[test]
fn a_check_that_never_ends_or_prints_very_much_ends_all_the_same() {
    let bench = bench();
    let mut client = bench.client();
    let sleep = unique_sleep();
    let check = json!({ "command": format!("echo waiting; sleep {sleep}"), "timeout": 1 });
    let endless = start_checked(&mut client, "echo x > x", &check, json!({}));
    let flood =
        start_checked(&mut client, "echo x > x", &json!("yes 0123456789 | head -c 100000000; exit 1"), json!({}));
    let end = end_of(&mut client, &endless);
    assert_failed(&end, "CHECK_FAILED");
    assert!(end["error"].as_str().unwrap().contains("longer than its limit of 1 s"), "{end}");
    assert_eq!(end["check_output"], "waiting\n", "{end}");
    assert_eq!(processes(&sleep), 0);
    let end = end_of(&mut client, &flood);
    assert_failed(&end, "CHECK_FAILED");
    let shown = bench.home.command(&["--json", "receipt", &flood]).output().unwrap();
    let shown: Value = serde_json::from_slice(&shown.stdout).unwrap();
    assert_eq!(shown["receipt"]["log_bytes"], 100_000_000, "{shown}");
    assert!(end["check_output"].as_str().is_some_and(|tail| tail.len() <= 8 * 1024), "only the end is kept");
}

fn a_check_goes_on_without_its_daemon(end_daemon: impl Fn(u32)) {
    let bench = bench();
    let go_on = bench.home.signal("go_on");
    let mut client = bench.client();
    let check = format!(
        "echo started; n=0; while [ ! -e {} ]; do n=$((n+1)); echo line $n; sleep 0.05; done; echo the end; exit $CODE",
        go_on.display()
    );
    let passes = start_checked(&mut client, "echo x > x", &json!(check.replace("$CODE", "0")), json!({}));
    let fails = start_checked(&mut client, "echo x > x", &json!(check.replace("$CODE", "9")), json!({}));
    for task in [&passes, &fails] {
        until("its check runs", SOON, || {
            let said = client.call("get_task_status", &json!({ "task_id": task }));
            said["progress"].as_str().filter(|progress| progress.contains("check: line")).map(drop)
        });
    }
    let (daemon, _) = bench.home.relayed();
    end_daemon(daemon);
    client = bench.client();
    until("another daemon serves", SOON, || (bench.home.relayed().0 != daemon).then_some(()));
    std::fs::write(&go_on, "").unwrap();
    let end = end_of(&mut client, &passes);
    assert_eq!((&end["status"], &end["receipt"]["exit_code"]), (&json!("completed"), &json!(0)), "{end}");
    let end = end_of(&mut client, &fails);
    assert_failed(&end, "CHECK_FAILED");
    let output = end["check_output"].as_str().unwrap();
    assert!(output.starts_with("started\nline 1\n") && output.ends_with("the end\n"), "it was started once: {output}");
    assert_eq!(output.matches("started").count(), 1, "{output}");
}

#[test]
fn a_check_goes_on_when_its_daemon_is_killed() {
    a_check_goes_on_without_its_daemon(kill);
}

#[test]
fn a_check_goes_on_when_its_daemon_gets_sigterm() {
    a_check_goes_on_without_its_daemon(end_politely);
}

#[test]
fn a_task_that_is_stopped_during_its_check_is_cancelled_and_keeps_its_branch() {
    let bench = bench();
    let mut client = bench.client();
    let sleep = unique_sleep();
    let task = start_checked(&mut client, "echo x > x", &json!(format!("sleep {sleep}")), json!({}));
    until("the check runs", SOON, || (processes(&sleep) > 0).then_some(()));
    client.call("cancel_task", &json!({ "task_id": task, "mode": "immediate" }));
    let end = reaches(&mut client, &task, "cancelled");
    until("its processes are gone", SOON, || (processes(&sleep) == 0).then_some(()));
    assert_eq!(on_branch(&bench.root, &end, "x"), "x\n");
}

#[test]
fn a_failed_check_goes_back_into_the_same_conversation() {
    let bench = bench();
    write_agent(&bench, "fixer", &["echo bad > a.txt; echo fixed it", "echo good > a.txt; echo now really"]);
    let mut client = bench.client();
    let check = json!("echo a.txt says; cat a.txt; grep -q good a.txt");
    let more = json!({ "cli_name": "fixer", "retries": 2 });
    let task = start_checked(&mut client, "Make a.txt good", &check, more);
    let end = end_of(&mut client, &task);
    assert_eq!((&end["status"], &end["receipt"]["rounds"]), (&json!("completed"), &json!(2)), "{end}");
    assert_eq!(end["result"], "now really\n", "{end}");
    let said = on_branch(&bench.root, &end, "said-fixer");
    let turns: Vec<Vec<&str>> = said.lines().map(|line| line.splitn(3, ' ').collect()).collect();
    assert_eq!((turns[0][0], turns[1][0], turns.len()), ("new", "resume", 2), "{said}");
    assert_eq!(turns[0][1], turns[1][1], "one conversation: {said}");
    assert!(turns[1][2].contains("exit code 1") && turns[1][2].contains("a.txt says~bad"), "{said}");
    let commits =
        git(&bench.root, &["log", "--format=%H", &format!("main..{}", end["changes"]["branch"].as_str().unwrap())]);
    assert_eq!(commits.lines().count(), 2, "each round is a commit of the same branch");
}

#[test]
fn retries_that_are_used_up_leave_the_last_check() {
    let bench = bench();
    write_agent(&bench, "stubborn", &["echo bad > a.txt", "echo worse > a.txt", "echo good > a.txt"]);
    let mut client = bench.client();
    let more = json!({ "cli_name": "stubborn", "retries": 1 });
    let task = start_checked(&mut client, "Make a.txt good", &json!("cat a.txt; grep -q good a.txt"), more);
    let end = end_of(&mut client, &task);
    assert_failed(&end, "CHECK_FAILED");
    assert_eq!((&end["receipt"]["rounds"], &end["check_output"]), (&json!(2), &json!("worse\n")), "{end}");
}

#[test]
fn a_check_that_cannot_be_made_is_refused_before_anything_is_stored() {
    let bench = bench();
    let mut client = bench.client();
    for (more, words) in [
        (json!({ "check": "true" }), "workspace-write"),
        (json!({ "check": " ", "mode": "workspace-write" }), "check must be"),
        (json!({ "check": [], "mode": "workspace-write" }), "check must be"),
        (json!({ "check": "true", "mode": "workspace-write", "isolation": "none" }), "worktree"),
        (json!({ "check": "true", "mode": "workspace-write", "retries": 6 }), "retries"),
        (json!({ "retries": 1, "mode": "workspace-write" }), "check"),
        (json!({ "check": { "command": "true", "timeout": 0 }, "mode": "workspace-write" }), "check.timeout"),
        (json!({ "check": "true", "mode": "workspace-write", "retries": 1, "cli_name": "cat" }), "resume"),
    ] {
        let mut arguments = json!({ "cli_name": "script", "message": "echo", "run_async": true });
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let said = client.call("use_agent", &arguments);
        assert_eq!(said["error_code"], "INVALID_PARAMS", "{arguments}: {said}");
        assert!(said["error"].as_str().unwrap().contains(words), "{arguments}: {said}");
    }
    assert_eq!(client.call("get_task_status", &json!({}))["tasks"], json!([]));
}

#[test]
fn several_agents_are_checked_each_by_itself_and_the_terminal_says_so() {
    let bench = bench();
    let mut client = bench.client();
    let wish = json!({
        "message": "[ \"$1\" = new ] && echo good > a.txt || echo bad > a.txt", "cli_names": ["script", "other"],
        "mode": "workspace-write", "check": ["grep", "-q", "good", "a.txt"], "run_async": true,
    });
    let said = client.call("use_agents", &wish);
    let end = end_of(&mut client, said["task_id"].as_str().unwrap_or_else(|| panic!("{said}")));
    let results = end["results"].as_array().unwrap_or_else(|| panic!("{end}"));
    let of = |name: &str| results.iter().find(|result| result["cli_name"] == name).unwrap();
    assert_eq!((&of("script")["status"], &of("script")["receipt"]["passed"]), (&json!("completed"), &json!(true)));
    assert_eq!(
        (&of("other")["error_code"], &of("other")["receipt"]["passed"]),
        (&json!("CHECK_FAILED"), &json!(false))
    );

    let mut run = bench.home.command(&[
        "run",
        "script",
        "echo bad > a.txt",
        "--mode",
        "workspace-write",
        "--check",
        "cat a.txt; false",
    ]);
    let output = run.current_dir(&bench.root).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    assert!(said.contains("CHECK_FAILED") || said.contains("the check failed: exit code 1"), "{said}");
}

#[test]
fn the_next_agent_finishes_the_work_on_the_same_branch_when_one_is_out_of_quota() {
    let bench = bench();
    let poor = "echo half > half.txt; echo 'usage limit reached, try again in 500 seconds' >&2; exit 1";
    write_agent(&bench, "poor", &[poor]);
    write_agent(&bench, "rich", &["cat half.txt > a.txt; echo good >> a.txt; echo all of it"]);
    let mut client = bench.client();
    let more = json!({ "cli_name": "poor", "fallback": ["absent", "rich"] });
    let task = start_checked(&mut client, "Make a.txt good", &json!("grep -q good a.txt"), more);
    let end = end_of(&mut client, &task);
    assert_eq!((&end["status"], &end["result"]), (&json!("completed"), &json!("all of it\n")), "{end}");
    assert_eq!((&end["tried"][0]["agent"], &end["receipt"]["agent"]), (&json!("poor"), &json!("rich")), "{end}");
    assert_eq!(on_branch(&bench.root, &end, "a.txt"), "half\ngood\n");
    let said = on_branch(&bench.root, &end, "said-rich");
    assert!(said.starts_with("new ") && said.contains("poor worked on this task before you"), "{said}");
    assert!(said.contains("Make a.txt good"), "the task is repeated: {said}");
}

#[test]
fn the_next_agent_takes_over_when_retries_are_used_up_and_the_last_failure_stays_when_none_is_left() {
    let bench = bench();
    write_agent(&bench, "first", &["echo bad > a.txt", "echo worse > a.txt"]);
    write_agent(&bench, "second", &["echo bad again > a.txt", "echo good > a.txt"]);
    let mut client = bench.client();
    let check = json!("cat a.txt; grep -q good a.txt");
    let more = json!({ "cli_name": "first", "fallback": ["second"], "retries": 1 });
    let task = start_checked(&mut client, "Make a.txt good", &check, more);
    let end = end_of(&mut client, &task);
    assert_eq!((&end["status"], &end["receipt"]["rounds"]), (&json!("completed"), &json!(4)), "{end}");
    let said = on_branch(&bench.root, &end, "said-second");
    assert!(said.lines().next().is_some_and(|first| first.contains("~~worse~")), "it reads what failed: {said}");
    let more = json!({ "cli_name": "first", "fallback": ["later"] });
    write_agent(&bench, "later", &["true"]);
    let mut wish = json!({ "message": "x", "mode": "workspace-write", "check": "true", "run_async": true });
    wish.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    assert_eq!(client.call("use_agent", &wish)["error_code"], "AGENT_NOT_FOUND", "definitions are read at the start");
    let more = json!({ "cli_name": "absent", "fallback": ["absent"] });
    wish.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let said = client.call("use_agent", &wish);
    assert_eq!(said["error_code"], "AGENT_NOT_INSTALLED", "{said}");
    let task = start_checked(&mut client, "Fail", &check, json!({ "cli_name": "second", "fallback": ["first"] }));
    let end = end_of(&mut client, &task);
    assert_failed(&end, "CHECK_FAILED");
    assert_eq!((&end["tried"][0]["agent"], &end["check_output"]), (&json!("second"), &json!("bad\n")), "{end}");
}

/// A repository with a check of its own that protects its tests.
fn write_project_file(bench: &Bench, more: &str) {
    std::fs::create_dir_all(bench.root.join("tests")).unwrap();
    std::fs::write(bench.root.join("tests/run.sh"), "grep -q good a.txt\n").unwrap();
    let text = format!("[check]\ncommand = \"sh tests/run.sh\"\nprotect = [\"tests/**\"]\n{more}");
    std::fs::write(bench.root.join(".matsu.toml"), text).unwrap();
    git(&bench.root, &["add", "."]);
    git(&bench.root, &["commit", "-qm", "a check"]);
}

#[test]
fn the_check_of_a_repository_waits_for_a_person_and_no_answer_over_a_wire_counts() {
    let bench = bench();
    write_project_file(&bench, "");
    let root = bench.root.to_str().unwrap().to_owned();
    let mut client = bench.client();
    let writing = json!({ "mode": "workspace-write" });
    let task = start_with(&mut client, "echo good > a.txt", writing.clone());
    let asked = reaches(&mut client, &task, "input_required");
    let question = &asked["question"];
    assert!(question["text"].as_str().is_some_and(|text| text.contains("sh tests/run.sh")), "{asked}");
    let answer = json!({ "task_id": task, "job_id": question["job_id"], "question_id": question["id"], "text": "yes" });
    let said = client.call("answer_question", &answer);
    assert!(said["error"].as_str().is_some_and(|why| why.contains("matsu allow")), "{said}");
    // A new daemon asks again.
    let (daemon, _) = bench.home.relayed();
    kill(daemon);
    client = bench.client();
    until("another daemon serves", SOON, || (bench.home.relayed().0 != daemon).then_some(()));
    reaches(&mut client, &task, "input_required");
    bench.home.run(&["allow", &root, "--yes"]);
    let end = end_of(&mut client, &task);
    assert_eq!((&end["status"], &end["receipt"]["passed"]), (&json!("completed"), &json!(true)), "{end}");
    let task = start_with(&mut client, "echo good > a.txt", writing.clone());
    assert_eq!(end_of(&mut client, &task)["status"], "completed", "it is asked once");

    write_project_file(&bench, "timeout = 77\n");
    let task = start_with(&mut client, "echo good > a.txt", writing);
    reaches(&mut client, &task, "input_required");
    client.call("cancel_task", &json!({ "task_id": task, "mode": "immediate" }));
    let mut allow = bench.home.command(&["allow", &root, "--yes"]);
    let refused = allow.env("MATSU_SESSION_TOKEN", "of-a-run").output().unwrap();
    assert!(!refused.status.success(), "a run cannot allow anything: {refused:?}");
}

#[test]
fn a_run_that_changes_a_protected_file_or_its_own_check_fails_and_an_honest_one_does_not() {
    let bench = bench();
    write_project_file(&bench, "");
    bench.home.run(&["allow", bench.root.to_str().unwrap(), "--yes"]);
    let mut client = bench.client();
    let mut write = |script: &str| {
        let task = start_with(&mut client, script, json!({ "mode": "workspace-write" }));
        end_of(&mut client, &task)
    };
    for script in [
        "echo true > tests/run.sh; echo All tests pass.",
        "rm tests/run.sh",
        "echo exit 0 > tests/conftest.py; echo bad > a.txt",
        "mv tests/run.sh tests/old.sh; printf 'exit 0' > tests/run.sh",
    ] {
        let end = write(script);
        assert_failed(&end, "CHECK_FAILED");
        assert!(end["error"].as_str().unwrap().contains("protected files: tests/"), "{end}");
        assert!(end["check_output"].as_str().unwrap().contains("tests/"), "{end}");
    }
    let end = write("printf '[check]\\ncommand = \"true\"\\n' > .matsu.toml; echo bad > a.txt");
    assert_failed(&end, "CHECK_FAILED");
    assert_eq!(end["receipt"]["command"], "sh tests/run.sh", "{end}");
    assert_eq!(write("echo good > a.txt")["status"], "completed");
}
