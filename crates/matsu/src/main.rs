//! Matsu: asynchronous work for AI agents over MCP. The composition root and the command line.

mod cli;
mod client;
mod commands;
mod compose;
mod config;
mod connect;
mod daemon;
mod doctor;
mod logging;
mod paths;
mod process;
mod relay;
mod terminal_chat;

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;

/// Threads that are blocked when all work has ended get this long to come back.
const BLOCKED_MAX: Duration = Duration::from_millis(100);

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    // Before any thread is there: what a shim asks of the kernel for itself must hold for all that it starts.
    if matches!(cli.command, commands::Command::Shim) {
        return matsu_adapters::agents::shim::run();
    }
    let json = cli.global.json;
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return commands::fail(&error.into(), json),
    };
    let ended = runtime.block_on(commands::run(cli));
    // A thread that reads from a terminal or waits for a disk would hold the process for as long as that takes.
    runtime.shutdown_timeout(BLOCKED_MAX);
    match ended {
        Ok(code) => code,
        Err(error) => commands::fail(&error, json),
    }
}
