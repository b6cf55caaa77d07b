//! `matsu discard TASK`: removes the branch of a run. Its commits stay under the task's own reference.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use serde_json::json;

use super::{Context, apply, field};
use crate::client::{Client, segment};

#[derive(Args)]
pub struct Discard {
    /// The task's id
    #[arg(value_parser = super::task_id)]
    pub task: String,
    /// The agent whose run is meant, if the task has several runs
    #[arg(long)]
    pub agent: Option<String>,
}

pub async fn run(cx: &Context, args: &Discard) -> Result<ExitCode> {
    let client = Client::connect(&cx.config).await?;
    let agent = args.agent.as_deref().map(|agent| format!("?agent={}", segment(agent))).unwrap_or_default();
    let said = client.post(&format!("/api/v1/tasks/{}/discard{agent}", segment(&args.task)), json!({})).await?;
    let done = match said["kept_by"].as_str() {
        Some(name) => format!("discarded; the commits are still at {name}: git show {name}"),
        None => {
            let head = field(&said["changes"], "head");
            format!(
                "discarded; no reference keeps the commits any more. Until git removes them, restore them with: git branch NAME {head}"
            )
        }
    };
    apply::show_done(cx, &said, &done);
    Ok(ExitCode::SUCCESS)
}
