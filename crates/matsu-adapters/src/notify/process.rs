//! Starts the programs of channels; no other file of this folder starts one.
#![expect(clippy::disallowed_methods, reason = "the one file of this folder that starts processes")]

use std::process::Stdio;
use std::time::Duration;

use matsu_core::clock::Clock;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

/// A program that takes longer is ended.
const TIME_MAX: Duration = Duration::from_secs(30);

/// How much of what a program wrote to stderr is kept.
const ERROR_CHARS_MAX: usize = 300;

/// Runs a program with this input. An error says why it failed.
pub async fn run(program: &str, arguments: &[&str], variables: &[(&str, &str)], input: &[u8]) -> Result<(), String> {
    let mut command = Command::new(program);
    command.args(arguments).envs(variables.iter().copied()).current_dir("/").kill_on_drop(true);
    let child = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
    let mut child = child.map_err(|error| format!("{program} cannot be started: {error}"))?;
    let stdin = child.stdin.take();
    let work = async {
        if let Some(mut stdin) = stdin {
            // A program that does not read it may end before it is written.
            let _ = stdin.write_all(input).await;
        }
        child.wait_with_output().await
    };
    let ended = Clock::system().within(TIME_MAX, work).await;
    let output = ended.ok_or_else(|| format!("{program} did not end within {} s", TIME_MAX.as_secs()))?;
    let output = output.map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let stderr: String = String::from_utf8_lossy(&output.stderr).trim().chars().take(ERROR_CHARS_MAX).collect();
    Err(format!("{program} ended with {}: {stderr}", output.status))
}
