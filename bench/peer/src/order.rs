//! The order a peer process takes as its one argument, and the answer it prints as its one line.
//!
//! Times are measured inside the process that does the work, so starting it never counts.

use serde::{Deserialize, Serialize};

/// One measurement, complete in itself: a peer process answers exactly one and exits.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Order {
    pub peer: String,
    /// A fresh file path for SQLite peers, a server URL for Postgres peers.
    pub store: String,
    pub durability: Durability,
    pub payload_bytes: usize,
    pub ask: Ask,
}

/// The SQLite `synchronous` setting; Postgres peers run at the server's own setting.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Durability {
    Normal,
    Full,
}

impl Durability {
    pub fn pragma(self) -> &'static str {
        match self {
            Self::Normal => "NORMAL",
            Self::Full => "FULL",
        }
    }
}

/// How jobs are handed in.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// One caller, one durable call per job.
    Single,
    /// One caller, `size` jobs per durable call.
    Batched { size: usize },
    /// `callers` at once, each with one durable call per job.
    Callers { callers: usize },
}

#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ask {
    /// Time the enqueueing of `jobs` jobs.
    Enqueue { jobs: usize, how: How },
    /// Enqueue `jobs` empty jobs untimed, then time `workers` workers until the last completion is committed.
    Drain { jobs: usize, workers: usize },
    /// With idle workers, enqueue one job at a time; each sample runs from the call to the start of the body.
    Latency { samples: usize, workers: usize },
    /// Fill the store with `finished` finished jobs untimed, then sample single claims and single status reads.
    History { finished: usize, samples: usize },
    /// Call a tool that does nothing, one call at a time.
    Dispatch { samples: usize },
}

/// `elapsed_ns` covers `count` operations; latencies are per operation where the order asks for them.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Sample {
    pub count: usize,
    pub elapsed_ns: u64,
    /// Enqueue to start, or claim, by order.
    pub latencies_ns: Vec<u64>,
    /// Status reads of what is worked at and of something old, in turns, for `Ask::History` only.
    pub status_ns: Vec<u64>,
    pub old_status_ns: Vec<u64>,
    /// Which variant was fastest, or anything the reader of the report must know.
    pub note: Option<String>,
}

impl Sample {
    pub fn timed(count: usize, elapsed: std::time::Duration) -> Self {
        Self { count, elapsed_ns: elapsed.as_nanos() as u64, ..Self::default() }
    }

    pub fn latencies(latencies_ns: Vec<u64>) -> Self {
        Self { count: latencies_ns.len(), latencies_ns, ..Self::default() }
    }

    pub fn noted(mut self, note: impl Into<String>) -> Self {
        self.note = Some(note.into());
        self
    }

    pub fn per_second(&self) -> f64 {
        self.count as f64 * 1e9 / self.elapsed_ns.max(1) as f64
    }
}

/// A peer that lacks an operation says so; a peer that breaks reports the error it broke with.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    Done(Sample),
    Cannot { reason: String },
    Failed { error: String },
}

impl Answer {
    pub fn cannot(reason: impl Into<String>) -> Self {
        Self::Cannot { reason: reason.into() }
    }
}
