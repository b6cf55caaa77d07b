//! What a shim or a supervisor starts, and what a shim reports: one JSON line each.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::agents::sandbox::Sandbox;
use crate::agents::sandbox::state::Keep;

/// What to start: the first line to a shim, and a part of what a supervisor gets.
#[derive(Clone, Serialize, Deserialize)]
pub struct Order {
    pub program: PathBuf,
    pub args: Vec<String>,
    /// All of it; nothing is inherited.
    pub env: BTreeMap<String, String>,
    pub directory: PathBuf,
    pub stdin: Stdin,
    pub lock: PathBuf,
    pub sandbox: Sandbox,
    /// What is kept of the program's own state after its last process is gone.
    pub keep: Vec<Keep>,
    /// Absent: the program has no way to the daemon.
    pub socket: Option<RunSocket>,
    pub stop_signal: EndWord,
}

/// The socket that the run reaches the daemon by. Not to be printed: it holds a secret.
#[derive(Clone, Serialize, Deserialize)]
pub struct RunSocket {
    /// The folder it lies in, as `matsu.sock`.
    pub folder: PathBuf,
    /// The daemon's own, which the run does not see.
    pub daemon: PathBuf,
    /// The line that tells the daemon whose socket a connection came through. Its key never reaches the run.
    pub introduction: String,
}

/// Where the program reads from.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Stdin {
    Nothing,
    File(PathBuf),
    /// What the daemon sends to the supervisor as input.
    Pipe,
}

/// How a program is asked to end.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub enum EndWord {
    Term,
    Int,
}

/// What the shim reports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Report {
    /// Nothing runs.
    Failed { error: String },
    /// Every process is gone.
    Ended {
        code: Option<i32>,
        signal: Option<i32>,
        /// How many processes had to be ended; the program itself counts if it had not ended by then.
        processes: u32,
    },
}
