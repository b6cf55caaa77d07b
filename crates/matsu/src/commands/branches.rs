//! `matsu branches`: runs whose changes wait for a decision, newest first.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use matsu_core::limits::LIST_PAGE_MAX;
use serde_json::{Value, json};

use super::{Context, field, print_json, print_table};
use crate::client::Client;
use crate::terminal::checks::counted;
use crate::terminal::plain_text::plain_line;

#[derive(Args)]
pub struct Branches {
    /// Also list branches that were applied, discarded or sent back
    #[arg(long)]
    pub all: bool,
}

pub async fn run(cx: &Context, args: &Branches) -> Result<ExitCode> {
    let client = Client::connect(&cx.config).await?;
    let mut items: Vec<Value> = Vec::new();
    let mut after = String::new();
    loop {
        let page = client.get(&format!("/api/v1/branches?limit={LIST_PAGE_MAX}{after}")).await?;
        items.extend(page["items"].as_array().cloned().unwrap_or_default());
        let Some(next) = page["next"].as_i64() else { break };
        after = format!("&after={next}");
    }
    items.retain(|item| args.all || item["state"].is_null());
    if cx.json {
        print_json(&json!({ "items": items }));
        return Ok(ExitCode::SUCCESS);
    }
    if items.is_empty() {
        say!("No branches wait for a decision.");
        return Ok(ExitCode::SUCCESS);
    }
    let row = |item: &Value| {
        let files = counted(item["files"].as_u64().unwrap_or_default(), "file");
        let lines = format!("{files} +{} -{}", item["insertions"], item["deletions"]);
        let state = if item["state"].is_null() { "waits".to_owned() } else { field(item, "state") };
        let text = |name: &str| plain_line(&field(item, name));
        vec![text("branch"), field(item, "task_id"), text("agent"), state, lines, text("repository")]
    };
    let rows: Vec<Vec<String>> = items.iter().map(row).collect();
    print_table(&["BRANCH", "TASK", "AGENT", "STATE", "CHANGES", "REPOSITORY"], &rows);
    Ok(ExitCode::SUCCESS)
}
