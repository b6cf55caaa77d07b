//! `matsu allow [DIR]`: a person allows what the `.matsu.toml` of a repository asks for, as it is now.

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use clap::Args;
use matsu_adapters::agents::project_file;
use serde_json::json;

use super::{Context, print_json};

#[derive(Args)]
pub struct Allow {
    /// A folder inside the repository
    #[arg(default_value = ".")]
    pub directory: PathBuf,
    /// Do not ask
    #[arg(long)]
    pub yes: bool,
}

pub fn run(cx: &Context, args: &Allow) -> Result<ExitCode> {
    if crate::config::session_token().is_some() {
        bail!("a run of an agent cannot allow anything; a person must type matsu allow in a terminal");
    }
    let directory = &args.directory;
    let directory = directory.canonicalize().with_context(|| format!("cannot open {}", directory.display()))?;
    let Some(found) = project_file::read(&directory).map_err(anyhow::Error::msg)? else {
        bail!(
            "there is no {} in the repository of {} that needs to be allowed",
            project_file::NAME,
            directory.display()
        );
    };
    if !args.yes && !asked(&found)? {
        say!("Nothing was changed.");
        return Ok(ExitCode::FAILURE);
    }
    project_file::allow(&cx.config.paths.data_dir, &found.consent).context("cannot store the permission")?;
    if cx.json {
        print_json(&json!({ "ok": true, "file": found.consent.file, "command": found.consent.command }));
    } else {
        say!("Allowed: {}. If the file changes, it must be allowed again.", found.consent.file);
    }
    Ok(ExitCode::SUCCESS)
}

/// Shows the file and asks.
fn asked(found: &project_file::Found) -> Result<bool> {
    if !std::io::stdin().is_terminal() {
        bail!("stdin is not a terminal; read {} and type matsu allow --yes", found.consent.file);
    }
    let shown: String = found.text.chars().filter(|c| !c.is_control() || *c == '\n').collect();
    say!("{}\n\n{}\n", found.consent.file, shown.trim_end());
    let mut out = std::io::stdout();
    write!(out, "Allow Matsu to do this for runs in this repository? [y/N] ")?;
    out.flush()?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
