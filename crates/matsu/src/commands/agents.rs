//! `matsu agents [--check]`: the AI command lines that can be given work.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use serde_json::Value;

use super::{Context, field, print_json, print_table};
use crate::client::Client;

#[derive(Args)]
pub struct Agents {
    /// Also ask each whether it is logged in; fails if a definition cannot be read
    #[arg(long)]
    pub check: bool,
}

pub async fn run(cx: &Context, args: &Agents) -> Result<ExitCode> {
    let client = Client::connect(&cx.config).await?;
    let said = client.get(&format!("/api/v1/agent-definitions?check_auth={}", args.check)).await?;
    let broken = said["broken"].as_array().cloned().unwrap_or_default();
    if cx.json {
        print_json(&said);
    } else {
        show(&said, &broken, args.check);
    }
    Ok(if args.check && !broken.is_empty() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn show(said: &Value, broken: &[Value], checked: bool) {
    let yes = |value: &Value| match value.as_bool() {
        Some(true) => "yes",
        Some(false) => "no",
        None => "?",
    };
    let agents = said["items"].as_array().cloned().unwrap_or_default();
    let rows: Vec<Vec<String>> = agents
        .iter()
        .map(|agent| {
            let modes = agent["modes"].as_array().into_iter().flatten().filter_map(Value::as_str);
            vec![
                field(agent, "name"),
                if agent["installed"] == true { field(agent, "version") } else { "not installed".to_owned() },
                if checked { yes(&agent["authenticated"]).to_owned() } else { field(agent, "login") },
                modes.collect::<Vec<_>>().join(", "),
                yes(&agent["confined"]).to_owned(),
                format!("{} of {}", agent["running"], agent["limit"]),
            ]
        })
        .collect();
    let login = if checked { "LOGGED IN" } else { "LOGIN" };
    print_table(&["AGENT", "VERSION", login, "MODES", "CONFINED", "RUNNING"], &rows);
    for broken in broken {
        say!("cannot be read: {}: {}", field(broken, "file"), field(broken, "error"));
    }
}
