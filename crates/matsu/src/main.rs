//! Matsu: asynchronous work for AI agents over MCP. The composition root and the command line.

mod cli;
mod client;
mod commands;
mod compose;
mod config;
mod connect;
mod daemon;
mod doctor;
mod event_loop;
mod logging;
mod paths;
mod process;
mod relay;
mod stdio;
mod terminal_chat;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    // Before any thread is there: what a shim asks of the kernel for itself must hold for all that it starts.
    if matches!(cli.command, commands::Command::Shim) {
        return matsu_adapters::agents::shim::run();
    }
    // And what a reader takes from itself must hold for all that it does.
    if matches!(cli.command, commands::Command::Read) {
        return matsu_adapters::reading::child::run();
    }
    let json = cli.global.json;
    let ended = match cli.command {
        commands::Command::Mcp(args) => commands::mcp::run(&cli.global, &args),
        _ => event_loop::on_all_cores(commands::run(cli)),
    };
    ended.unwrap_or_else(|error| commands::fail(&error, json))
}
