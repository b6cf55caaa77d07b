//! The browser's process: started with an empty profile in a folder of its own, controlled over two pipes, and ended
//! with its owner. No debugging port is open, so no other process on the machine can control it.
#![expect(clippy::disallowed_methods, reason = "the one file that starts the browser")]

use std::path::Path;
use std::process::Stdio;

use tempfile::TempDir;
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

/// Moves our pipes to where the browser expects them, 3 to read and 4 to write, and becomes the browser.
const HANDOVER: &str = "exec \"$@\" 3<&0 4>&1 0</dev/null 1>/dev/null 2>/dev/null";

const FLAGS: [&str; 20] = [
    "--headless=new",
    "--remote-debugging-pipe",
    // Loopback goes through the proxy too, and no name is ever resolved by the browser itself.
    "--proxy-bypass-list=<-loopback>",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--disable-quic",
    "--dns-prefetch-disable",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-client-side-phishing-detection",
    "--disable-default-apps",
    "--disable-domain-reliability",
    "--disable-extensions",
    "--disable-gpu",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--metrics-recording-only",
    "--mute-audio",
    "--no-default-browser-check",
    "--no-first-run",
];

/// A running browser. Dropping it kills it and removes its profile.
pub struct Process {
    child: Child,
    _profile: TempDir,
}

impl Process {
    /// The browser, and the pipes to write to it and to read from it.
    pub fn start(program: &Path, proxy_port: u16) -> std::io::Result<(Self, ChildStdin, ChildStdout)> {
        let profile = TempDir::with_prefix("matsu-browser-")?;
        let mut command = Command::new("/bin/sh");
        command.args(["-c", HANDOVER, "sh"]).arg(program).args(FLAGS);
        command.arg(format!("--proxy-server=http://127.0.0.1:{proxy_port}"));
        command.arg(format!("--user-data-dir={}", profile.path().display()));
        if rustix::process::geteuid().is_root() {
            // As root the browser's own sandbox cannot start at all.
            command.arg("--no-sandbox");
        }
        command.arg("about:blank");
        // A group of its own, so that its helpers end with it.
        command.process_group(0).kill_on_drop(true).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn()?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(std::io::ErrorKind::BrokenPipe.into());
        };
        Ok((Self { child, _profile: profile }, input, output))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let group = self.child.id().and_then(|id| i32::try_from(id).ok()).and_then(rustix::process::Pid::from_raw);
        if let Some(group) = group {
            // Already gone is as good.
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
    }
}
