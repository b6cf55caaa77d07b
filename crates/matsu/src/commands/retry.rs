//! `matsu retry TASK`: the same work again, as a new task.

use std::process::ExitCode;

use anyhow::Result;
use serde_json::json;

use super::{Context, field, print_json};
use crate::cli::TaskArg;
use crate::client::{Client, segment};

pub async fn run(cx: &Context, args: TaskArg) -> Result<ExitCode> {
    let client = Client::connect(&cx.config).await?;
    let task = client.post(&format!("/api/v1/tasks/{}/retry", segment(&args.task)), json!({})).await?;
    if cx.json {
        print_json(&task);
        return Ok(ExitCode::SUCCESS);
    }
    say!("{} runs {} again", field(&task, "task_id"), args.task);
    if !client.has_daemon() {
        say!("No daemon is running; the work waits for `matsu serve`.");
    }
    Ok(ExitCode::SUCCESS)
}
