//! `matsu logs TASK [-f]`: what a run was doing, and as it happens.

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use indicatif::ProgressBar;
use serde_json::Value;

use super::{Context, field, print_json};
use crate::client::{Client, segment};

#[derive(Args)]
pub struct Logs {
    /// The task's id
    pub task: String,
    /// Go on until the task has ended
    #[arg(short, long)]
    pub follow: bool,
    /// Of several runs: which agent's
    #[arg(long)]
    pub agent: Option<String>,
}

pub async fn run(cx: &Context, args: &Logs) -> Result<ExitCode> {
    let client = Client::connect(&cx.config).await?;
    if args.follow {
        follow(cx, &client, &args.task, args.agent.as_deref()).await?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut offset = 0;
    loop {
        let part = read(&client, &args.task, args.agent.as_deref(), offset).await?;
        show(cx, &part);
        offset = part["next_offset"].as_u64().unwrap_or(offset);
        if part["total"].as_u64().unwrap_or(0) <= offset {
            return Ok(ExitCode::SUCCESS);
        }
    }
}

/// Shows what is said until the task has ended.
pub async fn follow(cx: &Context, client: &Client, task: &str, agent: Option<&str>) -> Result<()> {
    let bar = ProgressBar::new_spinner();
    bar.enable_steady_tick(Duration::from_millis(120));
    let mut offset = 0;
    loop {
        let part = read(client, task, agent, offset).await?;
        bar.suspend(|| show(cx, &part));
        bar.set_message(field(&part, "status"));
        offset = part["next_offset"].as_u64().unwrap_or(offset);
        let is_read = part["total"].as_u64().unwrap_or(0) <= offset;
        let ended = matches!(part["status"].as_str(), Some("completed" | "failed" | "cancelled"));
        if ended && is_read {
            bar.finish_and_clear();
            return Ok(());
        }
        if is_read {
            // Whatever is said becomes progress, which moves the revision within a second.
            let since = part["revision"].as_i64().unwrap_or(0);
            let path = format!("/api/v1/tasks/{}/wait?timeout=5&since={since}&wait_for=any", segment(task));
            client.get(&path).await?;
        }
    }
}

async fn read(client: &Client, task: &str, agent: Option<&str>, offset: u64) -> Result<Value> {
    let agent = agent.map(|agent| format!("&agent={}", segment(agent))).unwrap_or_default();
    client.get(&format!("/api/v1/tasks/{}/log?offset={offset}{agent}", segment(task))).await
}

fn show(cx: &Context, part: &Value) {
    if cx.json {
        print_json(part);
        return;
    }
    let mut out = std::io::stdout();
    let _ = out.write_all(part["text"].as_str().unwrap_or_default().as_bytes());
    let _ = out.flush();
}
