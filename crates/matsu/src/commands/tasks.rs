//! `matsu tasks`: the list, newest first.

use std::process::ExitCode;

use anyhow::Result;

use super::{Context, field, print_json, print_table};
use crate::cli::Tasks;
use crate::client::Client;

pub async fn run(cx: &Context, args: Tasks) -> Result<ExitCode> {
    let client = Client::connect(&cx.config).await?;
    let mut path = format!("/api/v1/tasks?limit={}", args.limit);
    for (name, value) in [("status", &args.status), ("kind", &args.kind)] {
        if let Some(value) = value {
            path.push_str(&format!("&{name}={value}"));
        }
    }
    let page = client.get(&path).await?;
    if cx.json {
        print_json(&page);
        return Ok(ExitCode::SUCCESS);
    }
    let items = page["items"].as_array().cloned().unwrap_or_default();
    if items.is_empty() {
        say!("No tasks.");
        return Ok(ExitCode::SUCCESS);
    }
    let rows: Vec<Vec<String>> = items
        .iter()
        .map(|task| {
            let jobs = &task["jobs"];
            let open = ["queued", "running", "awaiting_auth", "awaiting_input"];
            let open: i64 = open.iter().filter_map(|state| jobs[*state].as_i64()).sum();
            vec![
                field(task, "task_id"),
                field(task, "kind"),
                field(task, "status"),
                open.to_string(),
                field(task, "created_at"),
                field(task, "title"),
            ]
        })
        .collect();
    print_table(&["TASK", "KIND", "STATUS", "OPEN", "CREATED", "TITLE"], &rows);
    if !page["next"].is_null() {
        say!("… and more; raise --limit to see them");
    }
    Ok(ExitCode::SUCCESS)
}
