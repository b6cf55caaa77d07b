//! Server processes: each in a process group of its own, so that nothing of it is left when it is ended.
#![expect(clippy::disallowed_methods, reason = "the file that starts MCP servers, and ends them")]

use std::collections::BTreeMap;
use std::process::Stdio;
use std::time::Duration;

use matsu_core::clock::Clock;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{ChildStdin, ChildStdout, Command};

/// How long a server may take to leave by itself once its input is closed.
const LEAVE_MAX: Duration = Duration::from_secs(2);
/// How long after SIGTERM.
const TERM_MAX: Duration = Duration::from_secs(2);

pub struct Child {
    child: tokio::process::Child,
    group: Option<Pid>,
}

/// Starts a server: no shell, no environment but what is given.
pub fn start(
    command: &str,
    args: &[String],
    cwd: Option<&str>,
    environment: &[(String, String)],
    own: &BTreeMap<String, String>,
) -> Result<(Child, ChildStdout, ChildStdin), String> {
    let mut process = Command::new(command);
    process.args(args).env_clear().envs(environment.iter().cloned()).envs(own);
    if let Some(folder) = cwd {
        process.current_dir(folder);
    }
    // What a server writes to stderr is for its own log; it is not read here.
    process.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).process_group(0).kill_on_drop(true);
    let mut child = process.spawn().map_err(|error| format!("{command} cannot be started: {error}"))?;
    let group = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    match (child.stdout.take(), child.stdin.take()) {
        (Some(out), Some(input)) => Ok((Child { child, group }, out, input)),
        _ => Err(format!("{command} has no pipes")),
    }
}

impl Child {
    /// Its input is closed already. Waits, then asks, then kills; returns when it is gone.
    pub async fn end(mut self, clock: Clock) {
        if clock.within(LEAVE_MAX, self.child.wait()).await.is_none() {
            self.signal(Signal::TERM);
            let _ = clock.within(TERM_MAX, self.child.wait()).await;
        }
        // Also when it left by itself: a wrapper may leave its child behind.
        self.signal(Signal::KILL);
        let _ = self.child.wait().await;
        self.group = None;
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.group {
            // An error means that no process of the group is left, which is the aim.
            let _ = kill_process_group(group, signal);
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}
