//! The command line: what can be said before a command. Each command says the rest in its own file in `commands/`.

use std::path::PathBuf;

use clap::{Args, Parser};

use crate::commands::Command;

/// Hand slow work over, wait in one cheap call, lose nothing.
#[derive(Parser)]
#[command(name = "matsu", version, propagate_version = true, after_help = EXIT_CODES)]
pub struct Cli {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub command: Option<Command>,
}

const EXIT_CODES: &str = "Exit codes: 0 done; 1 refused or failed; 2 the command line is wrong; \
    3 a waited-for task failed; 4 a waited-for task was cancelled; 5 the wait ended before the task did; \
    6 a waited-for task asks a question.";

#[derive(Args, Clone, Debug, Default)]
pub struct Global {
    /// Where the store, the socket and the token live
    #[arg(long, global = true, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// The configuration file
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The store: memory:, sqlite:PATH or postgres://…
    #[arg(long, global = true, value_name = "URL")]
    pub store: Option<String>,
    /// The language that people and agents are spoken to in: en, ja or ko
    #[arg(long, global = true, value_name = "LANG")]
    pub lang: Option<String>,
    /// Say more in the log; twice for everything
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
    /// Print JSON
    #[arg(long, global = true)]
    pub json: bool,
}
