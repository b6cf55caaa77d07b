//! `matsu status TASK [--wait]`: one task, now or at its end.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use matsu_core::clock::Clock;
use serde_json::Value;

use super::{Context, field, print_json};
use crate::client::{Client, segment};

#[derive(Args)]
pub struct Status {
    /// The task's id
    pub task: String,
    /// Wait until the task has ended
    #[arg(long)]
    pub wait: bool,
    /// With --wait: at most this many seconds
    #[arg(long, value_name = "SECONDS", requires = "wait")]
    pub timeout: Option<u64>,
}

/// One call waits this long at most; the server may hold it shorter.
const ONE_WAIT_SECONDS: u64 = 50;

pub async fn run(cx: &Context, args: Status) -> Result<ExitCode> {
    let client = Client::connect(&cx.config).await?;
    if !args.wait {
        let task = client.get(&format!("/api/v1/tasks/{}", segment(&args.task))).await?;
        show(cx, &task);
        return Ok(ExitCode::SUCCESS);
    }
    let task = wait(&client, &args).await?;
    show(cx, &task);
    Ok(match task["status"].as_str() {
        Some("completed" | "finished") => ExitCode::SUCCESS,
        Some("failed") => ExitCode::from(3),
        Some("cancelled") => ExitCode::from(4),
        _ => ExitCode::from(5),
    })
}

/// Long waits, one after the other, until the task has ended or time is up.
async fn wait(client: &Client, args: &Status) -> Result<Value> {
    let clock = Clock::system();
    let began = clock.instant();
    let bar = spinner();
    let mut since = 0;
    loop {
        let left = match args.timeout {
            Some(limit) => limit.saturating_sub((clock.instant() - began).as_secs()),
            None => ONE_WAIT_SECONDS,
        };
        let path = format!(
            "/api/v1/tasks/{}/wait?timeout={}&since={since}&wait_for=any",
            segment(&args.task),
            left.min(ONE_WAIT_SECONDS)
        );
        let reply = client.get(&path).await?;
        let task = &reply["task"];
        bar.set_message(format!("{} {}", field(task, "status"), counts(task)));
        since = reply["next"]["since"].as_i64().unwrap_or(since);
        let ended = matches!(task["status"].as_str(), Some("completed" | "finished" | "failed" | "cancelled"));
        if ended || left == 0 {
            bar.finish_and_clear();
            return Ok(task.clone());
        }
        if reply["returned_because"] == "idle" {
            // Nothing is left to run, yet the task stays open: look again at a calm pace.
            clock.sleep(Duration::from_secs(1)).await;
        }
    }
}

/// Hidden by itself where there is no terminal.
fn spinner() -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed} {msg}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(120));
    bar
}

fn counts(task: &Value) -> String {
    let jobs = &task["jobs"];
    let names = ["queued", "running", "awaiting_auth", "awaiting_input", "completed", "failed", "cancelled"];
    let some = names.iter().filter(|name| jobs[**name].as_i64().is_some_and(|jobs| jobs > 0));
    some.map(|name| format!("{} {name}", jobs[*name])).collect::<Vec<_>>().join(", ")
}

fn show(cx: &Context, task: &Value) {
    if cx.json {
        print_json(task);
        return;
    }
    say!("{}  {}", field(task, "task_id"), field(task, "title"));
    say!("  status    {}{}", field(task, "status"), suffix(&field(task, "status_message")));
    say!("  jobs      {}", counts(task));
    say!("  created   {}", field(task, "created_at"));
    if !task["finished_at"].is_null() {
        say!("  finished  {}", field(task, "finished_at"));
    }
}

fn suffix(message: &str) -> String {
    if message.is_empty() { String::new() } else { format!(" ({message})") }
}
