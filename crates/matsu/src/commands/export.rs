//! `matsu export TASK`: the report of a research task in the form of a file, or the task with its evidence, whole.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::Args;
use serde_json::{Value, json};

use super::{Context, field};
use crate::client::{Client, segment};
use crate::terminal::plain_text::plain;

#[derive(Args)]
pub struct Export {
    /// The task's id
    #[arg(value_parser = super::task_id)]
    pub task: String,
    /// The report as markdown, text or html (one file); its sources as bibtex or csl (CSL-JSON); or json: the report
    /// with all claims and their evidence
    #[arg(long, default_value = "markdown", value_parser = ["markdown", "text", "html", "bibtex", "csl", "json"])]
    pub format: String,
    /// Write to this file instead of standard output
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

pub async fn run(cx: &Context, args: Export) -> Result<ExitCode> {
    let client = Client::connect(&cx.config).await?;
    let text = if cx.json || args.format == "json" {
        let status = client.get(&format!("/api/v1/tasks/{}/searches", segment(&args.task))).await?;
        let claims = all_claims(&client, &args.task).await?;
        let report = client.get(&format!("/api/v1/tasks/{}/report", segment(&args.task))).await?;
        let mut whole = json!({ "task": status, "report": report["report"], "claims": claims });
        make_plain(&mut whole);
        format!("{whole:#}\n")
    } else {
        plain(&report(&client, &args.task, &args.format).await?)
    };
    match &args.out {
        Some(out) => std::fs::write(out, text).with_context(|| format!("cannot write {}", out.display()))?,
        None => say!("{}", text.trim_end()),
    }
    Ok(ExitCode::SUCCESS)
}

/// Removes from every text what a terminal would obey: the file may be shown on one.
fn make_plain(value: &mut Value) {
    match value {
        Value::String(text) => *text = plain(text),
        Value::Array(values) => values.iter_mut().for_each(make_plain),
        Value::Object(fields) => fields.values_mut().for_each(make_plain),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Every claim of a task, page after page.
pub async fn all_claims(client: &Client, task: &str) -> Result<Vec<Value>> {
    let mut claims = Vec::new();
    let mut cursor = String::new();
    loop {
        let path =
            format!("/api/v1/tasks/{}/materials?detail=full&limit=200&cursor={}", segment(task), segment(&cursor));
        let page = client.get(&path).await?;
        claims.extend(page["claims"].as_array().cloned().unwrap_or_default());
        match page["next_cursor"].as_str() {
            Some(next) => next.clone_into(&mut cursor),
            None => return Ok(claims),
        }
    }
}

/// The report of a task in one of the forms that `--format` names.
pub async fn report(client: &Client, task: &str, format: &str) -> Result<String> {
    let path = format!("/api/v1/tasks/{}/report?format={}", segment(task), segment(format));
    Ok(field(&client.get(&path).await?, "text"))
}
