//! `matsu setup`: from installed to connected. Finds AI clients and agents, asks with defaults, shows every file before
//! it is written. `matsu uninstall` takes everything out again.

mod folders;

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use matsu_adapters::agents::registry::Registry;
use serde_json::json;

use super::ask::Ask;
use super::{Context, connect, print_json, service};
use crate::cli::Global;
use crate::connect::pieces::Edit;
use crate::connect::{CLIENTS, Client, record};
use crate::homes::Homes;

#[derive(Args, Default)]
pub struct Setup {
    /// Take the default answer to every question
    #[arg(long, short)]
    pub yes: bool,
    /// Show what would be written, and write nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// What the answers come to.
struct Plan<'a> {
    clients: Vec<(&'a Client, Vec<Edit>)>,
    hooks: bool,
    service: bool,
    folders: Option<Edit>,
}

pub fn run(cx: &Context, global: &Global, args: &Setup) -> Result<ExitCode> {
    let homes = cx.config.homes()?;
    let ask = Ask::new(args.yes || args.dry_run)?;
    if !cx.json {
        show_found(cx, &homes);
    }
    let plan = plan(cx, global, &homes, ask)?;
    if !cx.json {
        show(cx, &plan)?;
    }
    if plan.is_empty() {
        return finish(cx, &plan, "nothing", "There is nothing to set up: every client that was found is connected.");
    }
    if args.dry_run {
        return finish(cx, &plan, "shown", "Nothing was written.");
    }
    if !ask.yes_or_no("Write this?", true)? {
        return finish(cx, &plan, "refused", "Nothing was written.");
    }
    let data_dir = &cx.config.paths.data_dir;
    for (client, edits) in &plan.clients {
        record::apply(data_dir, client.name, edits)?;
    }
    if let Some(edit) = &plan.folders {
        record::apply(data_dir, folders::RECORD, std::slice::from_ref(edit))?;
    }
    if plan.service && service::install_quietly(cx, global)? == ExitCode::FAILURE {
        return Ok(ExitCode::FAILURE);
    }
    finish(cx, &plan, "written", "Done. `matsu uninstall` takes all of it out again.")
}

impl Plan<'_> {
    fn is_empty(&self) -> bool {
        self.clients.is_empty() && !self.service && self.folders.is_none()
    }
}

fn show_found(cx: &Context, homes: &Homes) {
    let names = |found: Vec<&str>| if found.is_empty() { "none".to_owned() } else { found.join(", ") };
    let clients = CLIENTS.iter().filter(|client| client.is_installed(homes));
    say!("AI clients found: {}", names(clients.map(|client| client.title).collect()));
    let registry = Registry::load(None);
    let agents = registry.definitions.values().filter(|agent| homes.has_command(&agent.command));
    say!("Agents that can be given work: {}", names(agents.map(|agent| agent.name.as_str()).collect()));
    for client in CLIENTS.iter().filter(|client| connect::is_connected(cx, client)) {
        say!("{} is connected already.", client.title);
    }
}

fn plan(cx: &Context, global: &Global, homes: &Homes, ask: Ask) -> Result<Plan<'static>> {
    let mut chosen = Vec::new();
    for client in CLIENTS.iter().filter(|client| client.is_installed(homes) && !connect::is_connected(cx, client)) {
        if ask.yes_or_no(&format!("Connect {}?", client.title), true)? {
            chosen.push(client);
        }
    }
    let hooks = chosen.iter().any(|client| client.hooks.is_some())
        && ask.yes_or_no("Install hooks, so that results also reach a session that does not wait for them?", true)?;
    let clients = connect::plans(global, homes, &chosen, hooks)?;
    let service = crate::service::can_install(&cx.config)?
        && ask.yes_or_no("Start Matsu with the machine, so that work continues after a restart?", true)?;
    let typed = match cx.config.research_folders().is_empty() {
        true => ask.line("Folders that research may search, separated by colons (empty: none): ")?,
        false => String::new(),
    };
    let folders = if typed.is_empty() { None } else { Some(folders::edit(cx, homes, &typed)?) };
    Ok(Plan { clients, hooks, service, folders })
}

fn show(cx: &Context, plan: &Plan) -> Result<()> {
    let edits = plan.clients.iter().flat_map(|(_, edits)| edits).chain(&plan.folders);
    for edit in edits {
        say!("  {} in {}", edit.what, edit.file.display());
    }
    if plan.service {
        say!("  a service in {}", crate::service::file(&cx.config)?.display());
    }
    Ok(())
}

fn finish(cx: &Context, plan: &Plan, outcome: &str, words: &str) -> Result<ExitCode> {
    if cx.json {
        let files = plan.clients.iter().flat_map(|(_, edits)| edits).chain(&plan.folders).map(|edit| &edit.file);
        print_json(&json!({
            "outcome": outcome,
            "clients": plan.clients.iter().map(|(client, _)| client.name).collect::<Vec<_>>(),
            "hooks": plan.hooks,
            "service": plan.service,
            "files": files.collect::<Vec<_>>(),
        }));
        return Ok(ExitCode::SUCCESS);
    }
    say!("{words}");
    if outcome == "written" {
        for (client, _) in &plan.clients {
            say!("  {}: {}", client.title, client.after);
        }
        say!("Look around: matsu demo · matsu doctor · matsu open");
    }
    Ok(ExitCode::SUCCESS)
}
