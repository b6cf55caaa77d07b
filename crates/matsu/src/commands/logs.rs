//! `matsu logs TASK [-f]`: what a run was doing, and as it happens; then its result, its error or its question.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use serde_json::json;

use super::{Context, field};
use crate::cli::Global;
use crate::client::{Client, segment};
use crate::terminal::ending;
use crate::terminal::follow::{Follow, Followed, Log};

#[derive(Args)]
pub struct Logs {
    /// The task's id
    #[arg(value_parser = super::task_id)]
    pub task: String,
    /// Follow the log until the task has ended
    #[arg(short, long)]
    pub follow: bool,
    /// The agent whose run is meant, if the task has several runs
    #[arg(long)]
    pub agent: Option<String>,
}

pub async fn run(cx: &Context, global: &Global, args: &Logs) -> Result<ExitCode> {
    let mut client = Client::connect(&cx.config).await?;
    let task = client.get(&format!("/api/v1/tasks/{}", segment(&args.task))).await?;
    if args.follow && !client.has_daemon() && task["finished_at"].is_null() {
        client = Client::with_daemon(&cx.config, global).await?;
    }
    let (agent, log) = (args.agent.as_deref(), Log::Stdout);
    let follow = Follow { cx, client: &client, task: &args.task, agent, log, until: None };
    if args.follow {
        let followed = follow.run().await?;
        let code = super::run::end(cx, &client, &args.task, &followed).await?;
        // The log was shown to its end, whatever the task came to.
        return Ok(if matches!(followed, Followed::Ended(_)) { ExitCode::SUCCESS } else { code });
    }
    let shown = follow.everything_so_far().await?;
    let report = ending::report(&client, &args.task).await?;
    if cx.json {
        say!("{}", json!({ "event": "end", "task": report }));
        return Ok(ExitCode::SUCCESS);
    }
    if task["finished_at"].is_null() && report["question"].is_null() {
        eprintln!("{} is {}; matsu logs -f follows it", args.task, field(&report, "status"));
    }
    client.say_if_alone(task["finished_at"].is_null());
    ending::show(&client, &args.task, &report, shown).await?;
    Ok(ExitCode::SUCCESS)
}
