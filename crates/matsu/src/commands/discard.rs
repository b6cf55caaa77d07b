//! `matsu discard TASK`: removes the branch of a run. Its commits stay under the task's own reference.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use serde_json::json;

use super::{Context, apply};
use crate::client::{Client, segment};

#[derive(Args)]
pub struct Discard {
    /// The task's id
    pub task: String,
    /// Of several runs: which agent's
    #[arg(long)]
    pub agent: Option<String>,
}

pub async fn run(cx: &Context, args: &Discard) -> Result<ExitCode> {
    let client = Client::connect(&cx.config).await?;
    let agent = args.agent.as_deref().map(|agent| format!("?agent={}", segment(agent))).unwrap_or_default();
    let said = client.post(&format!("/api/v1/tasks/{}/discard{agent}", segment(&args.task)), json!({})).await?;
    apply::show_done(cx, &said, &format!("discarded; git show refs/matsu/{}/head still has them", args.task));
    Ok(ExitCode::SUCCESS)
}
