//! `matsu status TASK [--wait]`: one task with its result, its error or its question; now, or at its end.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use console::style;
use matsu_core::clock::Clock;
use serde_json::{Value, json};

use super::{Context, field, merge, print_json};
use crate::cli::Global;
use crate::client::{Client, segment};
use crate::terminal::ending::{self, Shown};
use crate::terminal::follow::{Follow, Followed, Log, counts};
use crate::terminal::plain_text::plain_line;

#[derive(Args)]
pub struct Status {
    /// The task's id
    #[arg(value_parser = super::task_id)]
    pub task: String,
    /// Wait until the task has ended or asks a question
    #[arg(long)]
    pub wait: bool,
    /// With --wait: at most this many seconds
    #[arg(long, value_name = "SECONDS", requires = "wait")]
    pub timeout: Option<u64>,
}

pub async fn run(cx: &Context, global: &Global, args: Status) -> Result<ExitCode> {
    let mut client = Client::connect(&cx.config).await?;
    let path = format!("/api/v1/tasks/{}", segment(&args.task));
    let task = client.get(&path).await?;
    if !args.wait {
        let is_open = task["finished_at"].is_null();
        show(cx, &client, task).await?;
        client.say_if_alone(is_open && !cx.json);
        return Ok(ExitCode::SUCCESS);
    }
    let clock = Clock::system();
    let until = args.timeout.map(|seconds| clock.instant() + Duration::from_secs(seconds));
    if !client.has_daemon() && task["finished_at"].is_null() {
        client = Client::with_daemon(&cx.config, global).await?;
    }
    let follow = Follow { cx, client: &client, task: &args.task, agent: None, log: Log::No, until };
    let followed = follow.run().await?;
    if followed == Followed::Alone {
        followed.say_what_goes_on(&client, &args.task);
        return Ok(ExitCode::from(ending::NOT_ENDED));
    }
    let task = ending::over_daemons(async || client.get(&path).await).await?;
    let status = field(&task, "status");
    if !cx.json {
        followed.say_what_goes_on(&client, &args.task);
    }
    if followed != Followed::Left {
        show(cx, &client, task).await?;
    }
    Ok(match followed {
        Followed::Ended(_) => ending::exit_code(&status),
        Followed::Asks(_) => ExitCode::from(ending::ASKS),
        Followed::TimeUp | Followed::Left | Followed::Alone => ExitCode::from(ending::NOT_ENDED),
    })
}

async fn show(cx: &Context, client: &Client, mut task: Value) -> Result<()> {
    let id = field(&task, "task_id");
    let report = ending::report(client, &id).await?;
    if cx.json {
        add(&mut task, report);
        task["daemon"] = json!(client.has_daemon());
        print_json(&task);
        return Ok(());
    }
    say!("{}  {}", id, style(plain_line(&field(&task, "title"))).bold());
    let message = plain_line(&field(&report, "status_message"));
    let message = if message.is_empty() { message } else { format!(" ({message})") };
    say!("  status    {}{message}", field(&report, "status"));
    say!("  jobs      {}", counts(&task));
    let progress = plain_line(&field(&report, "progress"));
    if !progress.is_empty() {
        say!("  progress  {progress}");
    }
    let confinement = field(&report, "confinement");
    if !confinement.is_empty() {
        say!("  confined  {confinement}");
    }
    if !task["review"].is_null() {
        let next = field(&task, "next_task_id");
        let next = if next.is_empty() { next } else { format!(" (continues as {next})") };
        say!("  changes   {}{next}", field(&task, "review"));
    }
    say!("  created   {}", field(&task, "created_at"));
    if !task["finished_at"].is_null() {
        say!("  finished  {}", field(&task, "finished_at"));
    }
    // A task of agents without an agent is a merge; its result is a table.
    let is_merge = task["kind"] == "agent" && task["agents"].as_array().is_some_and(Vec::is_empty);
    if is_merge && let Ok(said) = client.get(&format!("/api/v1/tasks/{}/merge", segment(&id))).await {
        merge::show(&said);
        return ending::show(client, &id, &report, Shown::Result).await;
    }
    ending::show(client, &id, &report, Shown::Nothing).await
}

/// What the report says beside the task itself.
fn add(task: &mut Value, report: Value) {
    let (Value::Object(fields), Value::Object(report)) = (task, report) else { return };
    for (name, value) in report {
        fields.entry(name).or_insert(value);
    }
}
