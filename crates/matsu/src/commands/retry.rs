//! `matsu retry TASK`: the same work again, as a new task.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use serde_json::json;

use super::{Context, field, print_json};
use crate::cli::Global;
use crate::client::{Client, segment};

#[derive(Args)]
pub struct Retry {
    /// The task's id
    #[arg(value_parser = super::task_id)]
    pub task: String,
    /// Continue where its runs ended: in the same conversation and with the files that they left
    #[arg(long = "continue")]
    pub go_on: bool,
}

pub async fn run(cx: &Context, global: &Global, args: Retry) -> Result<ExitCode> {
    let client = Client::with_daemon(&cx.config, global).await?;
    let how = if args.go_on { "?continue=true" } else { "" };
    let task = client.post(&format!("/api/v1/tasks/{}/retry{how}", segment(&args.task)), json!({})).await?;
    if cx.json {
        print_json(&task);
        return Ok(ExitCode::SUCCESS);
    }
    let what = if args.go_on { "continues" } else { "repeats" };
    say!("{} {what} {}", field(&task, "task_id"), args.task);
    Ok(ExitCode::SUCCESS)
}
