//! Starting processes: the only place that does.
#![expect(clippy::disallowed_methods, reason = "the one file that starts processes")]

use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use crate::daemon::announce::make_private_folder;
use crate::logging;
use crate::paths::Paths;

/// Asks the desktop to show a file.
pub fn show_in_browser(file: &std::path::Path) -> Result<()> {
    let opener = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let status = Command::new(opener)
        .arg(file)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .with_context(|| format!("cannot run {opener}"))?;
    anyhow::ensure!(status.success(), "{opener} found no browser");
    Ok(())
}

/// Starts a daemon that outlives us: no terminal, its log in the data directory.
pub fn start_daemon(paths: &Paths, arguments: &[String]) -> Result<()> {
    make_private_folder(&paths.data_dir)?;
    let file = logging::open(&paths.daemon_log())?;
    let program = std::env::current_exe().context("cannot find this program on disk")?;
    Command::new(program)
        .args(arguments)
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(file)
        .spawn()
        .context("cannot start the daemon")?;
    Ok(())
}
