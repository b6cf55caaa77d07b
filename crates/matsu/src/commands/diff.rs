//! `matsu diff TASK`: the patch of a run, byte for byte.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

use super::{Context, apply};
use crate::cli::Global;

#[derive(Args)]
pub struct Diff {
    /// The task's id
    #[arg(value_parser = super::task_id)]
    pub task: String,
    /// The agent whose run is meant, if the task has several runs
    #[arg(long)]
    pub agent: Option<String>,
}

pub async fn run(cx: &Context, global: &Global, args: Diff) -> Result<ExitCode> {
    let Diff { task, agent } = args;
    let show = apply::Apply { task, agent, show: true, merge: false, send_back: false, undo: false };
    apply::run(cx, global, &show).await
}
