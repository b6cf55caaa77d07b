//! The options that every command takes. Each command has its own in its file in `commands/`.

use std::path::PathBuf;

use clap::Args;

#[derive(Args, Clone, Debug, Default)]
pub struct Global {
    /// The data directory, with the store, the socket and the token
    #[arg(long, global = true, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// The configuration file
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The store: memory:, sqlite:PATH or postgres://…
    #[arg(long, global = true, value_name = "URL")]
    pub store: Option<String>,
    /// The language of messages to people and agents: en, ja or ko
    #[arg(long, global = true, value_name = "LANG")]
    pub lang: Option<String>,
    /// Log more; twice for everything
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
    /// Print JSON
    #[arg(long, global = true)]
    pub json: bool,
}
