//! `matsu agents [--check]`: the AI command lines that can be given work.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use matsu_core::confinement::show_confinement;
use serde_json::Value;

use super::{Context, field, print_json, print_table};
use crate::client::Client;

#[derive(Args)]
pub struct Agents {
    /// Also check whether each agent is logged in; fail if a definition cannot be read
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
                agent["confinement"].as_str().unwrap_or("none").to_owned(),
                format!("{} of {}", agent["running"], agent["limit"]),
            ]
        })
        .collect();
    let login = if checked { "LOGGED IN" } else { "LOGIN" };
    print_table(&["AGENT", "VERSION", login, "MODES", "CONFINEMENT", "RUNNING"], &rows);
    for (names, text) in confinements(&agents) {
        say!("{}: {text}", names.join(", "));
    }
    for broken in broken {
        say!("cannot be read: {}: {}", field(broken, "file"), field(broken, "error"));
    }
}

/// How runs are confined and what that does not cover, once for all agents that share it.
fn confinements(agents: &[Value]) -> Vec<(Vec<String>, String)> {
    let mut shared: Vec<(Vec<String>, String)> = Vec::new();
    for agent in agents {
        let gaps = agent["not_covered"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let gaps: Vec<String> = gaps.map(str::to_owned).collect();
        let text = match agent["confinement"].as_str() {
            Some(level) => show_confinement(level, &gaps),
            None => format!("runs are disabled here: {}", field(agent, "confinement_error")),
        };
        match shared.iter_mut().find(|(_, known)| *known == text) {
            Some((names, _)) => names.push(field(agent, "name")),
            None => shared.push((vec![field(agent, "name")], text)),
        }
    }
    shared
}
