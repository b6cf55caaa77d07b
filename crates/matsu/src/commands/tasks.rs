//! `matsu tasks`: the list, newest first.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use clap::builder::PossibleValuesParser;
use console::Term;
use matsu_core::clock::Clock;
use matsu_core::limits::LIST_PAGE_MAX;
use matsu_core::task::{TaskKind, TaskStatus};
use serde_json::{Value, json};

use super::{Context, print_json};
use crate::client::Client;
use crate::terminal::table::{self, Row};

#[derive(Args)]
pub struct Tasks {
    /// List only tasks with this status
    #[arg(long, value_parser = PossibleValuesParser::new(TaskStatus::ALL.iter().map(|status| status.as_str())))]
    pub status: Option<String>,
    /// List only tasks of this kind
    #[arg(long, value_parser = PossibleValuesParser::new(TaskKind::ALL.iter().map(|kind| kind.as_str())))]
    pub kind: Option<String>,
    /// List at most this many
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=200))]
    pub limit: u32,
    /// Continue an earlier list after this place, which its last line names
    #[arg(long, value_name = "PLACE")]
    pub after: Option<i64>,
    /// List all tasks
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
        print_json(&json!({ "items": items, "next": after, "daemon": client.has_daemon() }));
        return Ok(ExitCode::SUCCESS);
    }
    if items.is_empty() {
        say!("No tasks.");
        return Ok(ExitCode::SUCCESS);
    }
    show(&items);
    if let Some(after) = after {
        say!("… and more: add --after {after}, or --all");
    }
    client.say_if_alone(items.iter().any(|task| task["finished_at"].is_null()));
    Ok(ExitCode::SUCCESS)
}

/// On a terminal fitted to its width and with ages; elsewhere whole lines with the time of creation.
fn show(items: &[Value]) {
    let terminal = Term::stdout();
    let (is_terminal, width) = (terminal.is_term(), usize::from(terminal.size().1));
    let now = is_terminal.then(|| Clock::system().now());
    let rows: Vec<Row> = items.iter().map(|task| table::row(task, now)).collect();
    let created = if is_terminal { "AGE" } else { "CREATED" };
    let head = ["TASK", "STATE", created, "AGENT", "WAITS FOR", "TITLE"];
    for line in table::lines(&head, &rows, is_terminal.then_some(width), console::colors_enabled()) {
        say!("{line}");
    }
}
