//! Agents through a real client and the real binary, with scripted command lines: the message is the script.

mod apply_faults;
mod applying;
mod arguments;
mod budgets;
mod built_in;
mod chaos;
pub mod connect_back;
mod costs;
mod definitions;
mod dependencies;
mod endings;
mod faults;
pub mod figures;
mod git_attacks;
mod hosts;
mod liars;
mod limits;
mod listing;
pub mod memory;
mod merging;
mod outage;
mod output;
mod prepared;
mod projects;
mod proofs;
mod questions;
mod receipts;
mod recovery;
mod refusals;
mod repositories;
mod restarts;
mod schedules;
mod secrets;
mod sessions;
mod starting;
mod stopping;
mod surroundings;
mod survival;
pub mod suspend;
mod terminal;
mod trees;
mod truth;
mod waits;
pub mod worktrees;
mod zoo;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::home::{Home, until};
use crate::stdio::Client;

/// How long something that takes a moment may take on a busy machine.
const SOON: Duration = Duration::from_secs(20);

/// A home with the scripted agents, a root for them, and settings.
struct Bench {
    home: Home,
    root: PathBuf,
}

impl Bench {
    fn new() -> Self {
        Self::with("")
    }

    /// With more settings.
    fn with(settings: &str) -> Self {
        let home = Home::new();
        let root = home.path("project");
        std::fs::create_dir_all(&root).unwrap();
        let config = home.path(".config/matsu");
        matsu_testkit::fake_agents::write(&config.join("agents")).unwrap();
        std::fs::write(config.join("config.toml"), settings).unwrap();
        Self { home, root }
    }

    fn client(&self) -> Client {
        Client::legacy(&self.home, &["--root", self.root.to_str().unwrap()])
    }
}

/// Starts a script in the background and returns its task.
#[track_caller]
fn start(client: &mut Client, script: &str) -> String {
    start_with(client, script, json!({}))
}

#[track_caller]
fn start_with(client: &mut Client, script: &str, more: Value) -> String {
    let mut arguments = json!({ "cli_name": "script", "message": script, "run_async": true });
    arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let said = client.call("use_agent", &arguments);
    said["task_id"].as_str().unwrap_or_else(|| panic!("{said}")).to_owned()
}

/// The end of a task, waited for.
#[track_caller]
fn end_of(client: &mut Client, task: &str) -> Value {
    for _ in 0..20 {
        let said = client.call("get_task_status", &json!({ "task_id": task, "timeout": 20, "wait_for": "all" }));
        if ["completed", "failed", "cancelled"].contains(&said["status"].as_str().unwrap_or_else(|| panic!("{said}"))) {
            return said;
        }
    }
    panic!("{task} does not end");
}

/// Waits until a task is where it should be.
#[track_caller]
fn reaches(client: &mut Client, task: &str, status: &str) -> Value {
    until(&format!("{task} is {status}"), SOON, || {
        let said = client.call("get_task_status", &json!({ "task_id": task }));
        (said["status"] == status).then_some(said)
    })
}

/// A number of seconds that no other process sleeps for.
fn unique_sleep() -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(1);
    format!("7{}.{:03}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Writes a script that can be started at once. Another process writes it: a file that this one has open for writing
/// may be inherited for a moment by a child of another test, and the kernel starts no program that is open so.
#[track_caller]
pub fn program(path: &Path, script: &str) {
    let mut shell = Command::new("sh");
    shell.args(["-c", "cat > \"$1\" && chmod 755 \"$1\"", "sh"]).arg(path).stdin(Stdio::piped());
    let mut shell = shell.spawn().unwrap();
    write!(shell.stdin.take().unwrap(), "#!/bin/sh\n{script}\n").unwrap();
    assert!(shell.wait().unwrap().success());
}

/// How many processes have this among their arguments.
pub fn processes(argument: &str) -> usize {
    pids(argument).len()
}

/// The processes that have this among their arguments.
pub fn pids(argument: &str) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").unwrap().filter_map(|entry| Some(entry.ok()?.path()));
    let names = |path: &Path| {
        let line = std::fs::read(path.join("cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).any(|part| part == argument.as_bytes())
    };
    entries.filter(|path| names(path)).filter_map(|path| path.file_name()?.to_str()?.parse().ok()).collect()
}
