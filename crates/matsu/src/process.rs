//! Starting processes: the only place that does.
#![expect(clippy::disallowed_methods, reason = "the one file that starts processes")]

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};
use matsu_core::clock::Clock;
use matsu_core::limits::IDLE_EXIT;
use tokio::io::AsyncWriteExt;

use crate::cli::Global;
use crate::config::Config;
use crate::logging;
use crate::paths::Paths;
use crate::private_files::make_private_folder;

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

/// Shows a text in the user's pager, which may be left before its end.
pub fn page(pager: &str, text: &str) -> Result<()> {
    use std::io::Write;
    let mut command = Command::new("/bin/sh");
    let mut child =
        command.args(["-c", pager]).stdin(Stdio::piped()).spawn().with_context(|| format!("cannot run {pager}"))?;
    if let Some(mut input) = child.stdin.take() {
        let _ = input.write_all(text.as_bytes());
    }
    child.wait().with_context(|| format!("cannot wait for {pager}"))?;
    Ok(())
}

/// Another command of this program, on the same terminal and with the same data.
pub fn run_here(config: &Config, global: &Global, words: &[String]) -> Result<()> {
    let mut command = Command::new(std::env::current_exe().context("this program has no path")?);
    command.args(same_arguments(config, global)).args(words);
    command.status().with_context(|| format!("cannot run `matsu {}`", words.join(" ")))?;
    Ok(())
}

/// A program of the user's own in a folder, with this on its input, until it ends or its time is up. What it prints goes
/// to a file.
pub async fn run_in(
    folder: &str,
    program: &str,
    arguments: &[String],
    input: &str,
    log: &std::path::Path,
    time_max: Duration,
) -> Result<()> {
    let output = logging::open(log)?;
    let mut command = tokio::process::Command::new(program);
    command.args(arguments).current_dir(folder).kill_on_drop(true);
    command.stdin(Stdio::piped()).stdout(output.try_clone()?).stderr(output);
    let mut child = command.spawn().with_context(|| format!("cannot run {program}"))?;
    let given = child.stdin.take();
    let work = async {
        if let Some(mut given) = given {
            let _ = given.write_all(input.as_bytes()).await;
        }
        child.wait().await
    };
    let ended = Clock::system().within(time_max, work).await;
    let status = ended.with_context(|| format!("{program} worked longer than {} s", time_max.as_secs()))??;
    anyhow::ensure!(status.success(), "{program} ended with {status}; see {}", log.display());
    Ok(())
}

/// Adds a line to a file for its user alone.
pub fn append_line(file: &std::path::Path, line: &str) -> Result<()> {
    use std::io::Write;
    let mut opened = logging::open(file)?;
    writeln!(opened, "{line}").with_context(|| format!("cannot write {}", file.display()))
}

/// What a program prints for `--version`.
pub fn version_of(program: &std::path::Path) -> Result<String> {
    let output = Command::new(program).arg("--version").stdin(Stdio::null()).stderr(Stdio::null()).output()?;
    anyhow::ensure!(output.status.success(), "it ended with {}", output.status);
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// What makes another process of this program use the same data and settings.
fn same_arguments(config: &Config, global: &Global) -> Vec<String> {
    let path = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone()).display().to_string();
    let mut arguments = vec!["--data-dir".to_owned(), path(&config.paths.data_dir)];
    if let Some(file) = &global.config {
        arguments.extend(["--config".to_owned(), path(file)]);
    }
    if global.store.is_some() {
        arguments.extend(["--store".to_owned(), config.store_url().to_owned()]);
    }
    arguments
}

/// A daemon with the same store and settings as this process has.
pub fn daemon_arguments(config: &Config, global: &Global, test_jobs: bool) -> Vec<String> {
    let mut arguments = same_arguments(config, global);
    arguments.extend(["serve", "--detach", "--idle-exit"].map(str::to_owned));
    arguments.push(IDLE_EXIT.as_secs().to_string());
    if test_jobs {
        arguments.push("--test-jobs".to_owned());
    }
    arguments
}

/// A daemon that a service manager keeps: the same store and settings, and no end by itself. The manager starts it
/// without the environment of this process.
pub fn service_arguments(config: &Config, global: &Global) -> Result<Vec<String>> {
    let mut arguments = same_arguments(config, &Global { store: None, ..global.clone() });
    if let Some(url) = config.store_to_write("a service's file")? {
        arguments.extend(["--store".to_owned(), url.to_owned()]);
    }
    arguments.push("serve".to_owned());
    Ok(arguments)
}

/// Runs a short command of the system: whether it succeeded, and its output. `None`: there is no such program.
pub fn answer(arguments: &[&str]) -> Option<(bool, String)> {
    let (program, arguments) = arguments.split_first()?;
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output().ok()?;
    let said = if output.stdout.is_empty() { output.stderr } else { output.stdout };
    Some((output.status.success(), String::from_utf8_lossy(&said).trim().to_owned()))
}

/// The program that keeps the machine awake until its input ends.
pub const INHIBITOR: &str = if cfg!(target_os = "macos") { "caffeinate" } else { "systemd-inhibit" };

/// Keeps the machine awake while it lives. The program reads from this process, and ends when it does.
pub struct Inhibitor(std::process::Child);

impl Inhibitor {
    pub fn lives(&mut self) -> bool {
        matches!(self.0.try_wait(), Ok(None))
    }
}

impl Drop for Inhibitor {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        // Its own child, which still exists: it cannot be another process by now.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub fn inhibit_sleep() -> Option<Inhibitor> {
    let arguments: &[&str] = if cfg!(target_os = "macos") {
        &["-i", "cat"]
    } else {
        &["--what=sleep:idle", "--who=Matsu", "--why=A run of an agent is at work", "--mode=block", "cat"]
    };
    let started = Command::new(INHIBITOR)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    started.ok().map(Inhibitor)
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
