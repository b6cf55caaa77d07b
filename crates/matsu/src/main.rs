//! Matsu: asynchronous work for AI agents over MCP. The composition root and the command line.

mod cli;
mod client;
mod commands;
mod compose;
mod config;
mod connect;
mod context;
mod daemon;
mod doctor;
mod event_loop;
mod homes;
mod logging;
mod parents;
mod paths;
mod private_files;
mod process;
mod project;
mod relay;
mod service;
mod standing;
mod stdio;
mod terminal;
mod terminal_chat;

use std::process::ExitCode;

use clap::Parser;
use matsu_adapters::agents::sandbox::view::Network;
use matsu_adapters::agents::{sandbox, shim, supervisor};

fn main() -> ExitCode {
    let cli = commands::Cli::parse();
    // Before any thread is there: what these ask of the kernel must hold for the whole process.
    let Some(command) = cli.command.or_else(|| commands::without_arguments(&cli.global)) else {
        return commands::help();
    };
    // A run must not get what the daemon's own parent left open.
    if command.is_internal() {
        matsu_adapters::descriptors::close_inherited();
    }
    match command {
        commands::Command::Read => return matsu_adapters::reading::child::run(),
        commands::Command::Shim => return shim::run(),
        commands::Command::Supervise { ref folder } => return supervisor::run(folder),
        commands::Command::Seal { no_network: false } => return sandbox::run_seal(Network::Shared),
        commands::Command::Seal { no_network: true } => return sandbox::run_seal(Network::None),
        commands::Command::Nest => return sandbox::run_nest(),
        commands::Command::Init => return sandbox::run_init(),
        commands::Command::Fence => return sandbox::run_fence(),
        _ => {}
    }
    let json = cli.global.json;
    let ended = match command {
        commands::Command::Mcp(args) => commands::mcp::run(&cli.global, &args),
        command => event_loop::on_all_cores(commands::run(cli.global, command)),
    };
    ended.unwrap_or_else(|error| commands::fail(&error, json))
}
