//! `matsu stop TASK`: graceful, or at once with `--now`.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use serde_json::json;

use super::{Context, field, print_json};
use crate::client::{Client, segment};

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
    let report = client.patch(&format!("/api/v1/tasks/{}", segment(&args.task)), body).await?;
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
