//! The options that every command takes. Each command has its own in its file in `commands/`.

use std::path::PathBuf;

use clap::Args;

/// Where the help of a command lists the options that every command has.
const EVERY_COMMAND: &str = "Options of every command";

#[derive(Args, Clone, Debug, Default)]
pub struct Global {
    /// The data directory, with the store, the socket and the token
    #[arg(long, global = true, help_heading = EVERY_COMMAND, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// The configuration file
    #[arg(long, global = true, help_heading = EVERY_COMMAND, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The store: memory:, sqlite:PATH or postgres://…
    #[arg(long, global = true, help_heading = EVERY_COMMAND, value_name = "URL")]
    pub store: Option<String>,
    /// The language of messages to people and agents: en, ja or ko
    #[arg(long, global = true, help_heading = EVERY_COMMAND, value_name = "LANG")]
    pub lang: Option<String>,
    /// Log more; twice for everything
    #[arg(short, long, global = true, help_heading = EVERY_COMMAND, action = clap::ArgAction::Count)]
    pub verbose: u8,
    /// Print JSON
    #[arg(long, global = true, help_heading = EVERY_COMMAND)]
    pub json: bool,
}
