//! Starting processes: the only place that does.
#![expect(clippy::disallowed_methods, reason = "the one file that starts processes")]

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use crate::daemon::announce::make_private_folder;
use crate::paths::Paths;

/// A longer log is put aside at the next start; one such is kept.
const LOG_BYTES_MAX: u64 = 5 * 1024 * 1024;

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
    let log = paths.data_dir.join("daemon.log");
    if std::fs::metadata(&log).is_ok_and(|meta| meta.len() > LOG_BYTES_MAX) {
        let _ = std::fs::rename(&log, log.with_extension("log.old"));
    }
    let file = OpenOptions::new().create(true).append(true).mode(0o600).open(&log);
    let file = file.with_context(|| format!("cannot write {}", log.display()))?;
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
