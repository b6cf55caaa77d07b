//! Changes, counts of all work, and what is removed with time.

use serde::Serialize;

use crate::change::{Change, ChangeCursor};
use crate::clock::Timestamp;
use crate::job::JobState;
use crate::principal::Principal;
use crate::slot::Slot;

use super::request;

/// Changes after `cursor`, oldest first, at most `rows_max`. A change that commits late is still seen: the
/// cursor never passes a transaction that may yet commit.
#[derive(Clone, Debug)]
pub struct ChangesSince {
    pub cursor: ChangeCursor,
    pub rows_max: u32,
}
request!(ChangesSince => ChangeBatch);

/// A cursor after everything there is now.
#[derive(Clone, Debug)]
pub struct ReadChangeCursor;
request!(ReadChangeCursor => ChangeCursor);

/// When rows that are no longer needed are old enough to be removed.
#[derive(Clone, Copy, Debug)]
pub struct PruneRule {
    /// Changes recorded, and rates last used, before this.
    pub changes_before: Timestamp,
    /// Idempotency keys first used before this.
    pub keys_before: Timestamp,
    /// System jobs that finished before this.
    pub system_jobs_before: Timestamp,
    /// Tokens revoked before this.
    pub revoked_before: Timestamp,
}

/// What a prune removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pruned {
    pub rows: u64,
    /// Of some sort there may be more.
    pub has_more: bool,
}

#[derive(Clone, Debug, Default)]
pub struct ChangeBatch {
    pub changes: Vec<Change>,
    pub cursor: ChangeCursor,
}

/// How many jobs are not finished, over all nodes and owners.
#[derive(Clone, Debug)]
pub struct CountUnfinished;
request!(CountUnfinished => i64);

/// What is going on among the owner's tasks: a cost that grows with what is unfinished, not with history.
#[derive(Clone, Debug)]
pub struct ReadSummary {
    pub owner: Principal,
    pub failed_since: Timestamp,
}
request!(ReadSummary => Summary);

/// The queue in numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Unfinished jobs by slot and state; what has none is not listed.
    pub queue: Vec<QueueCount>,
    /// Tasks that failed since the moment asked about.
    pub failed: i64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueCount {
    pub slot: Slot,
    pub state: JobState,
    pub jobs: i64,
}

/// What `doctor` shows about a store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StoreInfo {
    pub backend: &'static str,
    /// Where it is, without secrets.
    pub location: String,
    pub schema_version: i64,
    pub jobs: i64,
    pub tasks: i64,
}
