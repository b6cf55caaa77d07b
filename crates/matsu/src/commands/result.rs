//! `matsu result TASK`: the result and nothing else on stdout, whole.

use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Args;

use super::export::report as research_report;
use super::{Context, field, print_json};
use crate::client::{Client, segment};
use crate::terminal::ending::{self, Shown};

#[derive(Args)]
pub struct Show {
    /// The task's id
    #[arg(value_parser = super::task_id)]
    pub task: String,
}

pub async fn run(cx: &Context, args: &Show) -> Result<ExitCode> {
    let client = Client::connect(&cx.config).await?;
    let task = client.get(&format!("/api/v1/tasks/{}", segment(&args.task))).await?;
    let report = ending::report(&client, &args.task).await?;
    let status = field(&report, "status");
    if cx.json {
        print_json(&report);
        return Ok(ending::exit_code(&status));
    }
    if task["kind"] == "research" {
        say!("{}", research_report(&client, &args.task, "text").await?.trim_end());
        return Ok(ending::exit_code(&status));
    }
    client.say_if_alone(task["finished_at"].is_null());
    if task["finished_at"].is_null() && status != "input_required" {
        bail!("{} has no result yet, it is {status}; wait for it with: matsu status {} --wait", args.task, args.task);
    }
    ending::show(&client, &args.task, &report, Shown::Nothing).await?;
    Ok(if status == "input_required" { ExitCode::from(ending::ASKS) } else { ending::exit_code(&status) })
}
