//! What a daemon and the supervisor of a run say to each other. The order is a file; everything after it is one JSON
//! line each, over the control socket.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::agents::shim::order::Order;

/// The version of what is said here. A daemon talks to supervisors of its own version and of the one before.
pub const VERSION: u32 = 1;

/// What to supervise. Not to be printed: it holds secrets.
#[derive(Clone, Serialize, Deserialize)]
pub struct Supervision {
    pub version: u32,
    pub order: Order,
    /// What the program reads first, where it reads from a pipe.
    pub first_input: Option<String>,
    /// What a daemon shows at the control socket.
    pub secret: String,
    /// Of the daemon that starts the run.
    pub attempt: i64,
    /// How long the program may run while no daemon counts.
    pub seconds_max: Option<u32>,
    /// How long the program may print nothing.
    #[serde(default)]
    pub stall_seconds: Option<u32>,
    /// The run is of no use without the daemon that started it.
    pub ends_with_daemon: bool,
    /// How a daemon is started when none has been seen for a while. Absent: none is.
    pub restart: Option<Restart>,
}

/// How to start a daemon. Not to be printed: its environment may hold secrets.
#[derive(Clone, Serialize, Deserialize)]
pub struct Restart {
    pub program: PathBuf,
    pub args: Vec<String>,
    pub env: BTreeMap<String, String>,
    /// Where a daemon answers.
    pub socket: PathBuf,
    /// While this file exists, the last daemon was stopped by a person and none is started.
    pub unless: PathBuf,
    /// Where it writes its log.
    pub log: PathBuf,
}

/// The first line of a daemon that was not there when the run began.
#[derive(Clone, Serialize, Deserialize)]
pub struct Hello {
    pub version: u32,
    pub secret: String,
    /// The supervisor listens to the highest one that it has seen.
    pub attempt: i64,
}

/// Every later line of a daemon.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Word {
    /// End every process of the run.
    End,
    /// For the program to read. What comes again with the same id is ignored.
    Input {
        id: u64,
        text: String,
    },
    CloseInput,
    /// Everything before this position of the output is stored.
    Read {
        position: u64,
    },
    /// The program has named its conversation.
    Session {
        id: String,
    },
    /// Whether a person is asked; the program's time stands still then.
    Park {
        is_parked: bool,
    },
}

/// What a supervisor sends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Notice {
    /// The answer to a hello that was accepted.
    Welcome {
        version: u32,
        ran_seconds: u32,
    },
    Refused {
        why: String,
    },
    Started,
    /// There is output up to these positions.
    Grew {
        out: u64,
        err: u64,
    },
    /// Every process is gone; the exit record says how.
    Ended,
}
