//! Claiming: which jobs are next, and their start. How they are found and kept from other nodes is the driver's: see
//! `postgres/round.rs` and `sqlite/round.rs`.

use matsu_core::clock::Timestamp;
use matsu_core::id::TaskId;
use matsu_core::job::{Job, JobState, Lease};
use matsu_core::limits::DELAY_MAX;
use matsu_core::ports::store::{Claim, StoreError};
use matsu_core::slot::Slot;
use std::time::Duration;

use crate::sql::{Row, Sql, Tx, Value, params};
use crate::transitions::hold::hold;
use crate::transitions::ledger::Ledger;

/// Jobs that can be claimed, in the words of both indexes: that of SQLite names the state, that of PostgreSQL must not,
/// so that a job which starts keeps its place in it.
macro_rules! in_line {
    () => {
        concat!("state = 'queued' AND hold = ", $crate::transitions::hold::hold!(None), " AND finished_at IS NULL")
    };
}
macro_rules! delayed {
    () => {
        concat!("state = 'queued' AND hold = ", $crate::transitions::hold::hold!(Later), " AND finished_at IS NULL")
    };
}
/// Delayed jobs whose time has come, and those put off further than any job can be: the clock was set back, and
/// their time would not come for as long as it was set back. Two short walks on one index, however many wait.
macro_rules! due_jobs {
    ($now:literal, $limit:literal, $astray:literal) => {
        concat!(
            "SELECT seq, task_id FROM (SELECT seq, task_id FROM jobs WHERE slot = $1 AND ",
            $crate::transitions::tasks::claim::delayed!(),
            " AND run_at <= ",
            $now,
            " ORDER BY run_at LIMIT ",
            $limit,
            ") AS due UNION ALL SELECT seq, task_id FROM (SELECT seq, task_id FROM jobs WHERE slot = $1 AND ",
            $crate::transitions::tasks::claim::delayed!(),
            " AND run_at > ",
            $astray,
            " ORDER BY run_at LIMIT ",
            $limit,
            ") AS astray"
        )
    };
}
pub const DUE: Sql = Sql::both(due_jobs!("$2", "$3", "$4"));
/// Delayed jobs that one claim wakes; the rest wait for the next.
const WOKEN_MAX: i64 = 256;
const WAKE: Sql = Sql::both(concat!(
    "UPDATE jobs SET hold = ",
    hold!(None),
    " WHERE seq = $1 AND state = 'queued' AND hold = ",
    hold!(Later)
));
/// No other transaction changes them: they are locked on PostgreSQL, and SQLite has one writer at a time.
const START: Sql = Sql::each(
    "UPDATE jobs SET state = 'running', attempt = attempt + 1, started_at = $2, owner_node = $3, error_code = NULL, \
     error_message = NULL WHERE seq = $1",
    "UPDATE jobs SET state = 'running', attempt = attempt + 1, started_at = $2, owner_node = $3, error_code = NULL, \
     error_message = NULL WHERE seq = ANY($1)",
);
const ANY_READY: Sql = Sql::each(
    concat!("SELECT 1 FROM jobs WHERE slot = $1 AND ", in_line!(), " AND instr($2, '|' || kind || '|') > 0 LIMIT 1"),
    concat!("SELECT 1 FROM jobs WHERE slot = $1 AND ", in_line!(), " AND strpos($2, '|' || kind || '|') > 0 LIMIT 1"),
);
/// A job that is due but got no permit is no reason to look again at once, over and over.
const NEXT_DELAYED: Sql =
    Sql::both(concat!("SELECT min(run_at) FROM jobs WHERE slot = $1 AND ", delayed!(), " AND run_at > $2"));
pub(crate) use {delayed, due_jobs, in_line};

/// How soon to look again for what another node holds.
pub const CONTESTED_PAUSE: Duration = Duration::from_millis(100);

/// Number and task of delayed jobs whose time has come.
#[derive(Default)]
pub struct Due(Vec<(i64, Option<TaskId>)>);

impl Due {
    /// The answer to `DUE`.
    pub fn read(rows: &[Row]) -> Result<Self, StoreError> {
        let mut due = Vec::with_capacity(rows.len());
        for row in rows {
            let mut c = row.columns();
            due.push((c.int()?, c.opt_text()?.map(TaskId::from_text)));
        }
        Ok(Self(due))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn tasks(&self) -> impl Iterator<Item = TaskId> {
        self.0.iter().filter_map(|(_, task_id)| task_id.clone())
    }

    /// Jobs whose time has come can be picked from now on. One whose task is gone or was not locked stays as it is.
    pub async fn wake(&self, tx: &mut Tx<'_>, ledger: &Ledger) -> Result<(), StoreError> {
        let is_ours = |task_id: &Option<TaskId>| task_id.as_ref().is_none_or(|id| ledger.task(id).is_some());
        let wake: Vec<Vec<Value<'_>>> =
            self.0.iter().filter(|(_, task_id)| is_ours(task_id)).map(|(seq, _)| params![*seq].to_vec()).collect();
        tx.post(&WAKE, &wake).await
    }
}

/// The parameters of `DUE`.
pub fn due_params(claim: &Claim, now: Timestamp) -> Vec<Value<'_>> {
    params![claim.slot.as_str(), now, WOKEN_MAX, now.plus(DELAY_MAX)].to_vec()
}

/// Starts these jobs; each needs a permit. Returns their leases.
pub async fn start(
    tx: &mut Tx<'_>,
    ledger: &mut Ledger,
    claim: &Claim,
    jobs: &mut [Job],
    now: Timestamp,
) -> Result<Vec<Lease>, StoreError> {
    if jobs.is_empty() {
        return Ok(Vec::new());
    }
    let numbers = Value::Ints(jobs.iter().map(|job| Some(job.seq)).collect());
    tx.post_of(&START, &[numbers], params![now, &claim.node]).await?;
    for job in jobs.iter_mut() {
        job.state = JobState::Running;
        job.attempt += 1;
        job.started_at = Some(now);
        job.owner_node = Some(claim.node.clone());
        job.error_code = None;
        job.error_message = None;
        ledger.moved(job.task_id.as_ref(), JobState::Queued, JobState::Running);
    }
    Ok(jobs.iter().map(|job| Lease { job_id: job.id.clone(), attempt: job.attempt }).collect())
}

/// The kinds of a claim as the statements read them.
pub fn kinds(claim: &Claim) -> String {
    claim.kinds.iter().fold("|".to_owned(), |text, kind| text + kind.as_str() + "|")
}

/// Whether there is a job to claim, even if another transaction has it locked at the moment.
pub async fn is_any_ready(tx: &mut Tx<'_>, claim: &Claim) -> Result<bool, StoreError> {
    let params = [claim.slot.as_str().into(), Value::Owned(kinds(claim))];
    Ok(tx.row(&ANY_READY, &params).await?.is_some())
}

/// When to look again although no wake-up comes.
pub async fn next_look(
    tx: &mut Tx<'_>,
    slot: Slot,
    contested: bool,
    now: Timestamp,
) -> Result<Option<Timestamp>, StoreError> {
    let delayed = match tx.row(&NEXT_DELAYED, params![slot.as_str(), now]).await? {
        Some(row) => row.columns().opt_time()?,
        None => None,
    };
    // Candidates that were not claimed: another node has them or holds the permits. It may be gone in a moment, and the
    // wake-up of that moment may already be on its way to another node.
    let contested = contested.then(|| now.plus(CONTESTED_PAUSE));
    Ok(delayed.into_iter().chain(contested).min())
}
