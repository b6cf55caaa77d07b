//! `matsu stop TASK`: graceful, or at once with `--now`.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use matsu_core::id::JobId;
use serde_json::json;

use super::{Context, field, print_json};
use crate::client::{Client, segment};
use crate::compose;

#[derive(Args)]
pub struct Stop {
    /// The task's id
    pub task: String,
    /// End running jobs at once, without their result
    #[arg(long)]
    pub now: bool,
}

pub async fn run(cx: &Context, args: Stop) -> Result<ExitCode> {
    let client = Client::connect(&cx.config).await?;
    let mode = if args.now { "immediate" } else { "graceful" };
    if !args.now && !cx.json && client.has_daemon() {
        eprintln!("Running jobs may end within 30 seconds and keep their results; --now ends them at once.");
    }
    let body = json!({ "status": "cancelled", "mode": mode });
    let path = format!("/api/v1/tasks/{}", segment(&args.task));
    let report = client.patch(&path, body).await?;
    if !client.has_daemon() {
        // No daemon is there that would end them.
        let jobs = client.get(&format!("{path}/jobs?limit=100")).await?;
        let host = compose::agents(&cx.config);
        for job in jobs["items"].as_array().into_iter().flatten().filter_map(|job| job["id"].as_str()) {
            host.give_up(&JobId::from_text(job), None).await;
        }
    }
    if cx.json {
        print_json(&report);
        return Ok(ExitCode::SUCCESS);
    }
    let status = field(&report["task"], "status");
    if report["was_terminal"] == true {
        say!("{} had already ended: {status}", args.task);
    } else {
        let cancelled = &report["cancelled"];
        say!(
            "{}: {status}; cancelled {} waiting and {} running jobs",
            args.task,
            cancelled["queued"],
            cancelled["running"]
        );
    }
    Ok(ExitCode::SUCCESS)
}
