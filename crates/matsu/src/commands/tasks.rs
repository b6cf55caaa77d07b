//! `matsu tasks`: the list, newest first.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use matsu_core::limits::LIST_PAGE_MAX;
use serde_json::{Value, json};

use super::{Context, field, print_json, print_table};
use crate::client::Client;

#[derive(Args)]
pub struct Tasks {
    /// Only this status
    #[arg(long)]
    pub status: Option<String>,
    /// Only this kind: research, agent, wait
    #[arg(long)]
    pub kind: Option<String>,
    /// At most this many
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=200))]
    pub limit: u32,
    /// Those after the place where an earlier list ended
    #[arg(long, value_name = "PLACE")]
    pub after: Option<i64>,
    /// All of them, however many
    #[arg(long, conflicts_with_all = ["limit", "after"])]
    pub all: bool,
}

pub async fn run(cx: &Context, args: Tasks) -> Result<ExitCode> {
    let client = Client::connect(&cx.config).await?;
    let mut path = format!("/api/v1/tasks?limit={}", if args.all { LIST_PAGE_MAX } else { args.limit });
    for (name, value) in [("status", &args.status), ("kind", &args.kind)] {
        if let Some(value) = value {
            path.push_str(&format!("&{name}={value}"));
        }
    }
    let mut items = Vec::new();
    let mut after = args.after;
    loop {
        let page = client.get(&after.map_or_else(|| path.clone(), |after| format!("{path}&after={after}"))).await?;
        items.extend(page["items"].as_array().cloned().unwrap_or_default());
        after = page["next"].as_i64();
        if after.is_none() || !args.all {
            break;
        }
    }
    if cx.json {
        print_json(&json!({ "items": items, "next": after }));
        return Ok(ExitCode::SUCCESS);
    }
    if items.is_empty() {
        say!("No tasks.");
        return Ok(ExitCode::SUCCESS);
    }
    let rows: Vec<Vec<String>> = items.iter().map(row).collect();
    print_table(&["TASK", "KIND", "STATUS", "OPEN", "CREATED", "TITLE"], &rows);
    if let Some(after) = after {
        say!("… and more: add --after {after}, or --all");
    }
    Ok(ExitCode::SUCCESS)
}

fn row(task: &Value) -> Vec<String> {
    let jobs = &task["jobs"];
    let open = ["queued", "running", "awaiting_auth", "awaiting_input"];
    let open: i64 = open.iter().filter_map(|state| jobs[*state].as_i64()).sum();
    let [id, kind, status, created, title] =
        ["task_id", "kind", "status", "created_at", "title"].map(|name| field(task, name));
    vec![id, kind, status, open.to_string(), created, title]
}
