//! `matsu diff TASK`: the patch of a run, byte for byte.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

use super::{Context, apply};

#[derive(Args)]
pub struct Diff {
    /// The task's id
    pub task: String,
    /// Of several runs: which agent's
    #[arg(long)]
    pub agent: Option<String>,
}

pub async fn run(cx: &Context, args: Diff) -> Result<ExitCode> {
    let show = apply::Apply { task: args.task, agent: args.agent, show: true, merge: false, undo: false };
    apply::run(cx, &show).await
}
