//! News stays in its project, also if a person or a schedule has started the work.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use matsu_core::clock::Clock;
use serde_json::{Value, json};

use super::{Bench, SOON};
use crate::home::until;
use crate::stdio::Client;

/// A folder of its own beside the first.
fn other_project(bench: &Bench) -> PathBuf {
    let other = bench.home.path("other project");
    std::fs::create_dir_all(&other).unwrap();
    other
}

fn client_in(bench: &Bench, folder: &PathBuf) -> Client {
    let mut command = bench.home.command(&["mcp", "--tools", "all", "--root", "."]);
    command.current_dir(folder);
    Client::shaken(command)
}

/// The ids that a client in this folder finds.
fn listed(bench: &Bench, folder: &PathBuf) -> Vec<String> {
    let said = client_in(bench, folder).call("get_task_status", &json!({}));
    said["tasks"].as_array().unwrap().iter().map(|task| task["task_id"].as_str().unwrap().to_owned()).collect()
}

/// What the hook of a client says that wants to end its turn in this folder.
fn hook_in(bench: &Bench, folder: &PathBuf) -> String {
    let mut command = bench.home.command(&["hook", "stop"]);
    let output = command.current_dir(folder).stdin(Stdio::null()).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn what_a_person_or_a_schedule_starts_is_news_in_its_own_project_only() {
    let bench = Bench::new();
    let other = other_project(&bench);
    let in_project = |args: &[&str]| -> Value {
        let output = bench.home.command(&[&["--json"], args].concat()).current_dir(&bench.root).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let why = String::from_utf8_lossy(&output.stderr).into_owned();
        serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}{why}"))
    };
    let of_person =
        in_project(&["run", "script", "echo by a person", "--detach"])["task_id"].as_str().map(str::to_owned);
    let soon = Clock::system().now().plus(Duration::from_secs(2)).to_string();
    in_project(&["schedule", "add", "--at", &soon, "--name", "soon", "run", "script", "echo by a schedule"]);
    let of_schedule = until("the schedule has fired", SOON, || {
        let page = in_project(&["schedule", "history", "soon"]);
        page["items"][0]["task_id"].as_str().map(str::to_owned)
    });
    let started = [of_person.unwrap(), of_schedule];
    let (_, http) = bench.home.relayed();
    for task in &started {
        let status = || http.rest("GET", &format!("/tasks/{task}"), &Value::Null).json()["status"].clone();
        until("it has ended", SOON, || (status() == "completed").then_some(()));
    }
    assert_eq!(listed(&bench, &other), Vec::<String>::new());
    assert_eq!(hook_in(&bench, &other), "");
    let mut here = listed(&bench, &bench.root);
    here.sort();
    let mut all = started.to_vec();
    all.sort();
    assert_eq!(here, all);
    let hook = hook_in(&bench, &bench.root);
    assert!(all.iter().all(|task| hook.contains(task.as_str())), "{hook}");
}
