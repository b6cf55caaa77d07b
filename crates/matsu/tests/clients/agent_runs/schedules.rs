//! Work that starts by itself: through the command line and the daemon, across an end of the daemon.

use std::process::Stdio;
use std::time::Duration;

use matsu_core::clock::{Clock, Timestamp};
use serde_json::{Value, json};

use super::terminal::{Watching, lines_of};
use super::{Bench, SOON};
use crate::home::{kill, postgres_store, until};

/// A time so many seconds from now.
fn in_seconds(seconds: u64) -> String {
    Clock::system().now().plus(Duration::from_secs(seconds)).to_string()
}

fn add(bench: &Bench, name: &str, at: &str, script: &str) -> Value {
    bench.home.run(&["schedule", "add", "--at", at, "--name", name, "run", "script", script])
}

/// A research task of a schedule, its searches, and a time for what they take.
const RESEARCHED: Duration = Duration::from_secs(60);

/// What came of the times of a schedule, once the newest is settled.
fn history(bench: &Bench, name: &str) -> Vec<Value> {
    until("the schedule has fired", SOON, || {
        let page: Value = bench.home.run(&["schedule", "history", name]);
        let items = page["items"].as_array()?.clone();
        (!items.is_empty() && items[0]["state"] != "waiting").then_some(items)
    })
}

#[test]
fn a_schedule_starts_its_run_at_its_time_and_names_it() {
    let bench = Bench::new();
    let added = add(&bench, "soon", &in_seconds(2), "echo started by a schedule");
    assert!(added["next_at"].is_string() && added["paused"].is_null(), "{added}");
    let fired = history(&bench, "soon");
    assert_eq!(fired.len(), 1, "{fired:?}");
    assert_eq!(fired[0]["state"], "started", "{fired:?}");
    let task = fired[0]["task_id"].as_str().unwrap();
    let mut client = bench.client();
    let end = super::end_of(&mut client, task);
    assert_eq!(end["status"], "completed", "{end}");
    assert!(end["result"].as_str().unwrap().contains("started by a schedule"), "{end}");
    let listed: Value = bench.home.run(&["schedule", "list"]);
    assert!(listed["items"][0]["next_at"].is_null(), "it was for one time: {listed}");
    bench.home.run(&["schedule", "remove", "soon"]);
    let listed: Value = bench.home.run(&["schedule", "list"]);
    assert_eq!(listed["items"].as_array().unwrap().len(), 0, "{listed}");
}

#[test]
fn a_time_that_passes_without_a_daemon_is_made_up_for_once() {
    let bench = Bench::new();
    let at = in_seconds(4);
    add(&bench, "later", &at, "echo made up for");
    add(&bench, "paused", &at, "echo never");
    bench.home.run(&["schedule", "pause", "paused"]);
    std::fs::write(bench.home.data_dir().join("stopped"), "").unwrap();
    kill(bench.home.relayed().0);
    until("the time has passed", SOON, || (in_seconds(0) > at).then_some(()));
    let client = bench.client();
    let fired = history(&bench, "later");
    assert_eq!((fired.len(), fired[0]["state"].as_str()), (1, Some("started")), "{fired:?}");
    drop(client);
    let mut client = bench.client();
    let end = super::end_of(&mut client, fired[0]["task_id"].as_str().unwrap());
    assert_eq!(end["status"], "completed", "{end}");
    let paused: Value = bench.home.run(&["schedule", "history", "paused"]);
    assert_eq!(paused["items"].as_array().unwrap().len(), 0, "{paused}");
}

/// As if the machine had slept for so many minutes longer than it did.
fn put_back(bench: &Bench, minutes: i64) {
    let store = rusqlite::Connection::open(bench.home.data_dir().join("matsu.db")).unwrap();
    store.execute("UPDATE schedules SET next_at = next_at - ?1", [minutes * 60_000]).unwrap();
}

#[test]
fn of_several_missed_times_the_newest_counts_and_the_others_stand_in_the_history() {
    let bench = Bench::new();
    let add = |name: &str, more: &[&str]| {
        let wish = ["schedule", "add", "--every", "1h", "--name", name];
        bench.home.run(&[&wish[..], more, &["run", "script", "echo hourly"]].concat());
    };
    add("caught up", &[]);
    add("left out", &["--no-catch-up"]);
    let wish = ["schedule", "add", "* * * * *", "--name", "minutes", "--no-catch-up", "run", "script", "echo minutes"];
    bench.home.run(&wish);
    std::fs::write(bench.home.data_dir().join("stopped"), "").unwrap();
    kill(bench.home.relayed().0);
    put_back(&bench, 150);
    let began = Clock::system().now();
    let _client = bench.client();
    let due = |firing: &Value| Timestamp::parse(firing["due_at"].as_str().unwrap()).unwrap();
    let minutes_ago = |firing: &Value| began.since(due(firing)).as_secs() / 60;
    let caught_up = history(&bench, "caught up");
    assert_eq!((caught_up.len(), &caught_up[0]["state"]), (2, &json!("started")), "{caught_up:?}");
    assert!((29..=31).contains(&minutes_ago(&caught_up[0])), "the newest: {caught_up:?}");
    let left_out = history(&bench, "left out");
    let states = left_out.iter().map(|firing| firing["state"].as_str().unwrap()).collect::<Vec<_>>();
    assert_eq!(states, ["missed", "missed"], "{left_out:?}");
    let note = |firing: &Value| firing["note"].as_str().unwrap_or_default().to_owned();
    assert!(note(&left_out[0]).contains("does not make up for missed times"), "{left_out:?}");
    for earlier in [&caught_up[1], &left_out[1]] {
        assert_eq!(earlier["state"], "missed", "{earlier}");
        assert!(note(earlier).contains("only the newest missed time until"), "{earlier}");
        assert!((89..=91).contains(&minutes_ago(earlier)), "{earlier}");
    }
    // The newest of these was less than a minute ago, which is in time.
    let minutes = history(&bench, "minutes");
    let is_earlier = |firing: &&Value| minutes_ago(firing) > 100;
    let earlier = minutes.iter().find(is_earlier).unwrap_or_else(|| panic!("{minutes:?}"));
    assert!(earlier["state"] == "missed" && note(earlier).contains("only the newest missed time until"), "{minutes:?}");
    let newest = minutes.iter().rfind(|firing| !is_earlier(firing)).unwrap_or_else(|| panic!("{minutes:?}"));
    assert_eq!(newest["state"], "started", "{minutes:?}");
}

#[test]
fn what_cannot_be_scheduled_is_refused_with_what_is_expected() {
    let bench = Bench::new();
    let refused = |args: &[&str], expected: &str| {
        let output = bench.home.command(&[&["schedule", "add"], args].concat()).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && text.contains(expected), "{args:?}: {text}");
    };
    refused(&["* * * * * *", "run", "script", "true"], "five fields");
    refused(&["0 0 30 2 *", "run", "script", "true"], "never fire");
    refused(&["--every", "10s", "run", "script", "true"], "at least 60");
    refused(&["--tz", "Mars/Base", "0 7 * * *", "run", "script", "true"], "Europe/Berlin");
    refused(&["--at", "tomorrow", "run", "script", "true"], "2030-01-31");
    let past = ["--tz", "Europe/Berlin", "--at", "2020-01-31 07:00", "run", "script", "true"];
    refused(&past, "the time 2020-01-31T06:00:00Z has passed, it is ");
    refused(&past, "give a future time, such as ");
    refused(&["0 7 * * *", "run", "script", "true", "--mode", "everything"], "mode");
}

#[test]
fn an_agent_or_a_mode_that_cannot_be_used_is_refused_when_the_schedule_is_added() {
    let bench = Bench::with("[agents]\nmode_max = \"workspace-write\"\n");
    let refused = |args: &[&str], expected: &str| {
        let ran = bench.run(&[&["schedule", "add", "0 7 * * *", "--name", "never"], args].concat());
        assert!(ran.code != 0 && ran.err.contains(expected), "{args:?}: {ran:?}");
    };
    refused(&["run", "nope", "true"], "there is no agent nope; expected one of");
    refused(&["run", "script", "true", "--mode", "full"], "mode full is not allowed for script");
    refused(&["run", "script", "true", "--model", "x", "--fallback", "nope"], "there is no agent nope");
    let listed: Value = bench.home.run(&["schedule", "list"]);
    assert_eq!(listed["items"], json!([]), "nothing was added");
    let wish = ["schedule", "add", "0 7 * * *", "run", "script", "true", "--mode", "workspace-write"];
    let added = bench.run(&wish);
    assert!(added.code == 0 && added.out.contains("fires next at"), "{added:?}");
}

#[test]
fn a_start_that_fails_is_reported_to_the_owner_in_every_way() {
    let folder = tempfile::tempdir().unwrap();
    let notices = folder.path().join("notices");
    let bench = Bench::with(&format!(
        "[notify.mine]\nkind = \"command\"\nevents = \"failed\"\nmin_seconds = 3600\ncommand = \"cat >> {0}; echo >> {0}\"\n",
        notices.display()
    ));
    let mut watching = Watching(bench.shell(&["watch", "--lines"]).stdout(Stdio::piped()).spawn().unwrap());
    let lines = lines_of(&mut watching.0);
    let at = in_seconds(4);
    let wish = ["schedule", "add", "--at", &at, "--name", "nightly", "run", "script", "echo never"];
    assert_eq!(bench.run(&wish).code, 0);
    // Its folder is gone when its time comes.
    std::fs::remove_dir(&bench.root).unwrap();
    let fired = history(&bench, "nightly");
    assert_eq!((fired.len(), fired[0]["state"].as_str()), (1, Some("failed")), "{fired:?}");
    let why = fired[0]["note"].as_str().unwrap();
    let task = fired[0]["task_id"].as_str().unwrap();
    let line = lines.recv_timeout(SOON).unwrap();
    assert!(line.starts_with(&format!("{task} failed: schedule nightly could not start script")), "{line}");
    let notice = until("a notice has come", SOON, || {
        serde_json::from_str::<Value>(std::fs::read_to_string(&notices).ok()?.lines().next()?).ok()
    });
    assert_eq!((&notice["event"], &notice["task_id"]), (&json!("failed"), &json!(task)), "{notice}");
    assert_eq!(notice["title"], "failed: schedule nightly could not start script", "{notice}");
    let text = notice["text"].as_str().unwrap();
    assert!(text.contains(why) && text.contains("matsu schedule history nightly"), "{notice}");
    let output = bench.home.command(&["doctor", "--json"]).output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let found = report["findings"].as_array().unwrap().iter().find(|finding| finding["what"] == "starts");
    let found = found.unwrap_or_else(|| panic!("{report}"));
    assert!(found["state"] == "problem" && found["detail"].as_str().unwrap().contains(why), "{found}");
    let output = bench.home.command(&["retry", task]).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && error.contains("was never started"), "{error}");
    // A schedule that is gone needs no correction any more.
    bench.home.run(&["schedule", "remove", "nightly"]);
    let output = bench.home.command(&["doctor", "--json"]).output().unwrap();
    assert!(!String::from_utf8_lossy(&output.stdout).contains("nightly"), "{output:?}");
}

#[test]
fn a_schedule_starts_research_that_finds_what_is_in_its_folder() {
    let bench = Bench::new();
    let documents = bench.home.path("papers");
    std::fs::create_dir(&documents).unwrap();
    let text = "# Pines\n\nA long poll of a pine costs no query while it sleeps. Long polling is cheap.\n";
    std::fs::write(documents.join("pines.md"), text).unwrap();
    let at = in_seconds(2);
    let folder = documents.to_str().unwrap();
    let wish =
        ["schedule", "add", "--at", &at, "--name", "study", "research", "Is long polling cheap?", "--dir", folder];
    bench.home.run(&wish);
    let fired = history(&bench, "study");
    assert_eq!((fired.len(), fired[0]["state"].as_str()), (1, Some("started")), "{fired:?}");
    let task = fired[0]["task_id"].as_str().unwrap();
    let http = bench.home.relayed().1;
    let status = until("the searches are done", RESEARCHED, || {
        let status = http.says("get_status", &json!({ "task_id": task }));
        let searches = status["searches"].as_array()?;
        let is_open = |search: &Value| ["queued", "running"].contains(&search["status"].as_str().unwrap_or_default());
        (!searches.is_empty() && !searches.iter().any(is_open)).then(|| status.clone())
    });
    assert_ne!(status["searches"][0]["status"], "failed", "{status}");
    let found = http.says("get_materials", &json!({ "task_id": task }));
    assert!(found.to_string().contains("pines.md"), "{found}");
}

#[test]
fn two_daemons_on_one_postgres_fire_a_schedule_once() {
    let (mut one, mut two) = (Bench::new(), Bench::new());
    let url = postgres_store(&one.home);
    for bench in [&mut one, &mut two] {
        bench.home.set("MATSU_STORE_URL", &url);
    }
    let both = [one.home.serve(), two.home.serve()];
    // Several at the same moment, so that both nodes find some of them due at once.
    let names: Vec<String> = (0..6).map(|number| format!("same {number}")).collect();
    let at = in_seconds(6);
    for name in &names {
        add(&one, name, &at, "echo once");
    }
    for name in &names {
        let fired = history(&two, name);
        assert_eq!((fired.len(), fired[0]["state"].as_str()), (1, Some("started")), "{name}: {fired:?}");
    }
    // Another look of both nodes starts nothing more.
    std::thread::sleep(Duration::from_secs(6));
    let tasks = both[1].http().rest("GET", "/tasks", &Value::Null).json();
    assert_eq!(tasks["items"].as_array().unwrap().len(), names.len(), "{tasks}");
}
