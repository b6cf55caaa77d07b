//! `matsu setup`: from installed to connected. Finds AI clients and agents, asks with defaults, shows every file before
//! it is written. `matsu uninstall` takes everything out again.

mod notices;
mod settings;

use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::Args;
use matsu_adapters::agents::registry::Registry;
use serde_json::json;

use super::ask::Ask;
use super::{Context, connect, lasting, print_json, service};
use crate::cli::Global;
use crate::connect::pieces::{Edit, indented};
use crate::connect::record::Change;
use crate::connect::{CLIENTS, Client, RecordState, record};
use crate::homes::Homes;

#[derive(Args, Default)]
pub struct Setup {
    /// Take the default answer to every question
    #[arg(long, short)]
    pub yes: bool,
    /// Show every line that would be written, and write nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// What the answers come to.
struct Plan {
    clients: Vec<(&'static Client, Vec<Edit>)>,
    /// These stay as they are.
    left_out: Vec<connect::LeftOut>,
    hooks: bool,
    service: bool,
    settings: Option<Edit>,
}

pub fn run(cx: &Context, global: &Global, args: &Setup) -> Result<ExitCode> {
    // Said before the first question: a program that goes away can be connected to nothing.
    lasting::program()?;
    let homes = cx.config.homes()?;
    let ask = Ask::new(args.yes || args.dry_run)?;
    if !cx.json {
        show_found(cx, &homes)?;
    }
    let plan = plan(cx, global, &homes, ask)?;
    if !cx.json {
        show(cx, global, &plan)?;
    }
    if plan.is_empty() {
        let words = format!("There is nothing to set up{}", nothing(cx, &homes)?);
        return finish(cx, &plan, "nothing", &words);
    }
    if args.dry_run {
        return finish(cx, &plan, "shown", "Nothing was written.");
    }
    if !ask.yes_or_no("Write this?", true)? {
        return finish(cx, &plan, "refused", "Nothing was written.");
    }
    let data_dir = &cx.config.paths.data_dir;
    let mut changes = connect::changes(&plan.clients);
    let settings = plan.settings.as_slice();
    changes.extend(plan.settings.iter().map(|_| Change { name: settings::RECORD, edits: settings, replaces: false }));
    let applied = record::apply(data_dir, &changes)?;
    if plan.service {
        match service::install_quietly(cx, global) {
            Ok(ExitCode::SUCCESS) => {}
            Ok(code) => {
                say!("Everything else was written. Run the failed commands again in your own session.");
                return Ok(code);
            }
            Err(error) => {
                applied.take_back().context("the service was not installed, and some files were left as written")?;
                return Err(error.context("the service was not installed, and nothing else was changed"));
            }
        }
    }
    finish(cx, &plan, "written", "Done. `matsu uninstall` removes all of it again.")
}

impl Plan {
    fn is_empty(&self) -> bool {
        self.clients.is_empty() && !self.service && self.settings.is_none()
    }

    fn edits(&self) -> impl Iterator<Item = &Edit> {
        self.clients.iter().flat_map(|(_, edits)| edits).chain(&self.settings)
    }
}

fn show_found(cx: &Context, homes: &Homes) -> Result<()> {
    let names = |found: Vec<&str>| if found.is_empty() { "none".to_owned() } else { found.join(", ") };
    let clients = CLIENTS.iter().filter(|client| client.is_installed(homes));
    say!("AI clients found: {}", names(clients.map(|client| client.title).collect()));
    let registry = Registry::load(cx.config.agent_definitions().as_deref());
    let agents = registry.definitions.values().filter(|agent| homes.has_command(&agent.command));
    say!("Agents that can be given work: {}", names(agents.map(|agent| agent.name.as_str()).collect()));
    for client in CLIENTS {
        match connect::record_state(cx, client)? {
            RecordState::Whole => say!("{} is connected already.", client.title),
            RecordState::Partial => {
                say!("{} was connected, but a part of what Matsu wrote for it is gone.", client.title)
            }
            RecordState::Nothing => {}
        }
    }
    Ok(())
}

fn plan(cx: &Context, global: &Global, homes: &Homes, ask: Ask) -> Result<Plan> {
    let mut chosen = Vec::new();
    let installed: Vec<&Client> = CLIENTS.iter().filter(|client| client.is_installed(homes)).collect();
    let left_out = connect::by_hand(cx, global, homes, &installed);
    if !cx.json {
        left_out.iter().for_each(|left| say!("{}", left.line()));
    }
    for client in installed {
        let is_connected = connect::record_state(cx, client)? == RecordState::Whole;
        let is_asked = !is_connected && !left_out.iter().any(|left| left.client.name == client.name);
        if is_asked && ask.yes_or_no(&format!("Connect {}?", client.title), true)? {
            chosen.push(client);
        }
    }
    let hooks = chosen.iter().any(|client| client.hooks.is_some())
        && ask.yes_or_no("Install hooks, so that results also reach a session that does not wait for them?", true)?;
    let clients = connect::plans(cx, global, homes, &chosen, hooks)?;
    let service = crate::service::can_install(&cx.config)?
        && ask.yes_or_no("Start Matsu with the machine, so that work continues after a restart?", true)?;
    let typed = match cx.config.research_folders().is_empty() {
        true => folders(cx, homes, ask)?,
        false => String::new(),
    };
    let settings = match cx.config.layers.notify.is_empty() {
        true => with_channel(cx, homes, ask, &typed)?,
        false => settings::edit(cx, homes, &typed, None)?,
    };
    Ok(Plan { clients, left_out, hooks, service, settings })
}

/// What was typed, once it can be written. Nothing can always be written.
fn folders(cx: &Context, homes: &Homes, ask: Ask) -> Result<String> {
    loop {
        let typed = ask.line("Folders that research may search, separated by colons (empty: none): ")?;
        match settings::edit(cx, homes, &typed, None) {
            Err(error) if !typed.is_empty() => say!("{error:#}"),
            Err(error) => return Err(error),
            Ok(_) => return Ok(typed),
        }
    }
}

/// The folders and the answer about notices, once both can be written.
fn with_channel(cx: &Context, homes: &Homes, ask: Ask, typed: &str) -> Result<Option<Edit>> {
    loop {
        let channel = notices::ask(ask)?;
        match settings::edit(cx, homes, typed, channel.as_deref()) {
            Err(error) if channel.is_some() => say!("{error:#}"),
            written => return written,
        }
    }
}

fn show(cx: &Context, global: &Global, plan: &Plan) -> Result<()> {
    plan.edits().flat_map(Edit::lines).for_each(|line| say!("{line}"));
    if plan.service {
        say!("  a service in {}", crate::service::file(&cx.config)?.display());
        indented(&service::text(cx, global)?).iter().for_each(|line| say!("{line}"));
    }
    Ok(())
}

/// Why, and what a person without a client does next.
fn nothing(cx: &Context, homes: &Homes) -> Result<&'static str> {
    let mut installed = CLIENTS.iter().filter(|client| client.is_installed(homes)).peekable();
    if installed.peek().is_none() {
        return Ok(
            ": no AI client was found. Install one, then run this again; any other MCP client can start `matsu mcp`.",
        );
    }
    for client in installed {
        if connect::record_state(cx, client)? != RecordState::Whole {
            return Ok(".");
        }
    }
    Ok(": every client that was found is connected.")
}

fn finish(cx: &Context, plan: &Plan, outcome: &str, words: &str) -> Result<ExitCode> {
    if cx.json {
        print_json(&json!({
            "outcome": outcome,
            "clients": plan.clients.iter().map(|(client, _)| client.name).collect::<Vec<_>>(),
            "left_out": plan.left_out.iter().map(connect::LeftOut::json).collect::<Vec<_>>(),
            "hooks": plan.hooks,
            "service": plan.service,
            "files": plan.edits().map(|edit| &edit.file).collect::<Vec<_>>(),
            "texts": plan.edits().map(Edit::text).collect::<Vec<_>>(),
        }));
        return Ok(ExitCode::SUCCESS);
    }
    say!("{words}");
    if outcome == "written" {
        for (client, _) in &plan.clients {
            say!("  {}: {}", client.title, client.after);
        }
    }
    if matches!(outcome, "written" | "nothing") {
        say!("Look around: matsu demo · matsu doctor · matsu open");
    }
    Ok(ExitCode::SUCCESS)
}
