//! One process that a test started. It ends with the test, however that ends.

use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::api::until;

pub struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts it with all its output in one file.
    pub fn start(mut command: Command, log: PathBuf) -> Self {
        let file = File::create(&log).unwrap();
        let (out, err) = (file.try_clone().unwrap(), file);
        let child = command.stdin(Stdio::null()).stdout(out).stderr(err).spawn().unwrap();
        Self { child, log }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, signal).unwrap_or_else(|error| panic!("{pid:?} {signal:?}: {error}"));
    }

    /// As a power cut would.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub fn has_ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().unwrap()
    }

    /// How it ended, and after how long.
    #[track_caller]
    pub fn ends_within(&mut self, within: Duration) -> (ExitStatus, Duration) {
        let began = Instant::now();
        let status = until("the process ends", within, || self.child.try_wait().unwrap());
        (status, began.elapsed())
    }

    /// Everything it printed so far.
    pub fn printed(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // SIGKILL ends a stopped process too.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("--- what process {} said:\n{}", self.child.id(), self.printed());
        }
    }
}
