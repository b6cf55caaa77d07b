//! `matsu config show`, `matsu config sample` and `matsu config reference`.

mod reference;

use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;
use hyper::Method;
use serde_json::json;

use super::{Context, print_json, print_table};
use crate::client::control;
use crate::config::key::Key;
use crate::config::without_password;

#[derive(Subcommand)]
pub enum ConfigCommand {
    /// Show every setting, its value and where the value comes from
    Show,
    /// Print a configuration file with every setting at its default, as comments
    Sample,
    /// Print every setting with its meaning, as Markdown
    Reference,
}

pub async fn run(cx: &Context, what: &ConfigCommand) -> Result<ExitCode> {
    match what {
        ConfigCommand::Show => show(cx).await,
        ConfigCommand::Sample => say!("{}", reference::sample().trim_end()),
        ConfigCommand::Reference => reference::print(),
    }
    Ok(ExitCode::SUCCESS)
}

/// One setting as this command reads it, and as the running daemon goes by it.
struct Row {
    key: &'static Key,
    value: String,
    from: String,
    /// Absent: no daemon answers.
    in_use: Option<String>,
}

impl Row {
    /// What is not used yet, and what to do about it.
    fn note(&self) -> String {
        match &self.in_use {
            Some(in_use) if *in_use != self.value && self.key.is_followed() => format!("the daemon uses {in_use}"),
            Some(in_use) if *in_use != self.value => format!("the daemon uses {in_use} until it is started again"),
            _ => String::new(),
        }
    }
}

async fn show(cx: &Context) {
    // Without a daemon there is nothing to compare with.
    let daemon = control(&cx.config, Method::GET, "/control/settings", None).await.unwrap_or_default();
    let rows = cx.config.layers.all().map(|(key, setting)| Row {
        key,
        value: without_password(&setting.value),
        from: setting.source.to_string(),
        in_use: daemon["settings"][key.name]["value"].as_str().map(str::to_owned),
    });
    let rows: Vec<Row> = rows.collect();
    if let Some(refused) = daemon["refused"].as_str() {
        eprintln!("matsu: the daemon does not use the current settings and definitions: {refused}");
    }
    if cx.json {
        let item =
            |row: &Row| json!({ "key": row.key.name, "value": row.value, "from": row.from, "in_use": row.in_use });
        print_json(&rows.iter().map(item).collect());
        return;
    }
    let cells: Vec<Vec<String>> = rows
        .into_iter()
        .map(|row| vec![row.key.name.to_owned(), row.value.clone(), row.from.clone(), row.note()])
        .collect();
    print_table(&["KEY", "VALUE", "FROM", "NOT USED YET"], &cells);
}
