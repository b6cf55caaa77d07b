//! Schedules: work that starts by itself at times that a rule gives, and what came of each time.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::clock::Timestamp;
use crate::id::{FiringId, ScheduleId, TaskId};
use crate::principal::Principal;
use crate::unstarted::Unstarted;
use crate::words::words;

/// When a schedule fires.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// A cron expression of five fields, in a time zone.
    Cron { expression: String, timezone: String },
    /// Again and again after so many seconds.
    Every { seconds: u64 },
    /// Once.
    At { at: Timestamp },
}

/// What is started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Plan {
    /// A run of an agent: the arguments of `use_agent`.
    Run(Map<String, Value>),
    /// A research task: the arguments of `create_task`, and the searches.
    Research { task: Map<String, Value>, searches: Vec<String> },
}

words! {
    /// What happens at a time while the work of the time before is not over.
    pub enum Overlap {
        /// Nothing is started.
        Skip = "skip",
        /// It is started when the work before is over. At most one waits.
        Queue = "queue",
    }
}

words! {
    /// What came of one time of a schedule.
    pub enum FiringState {
        /// It is to be started, or waits for the work before.
        Waiting = "waiting",
        /// A task was started.
        Started = "started",
        /// The work of the time before was not over.
        Skipped = "skipped",
        /// It was not fired in time, and is not made up for.
        Missed = "missed",
        /// The task could not be started.
        Failed = "failed",
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewSchedule {
    pub owner: Principal,
    /// Unique among the schedules of its owner.
    pub name: String,
    pub rule: Rule,
    pub plan: Plan,
    /// The folder that it works in, as `cwd` and root of the calls.
    pub directory: Option<String>,
    pub overlap: Overlap,
    /// Whether a time that passed without a daemon is made up for, once.
    pub catch_up: bool,
    pub next_at: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    pub seq: i64,
    pub id: ScheduleId,
    pub owner: Principal,
    pub name: String,
    pub rule: Rule,
    pub plan: Plan,
    pub directory: Option<String>,
    pub overlap: Overlap,
    pub catch_up: bool,
    /// Why it does not fire at the moment; absent: it does.
    pub paused: Option<String>,
    /// Absent: never again.
    pub next_at: Option<Timestamp>,
    pub created_at: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Firing {
    pub seq: i64,
    pub id: FiringId,
    pub schedule_id: ScheduleId,
    pub due_at: Timestamp,
    pub state: FiringState,
    pub task_id: Option<TaskId>,
    /// Why nothing was started.
    pub note: Option<String>,
}

/// What came of a firing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FiringOutcome {
    Started(TaskId),
    Skipped,
    Failed(Box<Unstarted>),
    /// It is looked at again at this time.
    Later(Timestamp),
}
