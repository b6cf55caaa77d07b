//! `matsu completions SHELL`.

use std::process::ExitCode;

use anyhow::Result;
use clap::CommandFactory;

use crate::cli::Cli;

pub fn run(shell: clap_complete::Shell) -> Result<ExitCode> {
    clap_complete::generate(shell, &mut Cli::command(), "matsu", &mut std::io::stdout());
    Ok(ExitCode::SUCCESS)
}
