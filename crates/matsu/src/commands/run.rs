//! `matsu run AGENT MESSAGE`: gives work to an agent and follows it to its end. Ending this command ends only the
//! following; the work goes on.

use std::io::Read;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::Args;
use serde_json::{Map, Value, json};

use super::logs::follow;
use super::{Context, field, print_json};
use crate::client::{Client, segment};

#[derive(Args)]
pub struct Run {
    /// The agent's name; see `matsu agents`
    pub agent: String,
    /// What it shall do; `-` reads it from stdin
    pub message: String,
    /// What it may touch: read-only, workspace-write or full
    #[arg(long)]
    pub mode: Option<String>,
    /// A name for the conversation
    #[arg(long, value_name = "NAME")]
    pub session: Option<String>,
    /// Go on with the conversation of that name
    #[arg(long, requires = "session")]
    pub resume: bool,
    #[arg(long)]
    pub model: Option<String>,
    /// A file with a system prompt
    #[arg(long, value_name = "FILE")]
    pub system: Option<PathBuf>,
    /// Seconds it may run
    #[arg(long, value_name = "SECONDS")]
    pub timeout: Option<u32>,
    /// Print the task's id and return at once
    #[arg(short, long)]
    pub detach: bool,
}

pub async fn run(cx: &Context, args: Run) -> Result<ExitCode> {
    let detach = args.detach;
    let client = Client::connect(&cx.config).await?;
    let started = client.post_from_here("/api/v1/tasks", Value::Object(wish(args)?)).await?;
    let task = field(&started, "task_id");
    if detach || !client.has_daemon() {
        if cx.json {
            print_json(&started);
        } else {
            say!("{task}");
        }
        if !client.has_daemon() {
            eprintln!("No daemon is running; the work waits for `matsu serve`.");
        }
        return Ok(ExitCode::SUCCESS);
    }
    if !cx.json {
        eprintln!("{task}  {}", field(&started, "message"));
    }
    follow(cx, &client, &task, None).await?;
    let end = client.post("/api/v1/tools/get_task_status", json!({ "task_id": task })).await?;
    if cx.json {
        print_json(&end);
    } else {
        tell(&end);
    }
    let status = client.get(&format!("/api/v1/tasks/{}", segment(&task))).await?;
    Ok(match status["status"].as_str() {
        Some("completed") => ExitCode::SUCCESS,
        Some("failed") => ExitCode::from(3),
        Some("cancelled") => ExitCode::from(4),
        _ => ExitCode::from(5),
    })
}

/// What the log did not say: how it ended, and what it changed.
fn tell(end: &Value) {
    if end["status"] != "completed" {
        eprintln!("{}: {}", field(end, "status"), field(end, "error"));
        eprintln!("{}", field(end, "stderr_tail").trim_end());
    }
    let changes = &end["changes"];
    if changes.is_object() {
        let (files, more, less) = (&changes["files"], &changes["insertions"], &changes["deletions"]);
        eprintln!("{files} files changed, +{more} -{less}. {}", field(changes, "how"));
    }
}

fn wish(args: Run) -> Result<Map<String, Value>> {
    let mut message = args.message;
    if message == "-" {
        message.clear();
        std::io::stdin().read_to_string(&mut message).context("cannot read the message from stdin")?;
    }
    let mut wish = Map::new();
    wish.insert("kind".to_owned(), json!("agent"));
    wish.insert("cli_name".to_owned(), json!(args.agent));
    wish.insert("message".to_owned(), json!(message));
    for (name, value) in [("mode", args.mode), ("session_id", args.session), ("model", args.model)] {
        wish.extend(value.map(|value| (name.to_owned(), json!(value))));
    }
    if args.resume {
        wish.insert("resume".to_owned(), json!(true));
    }
    wish.extend(args.timeout.map(|seconds| ("timeout".to_owned(), json!(seconds))));
    if let Some(file) = args.system {
        let text = std::fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        wish.insert("system_prompt".to_owned(), json!(text));
    }
    Ok(wish)
}
