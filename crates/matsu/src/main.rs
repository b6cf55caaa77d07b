//! Matsu: asynchronous work for AI agents over MCP. The composition root and the command line.

mod approvals;
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
mod internal;
mod logging;
mod parents;
mod paths;
mod private_files;
mod process;
mod relay;
mod service;
mod stdio;
mod terminal;
mod terminal_chat;
mod versions;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    if let Some(code) = internal::run(std::env::args_os()) {
        return code;
    }
    let cli = commands::Cli::parse();
    let json = cli.global.json;
    let command =
        match cli.command.map_or_else(|| commands::without_arguments(&cli.global), |command| Ok(Some(command))) {
            Ok(Some(command)) => command,
            Ok(None) => return commands::help(),
            Err(error) => return commands::fail(&error, json),
        };
    let ended = match command {
        commands::Command::Mcp(args) => commands::mcp::run(&cli.global, &args),
        command => event_loop::on_all_cores(commands::run(cli.global, command)),
    };
    ended.unwrap_or_else(|error| commands::fail(&error, json))
}
