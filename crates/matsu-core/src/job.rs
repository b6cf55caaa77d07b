//! A job: one schedulable piece of a task.

pub mod end;
pub mod kind;
pub mod state;

use serde::Serialize;

use crate::clock::Timestamp;
use crate::id::{JobId, NodeId, TaskId};
use crate::slot::Slot;
use crate::words::words;

pub use end::{JobEnd, Past, Retry, Settled, settle};
pub use kind::{JobKind, Recovery};
pub use state::JobState;

words! {
    /// Which job goes first. The number is what is stored; smaller runs earlier.
    pub enum Priority {
        High = "high",
        Medium = "medium",
        Low = "low",
    }
}

impl Priority {
    #[must_use]
    pub fn rank(self) -> i64 {
        match self {
            Self::High => 10,
            Self::Medium => 50,
            Self::Low => 90,
        }
    }

    #[must_use]
    pub fn from_rank(rank: i64) -> Option<Self> {
        Self::ALL.iter().copied().find(|priority| priority.rank() == rank)
    }
}

/// A job as stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Job {
    pub id: JobId,
    pub task_id: Option<TaskId>,
    pub kind: JobKind,
    pub priority: Priority,
    pub slot: Slot,
    pub state: JobState,
    pub input_json: String,
    pub output_json: Option<String>,
    pub error_code: Option<String>,
    pub error_message: Option<String>,
    pub queued_at: Timestamp,
    pub started_at: Option<Timestamp>,
    pub finished_at: Option<Timestamp>,
    pub cause_id: Option<String>,
    pub run_at: Timestamp,
    /// The fence: grows with every claim; a write that names an older one is refused.
    pub attempt: i64,
    /// The job's own errors so far.
    pub failures: u32,
    pub owner_node: Option<NodeId>,
    pub dedupe_key: Option<String>,
    pub progress_json: Option<String>,
    pub checkpoint_json: Option<String>,
    /// Insertion order; the tie-break of the queue and the cursor of its pages.
    pub seq: i64,
}

impl Job {
    /// What it has noted as its progress, in words.
    #[must_use]
    pub fn progress_line(&self) -> Option<String> {
        Some(progress_line(self.progress_json.as_deref()?))
    }
}

/// A job as lists show it: without its input and checkpoint, and with the beginning of its output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct JobSummary {
    pub id: JobId,
    pub task_id: Option<TaskId>,
    pub kind: JobKind,
    pub priority: Priority,
    pub slot: Slot,
    pub state: JobState,
    pub error_code: Option<String>,
    pub error_message: Option<String>,
    pub queued_at: Timestamp,
    pub started_at: Option<Timestamp>,
    pub finished_at: Option<Timestamp>,
    pub attempt: i64,
    pub failures: u32,
    pub owner_node: Option<NodeId>,
    pub progress_json: Option<String>,
    /// At most `RESULT_HEAD_BYTES_MAX` characters.
    pub output_head: Option<String>,
    pub output_bytes: Option<i64>,
    pub seq: i64,
}

impl JobSummary {
    /// What it has noted as its progress, in words.
    #[must_use]
    pub fn progress_line(&self) -> Option<String> {
        Some(progress_line(self.progress_json.as_deref()?))
    }
}

fn progress_line(text: &str) -> String {
    let value: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
    value["message"].as_str().unwrap_or(text).to_owned()
}

/// A job to be queued.
#[derive(Clone, Debug)]
pub struct NewJob {
    pub id: JobId,
    pub kind: JobKind,
    pub priority: Priority,
    pub slot: Slot,
    pub input_json: String,
    pub cause_id: Option<String>,
    /// Not before this moment, which is at most `DELAY_MAX` away.
    pub run_at: Timestamp,
    /// While a job with this key is unfinished in the task, another with the same key is not queued.
    pub dedupe_key: Option<String>,
}

/// The right to write for a job: its id and the attempt that was claimed. Every write made for a job
/// names its lease and is refused once that attempt is no longer the one that runs.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Lease {
    pub job_id: JobId,
    pub attempt: i64,
}
