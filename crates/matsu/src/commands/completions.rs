//! `matsu completions SHELL`.

use std::process::ExitCode;

use anyhow::Result;
use clap::CommandFactory;

use super::Cli;

pub fn run(shell: clap_complete::Shell) -> Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "matsu", &mut script);
    say!("{}", String::from_utf8_lossy(&script).trim_end());
    Ok(ExitCode::SUCCESS)
}
