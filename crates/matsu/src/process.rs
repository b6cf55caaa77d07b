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
