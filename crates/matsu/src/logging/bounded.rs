//! The daemon's log file, which no other program empties: when it is full it is put aside, and one such is kept.
//!
//! The log goes to stderr whatever happens; only what stderr is changes. So a panic lands in the same file.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use matsu_core::limits::DAEMON_LOG_BYTES_MAX;
use tracing_subscriber::fmt::MakeWriter;

/// The file, for the process that starts a daemon.
pub fn open(path: &Path) -> Result<File> {
    let file = OpenOptions::new().create(true).append(true).mode(0o600).open(path);
    file.with_context(|| format!("cannot write {}", path.display()))
}

/// Stderr, if it is this file, with a bound on its size.
#[derive(Clone)]
pub struct BoundedLog {
    state: Arc<Mutex<State>>,
}

struct State {
    path: PathBuf,
    bytes: u64,
    bytes_max: u64,
}

impl BoundedLog {
    /// `None`: stderr is not this file, but a terminal for instance, and is left as it is.
    pub fn of_stderr(path: &Path) -> Option<Self> {
        let there = fs::metadata(path).ok()?;
        let stderr = rustix::fs::fstat(io::stderr()).ok()?;
        if (stderr.st_dev, stderr.st_ino) != (there.dev(), there.ino()) {
            return None;
        }
        let state = State { path: path.to_owned(), bytes: there.len(), bytes_max: DAEMON_LOG_BYTES_MAX };
        Some(Self { state: Arc::new(Mutex::new(state)) })
    }
}

impl State {
    fn rotate(&mut self) -> Result<()> {
        fs::rename(&self.path, self.path.with_extension("log.old"))?;
        let fresh = open(&self.path)?;
        rustix::stdio::dup2_stderr(&fresh)?;
        self.bytes = 0;
        Ok(())
    }
}

impl Write for &BoundedLog {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        // A log that cannot be put aside goes on growing: better too long than silent.
        if state.bytes + line.len() as u64 > state.bytes_max && state.rotate().is_err() {
            state.bytes = 0;
        }
        state.bytes += line.len() as u64;
        io::stderr().write_all(line)?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

impl<'a> MakeWriter<'a> for BoundedLog {
    type Writer = &'a BoundedLog;

    fn make_writer(&'a self) -> Self::Writer {
        self
    }
}
