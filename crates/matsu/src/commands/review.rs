//! `matsu review TASK`: the patch in a pager, then what shall become of it: apply, discard, or back to the agent.

use std::io::IsTerminal;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use serde_json::json;

use super::{Context, apply, discard, field, print_json};
use crate::cli::Global;
use crate::client::{Client, segment};
use crate::terminal::ending::size_of_changes;
use crate::terminal::plain_text::plain;
use crate::terminal::prompt;
use crate::{config, process};

#[derive(Args)]
pub struct Review {
    /// The task's id
    #[arg(value_parser = super::task_id)]
    pub task: String,
    /// The agent whose run is meant, if the task has several runs
    #[arg(long)]
    pub agent: Option<String>,
    /// Do not ask; send this comment to the agent, which starts a new round in the same conversation and branch
    #[arg(long, value_name = "COMMENT", conflicts_with = "agent")]
    pub send_back: Option<String>,
}

/// What a person chose.
enum Choice {
    Apply,
    Discard,
    SendBack,
    Nothing,
}

pub async fn run(cx: &Context, global: &Global, args: Review) -> Result<ExitCode> {
    if let Some(comment) = &args.send_back {
        return send_back(cx, global, &args.task, comment).await;
    }
    let client = Client::connect(&cx.config).await?;
    let agent = args.agent.as_deref().map(|agent| format!("?agent={}", segment(agent))).unwrap_or_default();
    let said = client.get(&format!("/api/v1/tasks/{}/diff{agent}", segment(&args.task))).await?;
    if cx.json {
        print_json(&said);
        return Ok(ExitCode::SUCCESS);
    }
    let patch = plain(&field(&said, "patch"));
    if std::io::stdout().is_terminal() {
        process::page(&config::pager(), &patch)?;
    } else {
        say!("{}", patch.trim_end());
    }
    eprintln!("{}", size_of_changes(&said["changes"]));
    if !prompt::is_possible() {
        eprintln!("Next: matsu apply {0} · matsu discard {0} · matsu review {0} --send-back COMMENT", args.task);
        return Ok(ExitCode::SUCCESS);
    }
    let (task, agent) = (args.task, args.agent);
    match choose().await {
        Choice::Apply => {
            let args = apply::Apply { task, agent, show: false, merge: false, send_back: false, undo: false };
            apply::run(cx, global, &args).await
        }
        Choice::Discard => discard::run(cx, &discard::Discard { task, agent }).await,
        Choice::SendBack => {
            let Some(comment) = prompt::line("Comment: ").await else { return Ok(ExitCode::SUCCESS) };
            send_back(cx, global, &task, &comment).await
        }
        Choice::Nothing => Ok(ExitCode::SUCCESS),
    }
}

async fn choose() -> Choice {
    loop {
        let Some(typed) = prompt::line("(a)pply, (d)iscard, (s)end back with a comment, (q)uit: ").await else {
            return Choice::Nothing;
        };
        match typed.trim() {
            "a" => return Choice::Apply,
            "d" => return Choice::Discard,
            "s" => return Choice::SendBack,
            "q" | "" => return Choice::Nothing,
            other => eprintln!("{} is not one of a, d, s, q", plain(other)),
        }
    }
}

async fn send_back(cx: &Context, global: &Global, task: &str, comment: &str) -> Result<ExitCode> {
    let client = Client::with_daemon(&cx.config, global).await?;
    let body = json!({ "comment": comment });
    let next = client.post(&format!("/api/v1/tasks/{}/send-back", segment(task)), body).await?;
    if cx.json {
        print_json(&next);
    } else {
        say!("{} continues {task}", field(&next, "task_id"));
    }
    Ok(ExitCode::SUCCESS)
}
