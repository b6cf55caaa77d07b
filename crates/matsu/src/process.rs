//! Starting processes: the only place that does.
#![expect(clippy::disallowed_methods, reason = "the one file that starts processes")]

use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use crate::daemon::announce::make_private_folder;
use crate::logging;
use crate::paths::Paths;

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
