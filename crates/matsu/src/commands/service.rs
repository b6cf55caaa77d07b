//! `matsu service`: the daemon as a service of the user, started with the machine. systemd on Linux, launchd on macOS.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use clap::Subcommand;
use serde_json::json;

use super::{Context, lasting, print_json};
use crate::cli::Global;
use crate::private_files::make_folder;
use crate::process;
use crate::service::unit::{self, Kind, Unit};
use crate::service::{KIND, file};

#[derive(Subcommand)]
pub enum ServiceCommand {
    /// Write the service, enable it and start it
    Install {
        /// Only write the file; start nothing
        #[arg(long)]
        no_start: bool,
    },
    /// Stop the service and remove its file; runs of agents continue
    Uninstall,
    /// Show whether the service is installed, enabled and running
    Status,
}

pub fn run(cx: &Context, global: &Global, what: &ServiceCommand) -> Result<ExitCode> {
    let file = file(&cx.config)?;
    match what {
        ServiceCommand::Install { no_start } => {
            let steps = install(cx, global, &file, *no_start)?;
            report(cx, &file, &steps)
        }
        ServiceCommand::Uninstall => uninstall(cx, &file),
        ServiceCommand::Status => status(cx, &file),
    }
}

/// As `matsu service install`; prints only what failed.
pub fn install_quietly(cx: &Context, global: &Global) -> Result<ExitCode> {
    let steps = install(cx, global, &file(&cx.config)?, false)?;
    steps.iter().for_each(ServiceStep::show);
    Ok(if steps.iter().any(|step| step.error.is_some()) { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// As `matsu service uninstall`; the file, if there was one.
pub fn remove_quietly(cx: &Context) -> Result<Option<PathBuf>> {
    let file = file(&cx.config)?;
    if !file.exists() {
        return Ok(None);
    }
    remove(&file)?;
    Ok(Some(file))
}

/// What `install` writes.
pub fn text(cx: &Context, global: &Global) -> Result<String> {
    let unit = Unit {
        program: lasting::program()?.display().to_string(),
        arguments: process::service_arguments(&cx.config, global)?,
        path: std::env::join_paths(cx.config.homes()?.path)?.display().to_string(),
        log: cx.config.paths.daemon_log().display().to_string(),
    };
    unit.text(KIND)
}

fn install(cx: &Context, global: &Global, file: &Path, no_start: bool) -> Result<Vec<ServiceStep>> {
    let text = text(cx, global)?;
    if let Some(folder) = file.parent() {
        make_folder(folder)?;
    }
    std::fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))?;
    let mut steps = Vec::new();
    if !no_start {
        for step in KIND.start(file) {
            steps.push(attempt(&step));
        }
    }
    Ok(steps)
}

fn remove(file: &Path) -> Result<Vec<ServiceStep>> {
    let mut steps: Vec<ServiceStep> = KIND.stop(file).iter().map(|step| attempt(step)).collect();
    std::fs::remove_file(file).with_context(|| format!("cannot remove {}", file.display()))?;
    steps.extend(KIND.after_removal().iter().map(|step| attempt(step)));
    Ok(steps)
}

fn uninstall(cx: &Context, file: &Path) -> Result<ExitCode> {
    if !file.exists() {
        bail!("there is no service to remove: {} does not exist", file.display());
    }
    let steps = remove(file)?;
    if cx.json {
        print_json(&json!({ "removed": file, "steps": steps.iter().map(ServiceStep::json).collect::<Vec<_>>() }));
    } else {
        say!("Removed {}. This does not end runs of agents; the next `matsu serve` takes them over.", file.display());
        steps.iter().for_each(ServiceStep::show);
    }
    Ok(ExitCode::SUCCESS)
}

fn status(cx: &Context, file: &Path) -> Result<ExitCode> {
    let is_installed = file.exists();
    let asked = |arguments: &[&str]| process::answer(arguments).map(|(_, said)| said);
    let (enabled, active) = match KIND {
        _ if !is_installed => (None, None),
        Kind::Systemd => (
            asked(&["systemctl", "--user", "is-enabled", unit::SYSTEMD_NAME]),
            asked(&["systemctl", "--user", "is-active", unit::SYSTEMD_NAME]),
        ),
        Kind::Launchd => (None, asked(&["launchctl", "list", unit::LAUNCHD_NAME])),
    };
    if cx.json {
        print_json(&json!({ "installed": is_installed, "file": file, "enabled": enabled, "active": active }));
        return Ok(ExitCode::SUCCESS);
    }
    if !is_installed {
        say!("Not installed. `matsu service install` starts the daemon with the machine.");
        return Ok(ExitCode::SUCCESS);
    }
    say!("Installed: {}", file.display());
    say!("Enabled:   {}", enabled.as_deref().unwrap_or("unknown"));
    say!("Active:    {}", active.as_deref().unwrap_or("unknown"));
    Ok(ExitCode::SUCCESS)
}

/// One command of the service manager, and how it went.
struct ServiceStep {
    command: String,
    /// `None`: it succeeded.
    error: Option<String>,
}

impl ServiceStep {
    fn json(&self) -> serde_json::Value {
        json!({ "command": self.command, "error": self.error })
    }

    fn show(&self) {
        if let Some(error) = &self.error {
            say!("  {} failed: {error}", self.command);
        }
    }
}

fn attempt(arguments: &[String]) -> ServiceStep {
    let command = arguments.join(" ");
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let error = match process::answer(&arguments) {
        Some((true, _)) => None,
        Some((false, said)) => Some(said),
        None => Some(format!("{} was not found", arguments[0])),
    };
    ServiceStep { command, error }
}

/// Says what was done and, where the service manager refused, what is left to do by hand.
fn report(cx: &Context, file: &Path, steps: &[ServiceStep]) -> Result<ExitCode> {
    let failed = steps.iter().any(|step| step.error.is_some());
    if cx.json {
        print_json(&json!({ "file": file, "steps": steps.iter().map(ServiceStep::json).collect::<Vec<_>>() }));
        return Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS });
    }
    say!("Wrote {}", file.display());
    if steps.is_empty() {
        say!("Start it with:");
        KIND.start(file).iter().for_each(|step| say!("  {}", step.join(" ")));
    } else if failed {
        steps.iter().for_each(ServiceStep::show);
        say!("The file is in place; the service was not started. Run the failed commands again in your own session.");
    } else {
        say!("The daemon runs now and starts with the machine.");
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
