//! What a person can do when a daemon, a supervisor or the machine has ended: shut down, go on, start again.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::survival::{
    assert_whole, counting, end_politely, said_something, supervisor_pids, supervisors, whole_result,
};
use super::worktrees::{git, repository};
use super::{Bench, SOON, end_of, processes, program, reaches, start, start_with, unique_sleep};
use crate::home::{kill, until};

/// Longer than a relay or a supervisor waits before it would start a daemon.
const LONG_ENOUGH: Duration = Duration::from_secs(12);

fn lives(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}/exe")).exists()
}

#[test]
fn a_shutdown_ends_the_daemon_and_leaves_runs_and_nothing_starts_another() {
    let bench = Bench::new();
    let go_on = bench.home.signal("go_on");
    let mut client = bench.client();
    let task = start(&mut client, &counting(&go_on, 10));
    said_something(&mut client, &task);
    let (daemon, _) = bench.home.relayed();
    let said: Value = bench.home.run(&["shutdown"]);
    assert_eq!(
        (&said["daemon"], &said["runs_ended"], &said["runs_left"]),
        (&json!(true), &json!(0), &json!(1)),
        "{said}"
    );
    until("the process has ended", SOON, || (!lives(daemon)).then_some(()));
    // Neither the open client nor the supervisor starts one.
    let began = Instant::now();
    while began.elapsed() < LONG_ENOUGH {
        assert!(bench.home.announced().is_none(), "a daemon was started after {:?}", began.elapsed());
        std::thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(supervisors(&bench), 1, "the run goes on");
    assert_eq!(bench.home.run(&["shutdown"])["daemon"], false, "there is none to end");
    // A new client starts one, and the old one finds it.
    let mut later = bench.client();
    std::fs::write(&go_on, "").unwrap();
    assert_eq!(end_of(&mut later, &task)["status"], "completed");
    assert_whole(&whole_result(&mut client, &task), 10);
}

#[test]
fn a_call_after_a_shutdown_is_answered_soon_and_says_who_ended_the_daemon() {
    let bench = Bench::new();
    let mut client = bench.client();
    client.call("get_task_status", &json!({}));
    bench.home.run(&["shutdown"]);
    let began = Instant::now();
    let id = client.request("tools/call", &json!({ "name": "get_task_status", "arguments": {} }));
    let error = client.answer(id)["error"]["message"].as_str().unwrap().to_owned();
    assert!(error.contains("`matsu shutdown`") && error.contains("`matsu serve`"), "{error}");
    assert!(!error.contains("during this call"), "{error}");
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    // A daemon that comes later serves the same client.
    let mut later = bench.client();
    later.call("get_task_status", &json!({}));
    let listed = client.call("get_task_status", &json!({}));
    assert!(listed["tasks"].is_array(), "{listed}");
}

#[test]
fn a_shutdown_with_runs_ends_them_with_and_without_a_daemon() {
    let bench = Bench::new();
    for has_daemon in [true, false] {
        let mut client = bench.client();
        let nap = unique_sleep();
        let task = start(&mut client, &format!("echo line 1; sleep {nap}"));
        said_something(&mut client, &task);
        client.kill();
        if !has_daemon {
            end_politely(bench.home.relayed().0);
            assert_eq!(processes(&nap), 1, "it works on");
        }
        let said: Value = bench.home.run(&["shutdown", "--runs"]);
        let expected = (&json!(has_daemon), &json!(1), &json!(0));
        assert_eq!((&said["daemon"], &said["runs_ended"], &said["runs_left"]), expected, "{said}");
        assert_eq!(processes(&nap), 0, "no process is left");
        let mut client = bench.client();
        assert_eq!(end_of(&mut client, &task)["status"], "cancelled");
        client.kill();
    }
}

#[test]
fn a_run_whose_supervisor_was_killed_goes_on_from_what_it_left() {
    let bench = Bench::with("[agents]\nmode_max = \"workspace-write\"\n");
    repository(&bench.root);
    let mut client = bench.client();
    let nap = unique_sleep();
    let script = format!(
        "if [ -e half.txt ]; then echo second >> half.txt; echo \"$1\"; cat half.txt
         else echo first > half.txt; echo line 1; sleep {nap}; fi"
    );
    let task = start_with(&mut client, &script, json!({ "mode": "workspace-write" }));
    said_something(&mut client, &task);
    let began = Instant::now();
    supervisor_pids(&bench).into_iter().for_each(kill);
    let end = end_of(&mut client, &task);
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    assert_eq!(
        (end["status"].as_str(), end["error_code"].as_str()),
        (Some("failed"), Some("SUPERVISOR_LOST")),
        "{end}"
    );
    assert!(whole_result(&mut client, &task).contains("line 1"), "what it said is kept");
    until("no process is left", SOON, || (processes(&nap) == 0).then_some(()));
    assert!(end["error"].as_str().unwrap().contains(&format!("matsu retry --continue {task}")), "{end}");

    let next = bench.home.run(&["retry", "--continue", &task])["task_id"].as_str().unwrap().to_owned();
    let end = end_of(&mut client, &next);
    assert_eq!(end["status"], "completed", "{end}");
    assert_eq!(whole_result(&mut client, &next), "resume\nfirst\nsecond\n", "the same conversation and the same files");
    assert_eq!(end["changes"]["base"], git(&bench.root, &["rev-parse", "main"]).trim(), "{end}");
    let branch = end["changes"]["branch"].as_str().unwrap();
    assert_eq!(git(&bench.root, &["show", &format!("{branch}:half.txt")]), "first\nsecond\n");
    // What is done cannot be gone on with.
    let refused = bench.home.command(&["retry", "--continue", &next]).output().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        !refused.status.success() && said.contains(&format!("matsu retry {next} runs it from the start")),
        "{said}"
    );
}

#[test]
fn a_run_is_resumed_after_a_restart_of_the_machine() {
    let mut bench = Bench::with("[agents]\nmode_max = \"workspace-write\"\n");
    repository(&bench.root);
    let definition = "name = \"goer\"\ncommand = \"/bin/sh\"\nargs = [\"{prompt_file}\"]\nprompt = \"file\"\n\
        output = \"text\"\ngo_on = \"\\necho went on: $1; cat half.txt\"\n\
        [session]\nchoose = true\nresume = { args = [\"resume\", \"{session}\"] }\n";
    std::fs::write(bench.home.path(".config/matsu/agents/goer.toml"), definition).unwrap();
    let mut client = bench.client();
    let nap = unique_sleep();
    let script = format!("echo half > half.txt; echo line 1; sleep {nap}");
    let task = start_with(&mut client, &script, json!({ "cli_name": "goer", "mode": "workspace-write" }));
    said_something(&mut client, &task);
    let level = client.call("get_task_status", &json!({ "task_id": task }))["confinement"].clone();
    client.kill();
    kill(bench.home.relayed().0);
    supervisor_pids(&bench).into_iter().for_each(kill);
    until("no process is left", SOON, || (processes(&nap) == 0).then_some(()));
    bench.home.set("MATSU_TEST_BOOT_ID", "another start of the machine");
    let mut client = bench.client();
    let end = end_of(&mut client, &task);
    if level.as_str().is_some_and(|level| level != "sealed") {
        // Where a process of the run may be left, nothing goes on by itself.
        assert_eq!(end["error_code"], "MACHINE_RESTARTED", "{end}");
        return;
    }
    assert_eq!(end["status"], "completed", "{end}");
    assert_eq!(whole_result(&mut client, &task), "went on: resume\nhalf\n");
    assert_eq!(end["changes"]["base"], git(&bench.root, &["rev-parse", "main"]).trim(), "{end}");
}

#[test]
fn a_run_ends_at_its_time_limit_although_no_daemon_lives() {
    let bench = Bench::new();
    let mut client = bench.client();
    let nap = unique_sleep();
    let task = start_with(&mut client, &format!("echo line 1; sleep {nap}"), json!({ "timeout": 6 }));
    said_something(&mut client, &task);
    client.kill();
    end_politely(bench.home.relayed().0);
    until("its time is over", SOON, || (processes(&nap) == 0).then_some(()));
    assert!(bench.home.announced().is_none(), "without a daemon");
    let mut client = bench.client();
    let end = end_of(&mut client, &task);
    assert_eq!((end["status"].as_str(), end["error_code"].as_str()), (Some("failed"), Some("JOB_TIMEOUT")), "{end}");
    assert!(end["error"].as_str().unwrap().contains("its limit 6 s"), "{end}");
    let shown = bench.home.command(&["status", &task]).output().unwrap();
    let said = String::from_utf8_lossy(&shown.stderr).into_owned();
    assert!(said.contains(&format!("matsu retry --continue {task}")), "{said}");
}

#[test]
fn the_machine_is_kept_awake_while_a_run_lives() {
    let mut bench = Bench::new();
    let (bin, log) = (bench.home.path("bin"), bench.home.path("inhibited"));
    std::fs::create_dir(&bin).unwrap();
    let script = format!("echo \"began $*\" >> {0}; cat; echo ended >> {0}", log.display());
    program(&bin.join("systemd-inhibit"), &script);
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    bench.home.set("PATH", &path);
    bench.home.set("MATSU_AGENTS_KEEP_AWAKE", "always");
    let mut client = bench.client();
    let read = || std::fs::read_to_string(&log).unwrap_or_default();
    let go_on = bench.home.signal("go_on");
    let task = start(&mut client, &counting(&go_on, 1));
    until("sleep is inhibited", SOON, || read().contains("--what=sleep").then_some(()));
    // The lock goes with the daemon, and comes with the next one.
    kill(bench.home.relayed().0);
    until("it is inhibited again", SOON, || (read().matches("began").count() == 2).then_some(()));
    std::fs::write(&go_on, "").unwrap();
    assert_eq!(end_of(&mut client, &task)["status"], "completed");
    until("the lock is given back", SOON, || (processes("--who=Matsu") == 0).then_some(()));
}

#[test]
fn the_service_is_one_that_systemd_accepts() {
    let bench = Bench::new();
    let said: Value = bench.home.run(&["service", "install", "--no-start"]);
    let file = bench.home.path(".config/systemd/user/matsu.service");
    assert_eq!(said["file"], file.to_str().unwrap(), "{said}");
    let text = std::fs::read_to_string(&file).unwrap();
    let data_dir = bench.home.data_dir();
    for line in ["KillMode=process", "OOMPolicy=continue", "Restart=on-failure", data_dir.to_str().unwrap()] {
        assert!(text.contains(line), "{line} is missing in\n{text}");
    }
    if let Ok(checked) = std::process::Command::new("systemd-analyze").args(["--user", "verify"]).arg(&file).output() {
        let said = String::from_utf8_lossy(&checked.stderr).into_owned();
        assert!(!said.contains("matsu.service"), "{said}");
    }
    assert_eq!(bench.home.run(&["service", "status"])["installed"], true);
    bench.home.run(&["service", "uninstall"]);
    assert!(!file.exists());
    assert_eq!(bench.home.run(&["service", "status"])["installed"], false);
}

#[test]
fn a_waiting_question_is_shown_again_after_a_restart_of_the_daemon_by_a_person() {
    let bench = Bench::new();
    let mut client = bench.client();
    let task = start_with(&mut client, super::survival::ASKS, json!({ "cli_name": "events" }));
    reaches(&mut client, &task, "input_required");
    bench.home.run(&["shutdown"]);
    let mut client = bench.client();
    let said = reaches(&mut client, &task, "input_required");
    assert_eq!(said["question"]["text"], "Go on?", "{said}");
    let job = &said["question"]["job_id"];
    let answer = json!({ "task_id": task, "job_id": job, "question_id": "q1", "option": "yes" });
    client.call("answer_question", &answer);
    assert_eq!(end_of(&mut client, &task)["result"], "before after");
}
