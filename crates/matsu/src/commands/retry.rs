//! `matsu retry TASK`: the same work again, as a new task.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use serde_json::json;

use super::{Context, field, print_json};
use crate::client::{Client, segment};

#[derive(Args)]
pub struct Retry {
    /// The task's id
    pub task: String,
    /// Go on where its runs ended: in the same conversation and with the files they left
    #[arg(long = "continue")]
    pub go_on: bool,
}

pub async fn run(cx: &Context, args: Retry) -> Result<ExitCode> {
    let client = Client::connect(&cx.config).await?;
    let how = if args.go_on { "?continue=true" } else { "" };
    let task = client.post(&format!("/api/v1/tasks/{}/retry{how}", segment(&args.task)), json!({})).await?;
    if cx.json {
        print_json(&task);
        return Ok(ExitCode::SUCCESS);
    }
    let what = if args.go_on { "goes on with" } else { "runs again what was" };
    say!("{} {what} {}", field(&task, "task_id"), args.task);
    if !client.has_daemon() {
        say!("No daemon is running; the work waits for `matsu serve`.");
    }
    Ok(ExitCode::SUCCESS)
}
