//! Claiming: which jobs are next, and their start.
//!
//! On PostgreSQL the first look takes no locks and only shows which tasks to lock. Another node may be faster
//! meanwhile, so the jobs are picked again behind the locks. On SQLite nothing can move after the look.

use matsu_core::clock::Timestamp;
use matsu_core::id::TaskId;
use matsu_core::job::{Job, JobState, Lease};
use matsu_core::limits::DELAY_MAX;
use matsu_core::ports::store::{Claim, StoreError};
use matsu_core::slot::Slot;
use std::time::Duration;

use super::hold::hold;
use super::ledger::Ledger;
use super::rows::{self, job_columns, task_columns};
use crate::sql::{Row, Sql, Step, Tx, Value, params};

/// Jobs that can be claimed, in the words of both indexes: that of SQLite names the state, that of PostgreSQL must not,
/// so that a job which starts keeps its place in it.
macro_rules! in_line {
    () => {
        concat!("state = 'queued' AND hold = ", hold!(None), " AND finished_at IS NULL")
    };
}
macro_rules! delayed {
    () => {
        concat!("state = 'queued' AND hold = ", hold!(Later), " AND finished_at IS NULL")
    };
}
/// Only kinds that the node can run, given as `|a|b|`: in a rolling upgrade an old node leaves new kinds alone. On
/// SQLite only: on PostgreSQL another node may claim the jobs first, so they are picked after the locks are taken.
const READY: Sql = Sql::both(concat!(
    "SELECT ",
    job_columns!(),
    " FROM jobs WHERE slot = $1 AND ",
    in_line!(),
    " AND instr($3, '|' || kind || '|') > 0 ORDER BY priority, queued_at, seq LIMIT $2"
));
/// Delayed jobs whose time has come, and those put off further than any job can be: the clock was set back, and
/// their time would not come for as long as it was set back. Two short walks on one index, however many wait.
macro_rules! due_jobs {
    ($now:literal, $limit:literal, $astray:literal) => {
        concat!(
            "SELECT seq, task_id FROM (SELECT seq, task_id FROM jobs WHERE slot = $1 AND ",
            delayed!(),
            " AND run_at <= ",
            $now,
            " ORDER BY run_at LIMIT ",
            $limit,
            ") AS due UNION ALL SELECT seq, task_id FROM (SELECT seq, task_id FROM jobs WHERE slot = $1 AND ",
            delayed!(),
            " AND run_at > ",
            $astray,
            " ORDER BY run_at LIMIT ",
            $limit,
            ") AS astray"
        )
    };
}
const DUE: Sql = Sql::both(due_jobs!("$2", "$3", "$4"));
macro_rules! lock_tasks {
    ($more:expr) => {
        concat!(
            "SELECT ",
            task_columns!(),
            " FROM tasks WHERE id = ANY(ARRAY(SELECT task_id FROM jobs WHERE id = ANY($2) UNION ALL \
             SELECT task_id FROM (SELECT task_id FROM jobs WHERE slot = $1 AND ",
            in_line!(),
            " AND strpos($4, '|' || kind || '|') > 0 ORDER BY priority, queued_at, seq LIMIT $3) AS ready",
            $more,
            ")) ORDER BY id FOR UPDATE"
        )
    };
}
/// The tasks to lock, on PostgreSQL only: of what ends and of what is ready, each once and in order. The lists are made
/// before the first lock is waited for.
const LOCK: Sql = Sql::both(lock_tasks!(""));
/// And of what is due.
const LOCK_DUE_TOO: Sql =
    Sql::both(lock_tasks!(concat!(" UNION ALL SELECT task_id FROM (", due_jobs!("$5", "$6", "$7"), ") AS delayed")));
/// Delayed jobs that one claim wakes; the rest wait for the next.
const WOKEN_MAX: i64 = 256;
const WAKE: Sql = Sql::both(concat!(
    "UPDATE jobs SET hold = ",
    hold!(None),
    " WHERE seq = $1 AND state = 'queued' AND hold = ",
    hold!(Later)
));
/// Only of locked tasks: a stop may be cancelling the others. (The list is empty where it is not asked for.)
const PICK: Sql = Sql::each(
    concat!(
        "SELECT ",
        job_columns!(),
        " FROM jobs WHERE slot = $1 AND ",
        in_line!(),
        " AND $3 IS NOT NULL \
         AND instr($4, '|' || kind || '|') > 0 ORDER BY priority, queued_at, seq LIMIT $2"
    ),
    concat!(
        "SELECT ",
        job_columns!(),
        " FROM jobs WHERE slot = $1 AND ",
        in_line!(),
        " AND (task_id IS NULL OR task_id = ANY($3)) \
         AND strpos($4, '|' || kind || '|') > 0 ORDER BY priority, queued_at, seq LIMIT $2 FOR UPDATE SKIP LOCKED"
    ),
);
/// Of any task, on PostgreSQL only: the caller checks afterwards which of their tasks were locked.
const PICK_ANY: Sql = Sql::both(concat!(
    "SELECT ",
    job_columns!(),
    " FROM jobs WHERE slot = $1 AND ",
    in_line!(),
    " AND strpos($3, '|' || kind || '|') > 0 \
     ORDER BY priority, queued_at, seq LIMIT $2 FOR UPDATE SKIP LOCKED"
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
/// How soon to look again for what another node holds.
pub const CONTESTED_PAUSE: Duration = Duration::from_millis(100);

/// What could be claimed when we looked.
#[derive(Default)]
pub struct Candidates {
    ready: Vec<Job>,
    /// Number and task of delayed jobs whose time has come.
    due: Vec<(i64, Option<TaskId>)>,
}

impl Candidates {
    pub async fn look(tx: &mut Tx<'_>, claim: &Claim, now: Timestamp) -> Result<Self, StoreError> {
        let due = if claim.wakes_due { tx.rows(&DUE, &due_params(claim, now)).await? } else { Vec::new() };
        let kinds = kinds(claim);
        let ready = tx.rows(&READY, params![claim.slot.as_str(), claim.jobs_max, &kinds]).await?;
        Ok(Self { ready: rows::jobs(&ready)?, ..Self::due(&due)? })
    }

    /// Looks and locks in one round trip: what is due, if that is asked for, and the tasks of all that ends or could be
    /// claimed.
    pub fn locking<'a>(claim: &'a Claim, ending: Vec<&'a str>, now: Timestamp) -> (Option<Step<'a>>, Step<'a>) {
        let slot = claim.slot.as_str();
        let mut params = vec![slot.into(), ending.into(), claim.jobs_max.into(), Value::Owned(kinds(claim))];
        if !claim.wakes_due {
            return (None, Step { sql: LOCK, params });
        }
        let due = due_params(claim, now);
        params.extend_from_slice(&due[1..]);
        (Some(Step { sql: DUE, params: due }), Step { sql: LOCK_DUE_TOO, params })
    }

    /// The answer to the question what is due.
    pub fn due(rows: &[Row]) -> Result<Self, StoreError> {
        let mut found = Self::default();
        for row in rows {
            let mut c = row.columns();
            found.due.push((c.int()?, c.opt_text()?.map(TaskId::from_text)));
        }
        Ok(found)
    }

    pub fn is_empty(&self) -> bool {
        self.ready.is_empty() && self.due.is_empty()
    }

    /// The tasks to lock before anything is started.
    pub fn tasks(&self) -> impl Iterator<Item = TaskId> {
        let due = self.due.iter().filter_map(|(_, task_id)| task_id.clone());
        self.ready.iter().filter_map(|job| job.task_id.clone()).chain(due)
    }

    /// The first jobs in the order of the queue.
    pub async fn pick(self, tx: &mut Tx<'_>, ledger: &Ledger, claim: &Claim) -> Result<Vec<Job>, StoreError> {
        if tx.is_alone() && self.due.is_empty() {
            return Ok(self.ready);
        }
        self.wake(tx, ledger).await?;
        let locked: Vec<&str> = ledger.tasks().map(|task| task.id.as_str()).collect();
        let picking = picking(claim, locked);
        rows::jobs(&tx.rows(&picking.sql, &picking.params).await?)
    }

    /// Jobs whose time has come can be picked from now on. One whose task is gone or was not locked stays as it is.
    pub async fn wake(&self, tx: &mut Tx<'_>, ledger: &Ledger) -> Result<(), StoreError> {
        let is_ours = |task_id: &Option<TaskId>| task_id.as_ref().is_none_or(|id| ledger.task(id).is_some());
        let wake: Vec<Vec<Value<'_>>> =
            self.due.iter().filter(|(_, task_id)| is_ours(task_id)).map(|(seq, _)| params![*seq].to_vec()).collect();
        tx.post(&WAKE, &wake).await
    }
}

fn due_params(claim: &Claim, now: Timestamp) -> Vec<Value<'_>> {
    params![claim.slot.as_str(), now, WOKEN_MAX, now.plus(DELAY_MAX)].to_vec()
}

/// The first jobs in the order of the queue, of locked tasks.
pub fn picking<'a>(claim: &'a Claim, locked: Vec<&'a str>) -> Step<'a> {
    let params = vec![claim.slot.as_str().into(), claim.jobs_max.into(), locked.into(), Value::Owned(kinds(claim))];
    Step { sql: PICK, params }
}

/// The first jobs in the order of the queue, whosever they are.
pub fn picking_any(claim: &Claim) -> Step<'_> {
    Step { sql: PICK_ANY, params: vec![claim.slot.as_str().into(), claim.jobs_max.into(), Value::Owned(kinds(claim))] }
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
    let sets: Vec<Vec<Value<'_>>> = if tx.is_alone() {
        jobs.iter().map(|job| params![job.seq, now, &claim.node].to_vec()).collect()
    } else {
        let numbers = Value::Ints(jobs.iter().map(|job| Some(job.seq)).collect());
        vec![vec![numbers, now.into(), (&claim.node).into()]]
    };
    tx.post(&START, &sets).await?;
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
