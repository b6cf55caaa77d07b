//! How a task ended, or what it waits for: the result on stdout, everything else on stderr.

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use console::style;
use matsu_core::clock::Clock;
use serde_json::{Value, json};

use super::plain_text::{PlainText, plain};
use super::{checks, next_step, question};
use crate::client::{Client, DaemonUnreachable, field, segment};

/// Within this time another daemon takes the place of one that was killed.
const NEXT_DAEMON_MAX: Duration = Duration::from_secs(15);
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// The whole report of a task, as `get_task_status` has it. Reading it marks the result as read.
pub async fn report(client: &Client, task: &str) -> Result<Value> {
    over_daemons(async || client.post("/api/v1/tools/get_task_status", json!({ "task_id": task })).await).await
}

/// Asks again if the daemon ends just now: the next one answers the same.
pub async fn over_daemons<T>(ask: impl AsyncFn() -> Result<T>) -> Result<T> {
    let clock = Clock::system();
    let deadline = clock.instant() + NEXT_DAEMON_MAX;
    loop {
        match ask().await {
            Err(error) if error.is::<DaemonUnreachable>() && clock.instant() < deadline => {
                clock.sleep(LOOK_EVERY).await
            }
            answer => return answer,
        }
    }
}

/// The exit code of a command that waited for a task.
pub fn exit_code(status: &str) -> ExitCode {
    match status {
        "completed" | "finished" => ExitCode::SUCCESS,
        "failed" => ExitCode::from(3),
        "cancelled" => ExitCode::from(4),
        _ => ExitCode::from(NOT_ENDED),
    }
}

/// The wait ended before the task did.
pub const NOT_ENDED: u8 = 5;
/// The task asks a question, and here is no terminal to ask it.
pub const ASKS: u8 = 6;

/// What of a result stands on the terminal already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    Nothing,
    /// The run keeps no log of its own: what it printed is the result.
    Result,
}

/// Shows how a task ended, or where it stands.
pub async fn show(client: &Client, task: &str, report: &Value, shown: Shown) -> Result<()> {
    let status = field(report, "status");
    if shown == Shown::Nothing {
        show_result(client, task, report).await?;
    }
    if status == "failed" || status == "cancelled" {
        show_error(task, report);
    } else if let Some(failed) = report["failed_count"].as_i64().filter(|failed| *failed > 0) {
        eprintln!("{failed} of {} runs failed", report["results"].as_array().map_or(0, Vec::len));
    }
    checks::show(report);
    show_changes(report);
    if status == "input_required" {
        question::show_all(task, &question::open(client, task).await?);
    }
    Ok(())
}

fn show_error(task: &str, report: &Value) {
    let (status, error, code) = (field(report, "status"), field(report, "error"), field(report, "error_code"));
    let code = if code.is_empty() { code } else { format!(" ({code})") };
    // A task that was stopped has no error of its own.
    let (head, error) = match plain(&error) {
        error if error.is_empty() => (status, String::new()),
        error => (format!("{status}:"), format!(" {error}")),
    };
    eprintln!("{}{error}{code}", style(head).for_stderr().red().bold());
    let tail = field(report, "stderr_tail");
    if !tail.trim().is_empty() {
        eprintln!("{}", plain(&tail).trim_end());
    }
    if let Some(step) = next_step::of(&field(report, "error_code")) {
        eprintln!("Next: {}", step.replace("TASK", task));
    }
    if report["retryable"] == true {
        eprintln!("It may succeed later: matsu retry {task}");
    }
}

/// How much a run changed, as one short phrase: `2 files changed, +10 -3`.
pub fn size_of_changes(changes: &Value) -> String {
    let files = changes["files"].as_u64().unwrap_or_default();
    format!("{} changed, +{} -{}", checks::counted(files, "file"), changes["insertions"], changes["deletions"])
}

fn show_changes(report: &Value) {
    let of_jobs = report["results"].as_array().into_iter().flatten();
    for one in std::iter::once(report).chain(of_jobs) {
        let changes = &one["changes"];
        if changes.is_object() {
            eprintln!("{}. {}", size_of_changes(changes), plain(&field(changes, "how")));
        }
        let left = &one["left_work"];
        if left.is_object() {
            eprintln!("Files stay in {}: {}", plain(&field(left, "folder")), plain(&field(left, "why")));
        }
    }
}

/// The result, whole. Of several runs each one's, under its name.
pub async fn show_result(client: &Client, task: &str, report: &Value) -> Result<()> {
    let several = report["results"].as_array().cloned().unwrap_or_default();
    if several.is_empty() {
        if report["result"].is_string() && is_cut(report) {
            return read_whole(client, task, None).await;
        }
        let result = field(report, "result");
        if !result.is_empty() {
            show!("{}", plain(&result).trim_end());
        }
        return Ok(());
    }
    for job in &several {
        let (agent, status) = (field(job, "cli_name"), field(job, "status"));
        show!("{}", style(format!("── {agent}: {status}")).bold());
        match job["result"].as_str() {
            Some(_) if !agent.is_empty() => read_whole(client, task, Some(&agent)).await?,
            Some(result) => show!("{}", plain(result).trim_end()),
            None if job["error"].is_string() => show!("{}", plain(&field(job, "error"))),
            None => {}
        }
    }
    Ok(())
}

fn is_cut(report: &Value) -> bool {
    report["next_output_offset"].is_u64()
}

/// The whole result of a run, part after part.
async fn read_whole(client: &Client, task: &str, agent: Option<&str>) -> Result<()> {
    let agent = agent.map(|agent| format!("&agent={}", segment(agent))).unwrap_or_default();
    let (mut offset, mut text, mut out) = (0, PlainText::default(), std::io::stdout());
    let mut ends_line = true;
    loop {
        let path = format!("/api/v1/tasks/{}/log?result_only=true&offset={offset}{agent}", segment(task));
        let part = client.get(&path).await?;
        let shown = text.next(part["text"].as_str().unwrap_or_default());
        if !shown.is_empty() {
            ends_line = shown.ends_with('\n');
        }
        let _ = out.write_all(shown.as_bytes());
        let next = part["next_offset"].as_u64().unwrap_or(offset);
        if next <= offset || part["total"].as_u64().unwrap_or(0) <= next {
            break;
        }
        offset = next;
    }
    let _ = out.write_all(if ends_line { b"" } else { b"\n" });
    let _ = out.flush();
    Ok(())
}
