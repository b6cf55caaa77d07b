//! Starting processes: the only place that does.
#![expect(clippy::disallowed_methods, reason = "the one file that starts processes")]

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use matsu_core::limits::IDLE_EXIT;

use crate::cli::Global;
use crate::config::Config;
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

/// A daemon with the same store and settings as this process has.
pub fn daemon_arguments(config: &Config, global: &Global, test_jobs: bool) -> Vec<String> {
    let path = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone()).display().to_string();
    let mut arguments = vec!["--data-dir".to_owned(), path(&config.paths.data_dir)];
    if let Some(file) = &global.config {
        arguments.extend(["--config".to_owned(), path(file)]);
    }
    if global.store.is_some() {
        arguments.extend(["--store".to_owned(), config.store_url().to_owned()]);
    }
    arguments.extend(["serve", "--detach", "--idle-exit"].map(str::to_owned));
    arguments.push(IDLE_EXIT.as_secs().to_string());
    if test_jobs {
        arguments.push("--test-jobs".to_owned());
    }
    arguments
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
