//! `matsu stop TASK`: graceful, or at once with `--now`.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use hyper::Method;
use matsu_core::id::JobId;
use serde_json::json;

use super::{Context, field, print_json};
use crate::cli::Global;
use crate::client::{Client, Next, segment};

#[derive(Args)]
pub struct Stop {
    /// The task's id
    #[arg(value_parser = super::task_id)]
    pub task: String,
    /// End running jobs at once, without their result
    #[arg(long)]
    pub now: bool,
}

pub async fn run(cx: &Context, global: &Global, args: Stop) -> Result<ExitCode> {
    let mut client = Client::to_stop(&cx.config).await?;
    let mode = if args.now { "immediate" } else { "graceful" };
    if !args.now && !cx.json {
        eprintln!("Waiting up to 30 s for running jobs, which keep their results; --now stops at once.");
    }
    let body = json!({ "status": "cancelled", "mode": mode });
    let path = format!("/api/v1/tasks/{}", segment(&args.task));
    let next = Next { config: &cx.config, global };
    let report = client.ask(next, Method::PATCH, &path, Some(body)).await?;
    if !client.has_daemon() {
        // No daemon is there that would end them.
        let jobs = client.get(&format!("{path}/jobs?limit=100")).await?;
        let ids = jobs["items"].as_array().into_iter().flatten().filter_map(|job| job["id"].as_str());
        client.end_stopped(&ids.map(JobId::from_text).collect::<Vec<_>>()).await?;
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
