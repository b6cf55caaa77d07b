//! Every command, with a daemon and without one. Both ways must tell the same.

use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::api::{noop, sleep, sleep_with, until};
use crate::home::{Backend, Daemon, Home, run};

const SOON: Duration = Duration::from_secs(10);

/// A job that fails at once.
fn broken() -> Value {
    json!({ "kind": "agent_run", "slot": "agent_cli", "input": { "fail": "out of paper" } })
}

/// One task of each end, and the daemon that made them.
struct Ends {
    completed: String,
    failed: String,
    cancelled: String,
}

fn ends(daemon: &Daemon) -> Ends {
    let api = &daemon.api;
    let ends = Ends {
        completed: api.submit(vec![noop()]),
        failed: api.submit(vec![broken()]),
        cancelled: api.submit(vec![sleep(60_000)]),
    };
    api.patch(&format!("/api/v1/tasks/{}", ends.cancelled), &json!({ "status": "cancelled", "mode": "immediate" }));
    for id in [&ends.completed, &ends.failed, &ends.cancelled] {
        api.ended(id, SOON);
    }
    ends
}

fn stop(mut daemon: Daemon) {
    daemon.process.signal(Signal::TERM);
    assert_eq!(daemon.process.ends_within(SOON).0.code(), Some(0));
}

/// What commands that only look print, with times and ids as they are.
fn looks(home: &Home, ends: &Ends) -> Vec<(i32, String)> {
    let looks: [&[&str]; 7] = [
        &["tasks"],
        &["tasks", "--json"],
        &["tasks", "--status", "failed", "--limit", "1"],
        &["tasks", "--kind", "research"],
        &["status", &ends.completed, "--json"],
        &["status", &ends.failed],
        &["token", "list", "--json"],
    ];
    // How long a look took is left out.
    let timeless =
        |text: String| text.lines().filter(|line| !line.contains("waited_ms")).collect::<Vec<_>>().join("\n");
    looks.iter().map(|args| home.run(args)).map(|ran| (ran.code, timeless(ran.out + &ran.err))).collect()
}

#[test]
fn commands_tell_the_same_with_and_without_a_daemon() {
    for backend in [Backend::Sqlite, Backend::Postgres] {
        let home = Home::new(backend);
        let daemon = home.serve();
        let ends = ends(&daemon);
        // The first look marks what it shows as read.
        looks(&home, &ends);
        let with = looks(&home, &ends);
        assert!(with.iter().all(|(code, _)| *code == 0), "{with:?}");
        assert!(with[2].1.contains(&ends.failed) && !with[2].1.contains(&ends.completed), "{with:?}");
        assert!(with[3].1.contains("No tasks."), "{with:?}");
        stop(daemon);
        // In JSON they say whether a daemon answered.
        let of_one = |(code, text): (i32, String)| (code, text.replace("\"daemon\": false", "\"daemon\": true"));
        assert_eq!(looks(&home, &ends).into_iter().map(of_one).collect::<Vec<_>>(), with, "{backend:?}");
    }
}

#[test]
fn a_wait_ends_with_the_code_of_its_task() {
    let home = Home::sqlite();
    let daemon = home.serve();
    let ends = ends(&daemon);
    // A daemon that the command starts does not go on with it either.
    let queued = daemon.api.submit(vec![sleep(60_000)]);
    daemon.api.patch(&format!("/api/v1/tasks/{queued}"), &json!({ "status": "paused" }));
    let codes = |home: &Home| {
        let wait = |id: &str| home.run(&["status", id, "--wait", "--timeout", "20"]).code;
        let timed = Instant::now();
        let late = home.run(&["status", &queued, "--wait", "--timeout", "1"]).code;
        assert!(timed.elapsed() < Duration::from_secs(5), "{:?}", timed.elapsed());
        [wait(&ends.completed), wait(&ends.failed), wait(&ends.cancelled), late]
    };
    assert_eq!(codes(&home), [0, 3, 4, 5]);
    assert_eq!(home.run(&["status", &queued]).code, 0);
    stop(daemon);
    assert_eq!(codes(&home), [0, 3, 4, 5]);
}

#[test]
fn a_waiting_command_wakes_with_its_task() {
    let home = Home::sqlite();
    let daemon = home.serve();
    let task = daemon.api.submit(vec![sleep(1_500)]);
    let mut command = home.command(&["status", &task, "--wait", "--json"]);
    let waiting = command.stdout(Stdio::piped()).spawn().unwrap();
    assert_eq!(daemon.api.ended(&task, SOON)["status"], "completed");
    let ended = Instant::now();
    let output = waiting.wait_with_output().unwrap();
    let late = ended.elapsed();
    assert_eq!(output.status.code(), Some(0));
    assert!(late < Duration::from_millis(500), "{late:?}");
    let task: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(task["jobs"]["completed"], 1);
}

#[test]
fn a_graceful_stop_lets_the_running_job_keep_its_result() {
    let home = Home::sqlite().with_variable("MATSU_SLOTS_AGENT_CLI", "1");
    let daemon = home.serve();
    let task = daemon.api.submit(vec![sleep_with(json!({ "ms": 800, "ignore_stop": true })), noop()]);
    daemon.api.job_becomes(&task, "running", SOON);
    let stopped = home.run_json(&["stop", &task]);
    assert_eq!(stopped["mode"], "graceful");
    assert_eq!(stopped["task"]["status"], "cancelled");
    let jobs = daemon.api.jobs_of(&task);
    let states: Vec<_> = jobs.iter().map(|job| job["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["completed", "cancelled"]);
    let again = home.run(&["stop", &task]).good();
    assert!(again.out.contains("had already ended: cancelled"), "{again:?}");
}

#[test]
fn stop_now_ends_a_job_that_does_not_listen() {
    let home = Home::sqlite();
    let daemon = home.serve();
    let task = daemon.api.submit(vec![sleep_with(json!({ "ms": 60_000, "ignore_stop": true }))]);
    daemon.api.job_becomes(&task, "running", SOON);
    let began = Instant::now();
    let stopped = home.run_json(&["stop", &task, "--now"]);
    assert_eq!((&stopped["task"]["status"], &stopped["cancelled"]["running"]), (&json!("cancelled"), &json!(1)));
    assert!(began.elapsed() < Duration::from_secs(6), "{:?}", began.elapsed());
    // The body is gone, not only its row: the slot takes other work.
    let metrics = || daemon.api.send("GET", "/metrics", None).unwrap().body;
    until("no body runs", Duration::from_secs(6), || {
        metrics().contains("matsu_jobs_running{slot=\"agent_cli\"} 0").then_some(())
    });
}

#[test]
fn retry_runs_the_same_work_as_a_new_task() {
    let home = Home::sqlite();
    let daemon = home.serve();
    let ends = ends(&daemon);
    let again = home.run_json(&["retry", &ends.completed]);
    let id = again["task_id"].as_str().unwrap();
    assert_ne!(id, ends.completed);
    assert_eq!(home.run(&["status", id, "--wait"]).code, 0);
    let asleep = daemon.api.submit(vec![sleep(60_000)]);
    daemon.api.patch(&format!("/api/v1/tasks/{asleep}"), &json!({ "status": "paused" }));
    stop(daemon);
    // Without a daemon a stop is just as final.
    assert_eq!(home.run_json(&["stop", &asleep])["task"]["status"], "cancelled");
    // Work needs a daemon, so a repetition starts one.
    let later = home.run(&["retry", &ends.failed]).good();
    let id = later.out.split_whitespace().next().unwrap().to_owned();
    assert_eq!(home.run(&["status", &id, "--wait"]).code, 3);
}

#[test]
fn a_backup_of_a_live_store_is_that_moment() {
    let home = Home::sqlite();
    let daemon = home.serve();
    let ends = ends(&daemon);
    let copy = home.path("copy.db");
    let made = home.run_json(&["backup", copy.to_str().unwrap()]);
    assert_eq!(made["bytes"].as_u64(), Some(std::fs::metadata(&copy).unwrap().len()));
    let live = home.run(&["tasks"]).good().out;
    let copied = home.run(&["tasks", "--store", &format!("sqlite:{}", copy.display())]).good().out;
    assert_eq!(live, copied);
    assert!(copied.contains(&ends.cancelled), "{copied}");
    // What happens later is not in it, and it is not written over.
    let later = daemon.api.submit(vec![noop()]);
    daemon.api.ended(&later, SOON);
    assert!(!home.run(&["tasks", "--store", &format!("sqlite:{}", copy.display())]).out.contains(&later));
    let refused = home.run(&["backup", copy.to_str().unwrap()]);
    assert_eq!(refused.code, 1);
    assert!(refused.err.contains("exists already"), "{refused:?}");
    let postgres = Home::new(Backend::Postgres).run(&["backup", home.path("no.db").to_str().unwrap()]);
    assert!(postgres.code == 1 && postgres.err.contains("pg_dump"), "{postgres:?}");
}

#[test]
fn tokens_are_made_listed_and_revoked() {
    for daemon in [true, false] {
        let home = Home::sqlite();
        let _daemon = daemon.then(|| home.serve());
        let made = home.run(&["token", "new", "laptop"]).good();
        assert_eq!(made.out.trim().len(), 64, "only the secret is on stdout: {made:?}");
        assert_eq!(home.run(&["token", "new", "laptop"]).code, 1, "a name is given once");
        let list = home.run_json(&["token", "list"]);
        let laptop = list["items"].as_array().unwrap().iter().find(|token| token["name"] == "laptop").unwrap();
        assert!(!list.to_string().contains(made.out.trim()), "a list shows no secret");
        let id = laptop["id"].as_str().unwrap();
        assert_eq!(home.run_json(&["token", "revoke", id])["revoked"], id);
        let table = home.run(&["token", "list"]).good().out;
        let line = table.lines().find(|line| line.starts_with(id)).unwrap();
        assert_eq!(line.split_whitespace().count(), 6, "id, name, user, role, created, revoked: {line}");
        let unknown = home.run(&["token", "revoke", "tok_nothing"]);
        assert!(unknown.code == 1 && unknown.err.contains("token list"), "{unknown:?}");
    }
}

#[test]
fn the_doctor_finds_what_is_wrong() {
    use std::os::unix::fs::PermissionsExt;
    let home = Home::sqlite();
    let daemon = home.serve();
    let healthy = home.run_json(&["doctor"]);
    assert_eq!(healthy["ok"], true, "{healthy:#}");
    let what: Vec<_> = healthy["findings"].as_array().unwrap().iter().map(|f| f["what"].clone()).collect();
    let own = ["store", "disk", "daemon", "service", "program", "http", "agents", "git", "runs", "secrets", "clock"];
    assert_eq!(what, [&own[..], &["https", "models", "mcp", "engines", "folders", "browser", "research"]].concat());

    std::fs::set_permissions(home.data("token"), std::fs::Permissions::from_mode(0o644)).unwrap();
    let open = home.run(&["doctor"]);
    assert!(open.code == 1 && open.out.contains("chmod 600"), "{open:?}");
    std::fs::set_permissions(home.data("token"), std::fs::Permissions::from_mode(0o600)).unwrap();
    stop(daemon);
    let idle = home.run(&["doctor"]).good();
    assert!(idle.out.contains("start one with `matsu serve`"), "{idle:?}");

    let broken = home.path("broken.db");
    std::fs::write(&broken, "no store at all ".repeat(1_000)).unwrap();
    let sick = home.run(&["doctor", "--json", "--store", &format!("sqlite:{}", broken.display())]);
    assert_eq!((sick.code, &sick.json()["ok"]), (1, &json!(false)), "{sick:?}");
}

#[test]
fn the_doctor_names_a_git_that_is_too_old() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let home = Home::sqlite().with_variable("PATH", folder.path().display().to_string());
    let git = || {
        let found = home.run_json(&["doctor"])["findings"].as_array().unwrap().clone();
        found.into_iter().find(|finding| finding["what"] == "git").unwrap()
    };
    let none = git();
    assert!(none["state"] == "note" && none["detail"].as_str().unwrap().contains("is not installed"), "{none}");
    let say = |version: &str| {
        std::fs::write(folder.path().join("git"), format!("#!/bin/sh\necho git version {version}\n")).unwrap();
        std::fs::set_permissions(folder.path().join("git"), std::fs::Permissions::from_mode(0o755)).unwrap();
    };
    say("2.39.5");
    let old = git();
    assert!(old["state"] == "note" && old["detail"].as_str().unwrap().contains("2.41"), "{old}");
    assert!(old["advice"].as_str().unwrap().contains("change files in a repository"), "{old}");
    say("2.47.3");
    assert_eq!((git()["state"].as_str(), git()["detail"].as_str()), (Some("ok"), Some("git version 2.47.3")));
}

#[test]
fn the_doctor_names_another_matsu_that_comes_first_on_the_path() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let other = folder.path().join("matsu");
    let home = Home::sqlite().with_variable("PATH", format!("{}:/usr/bin:/bin", folder.path().display()));
    let program = || {
        let found = home.run_json(&["doctor"])["findings"].as_array().unwrap().clone();
        found.into_iter().find(|finding| finding["what"] == "program").unwrap()
    };
    assert_eq!(program()["state"], "ok", "nothing of that name is on the PATH");
    let say = |version: &str| {
        std::fs::write(&other, format!("#!/bin/sh\necho 'matsu {version}'\n")).unwrap();
        std::fs::set_permissions(&other, std::fs::Permissions::from_mode(0o755)).unwrap();
    };
    say("0.0.1");
    let older = program();
    assert_eq!(older["state"], "note", "{older}");
    let (detail, advice) = (older["detail"].as_str().unwrap(), older["advice"].as_str().unwrap());
    assert!(detail.contains("matsu 0.0.1") && detail.contains(other.to_str().unwrap()), "{older}");
    assert!(advice.contains(other.to_str().unwrap()), "{older}");
    say(env!("CARGO_PKG_VERSION"));
    assert_eq!(program()["state"], "ok", "a launcher of this version");
}

#[test]
fn limits_and_schema_are_printed_as_table_and_as_json() {
    let home = Home::sqlite();
    let limits = home.run_json(&["limits"]);
    let hold = limits.as_array().unwrap().iter().find(|limit| limit["name"] == "HOLD_MAX").unwrap();
    assert_eq!(hold["value"], "50 s");
    assert!(home.run(&["limits"]).good().out.contains("hold_max"));
    let migrated = home.run_json(&["migrate"]);
    assert_eq!(migrated["backend"], "sqlite");
    let again = home.run(&["migrate"]).good().out;
    assert!(again.contains(&format!("schema {}", migrated["schema_version"])), "{again}");
}

#[test]
fn completions_are_there_for_every_shell() {
    let home = Home::sqlite();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = run(home.bare(&["completions", shell])).good().out;
        assert!(script.contains("doctor"), "{shell}");
    }
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    let home = Home::sqlite();
    let mut command = home.bare(&["limits", "--json"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), String::from_utf8(output.stderr).unwrap()), (Some(0), String::new()));
}
