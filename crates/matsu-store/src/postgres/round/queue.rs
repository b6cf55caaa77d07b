//! What a round asks the queue and its permits, as steps that travel together.

use super::*;
use crate::transitions::rows::{job_columns, task_columns};
use crate::transitions::tasks::claim::{DUE, due_jobs, due_params, in_line, kinds};
use crate::transitions::tasks::permits::{columns, pairs};

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
/// The tasks to lock: of what ends and of what is ready, each once and in order. The lists are made before the first
/// lock is waited for. Only kinds that the node can run, given as `|a|b|`: in a rolling upgrade an old node leaves new
/// kinds alone.
const LOCK: Sql = Sql::postgres(lock_tasks!(""));
/// And of what is due.
const LOCK_DUE_TOO: Sql = Sql::postgres(lock_tasks!(concat!(
    " UNION ALL SELECT task_id FROM (",
    due_jobs!("$5", "$6", "$7"),
    ") AS delayed"
)));
macro_rules! pick {
    ($of:literal) => {
        concat!(
            "SELECT ",
            job_columns!(),
            " FROM jobs WHERE slot = $1 AND ",
            in_line!(),
            " AND strpos($3, '|' || kind || '|') > 0",
            $of,
            " ORDER BY priority, queued_at, seq LIMIT $2 FOR UPDATE SKIP LOCKED"
        )
    };
}
/// Only of locked tasks: a stop may be cancelling the others.
const PICK: Sql = Sql::postgres(pick!(" AND (task_id IS NULL OR task_id = ANY($4))"));
/// Of any task: the caller checks afterwards which of their tasks were locked.
const PICK_ANY: Sql = Sql::postgres(pick!(""));
/// What jobs hold that are about to leave it, in every slot; then free ones of one slot.
const USABLE: Sql = Sql::postgres(
    "SELECT slot, n, job_id, attempt, coalesce((SELECT min(permits_max) FROM slot_wishes WHERE slot = $1), $2) \
     FROM permits WHERE job_id = ANY($4) OR (job_id IS NULL AND slot = $1 AND n <= $2) \
     ORDER BY job_id, n LIMIT $3 FOR UPDATE OF permits SKIP LOCKED",
);
/// Gives these numbers to new leases and frees whatever else the old ones hold, in every slot. It waits for transactions
/// that have one of those rows locked, because no other statement would free it.
const PASS_ON: Sql = Sql::postgres(
    "UPDATE permits SET job_id = CASE WHEN slot = $1 THEN ($3::text[])[array_position($2::bigint[], n)] END, \
     attempt = CASE WHEN slot = $1 THEN ($4::bigint[])[array_position($2::bigint[], n)] END \
     WHERE (slot = $1 AND n = ANY($2)) OR (job_id = ANY($5) \
     AND EXISTS (SELECT 1 FROM unnest($5::text[], $6::bigint[]) AS v(job_id, attempt) \
     WHERE v.job_id = permits.job_id AND v.attempt = permits.attempt))",
);

/// Looks and locks: what is due, if that is asked for, and the tasks of all that ends or could be claimed.
pub(super) fn locking<'a>(
    claim: &'a Claim,
    ending: Vec<&'a str>,
    now: Timestamp,
) -> (Option<BoundStatement<'a>>, BoundStatement<'a>) {
    let slot = claim.slot.as_str();
    let mut params = vec![slot.into(), ending.into(), claim.jobs_max.into(), Value::Owned(kinds(claim))];
    if !claim.wakes_due {
        return (None, BoundStatement { sql: LOCK, params });
    }
    let due = due_params(claim, now);
    params.extend_from_slice(&due[1..]);
    (Some(BoundStatement { sql: DUE, params: due }), BoundStatement { sql: LOCK_DUE_TOO, params })
}

/// The first jobs in the order of the queue, of locked tasks.
pub(super) fn picking<'a>(claim: &'a Claim, ledger: &'a Ledger) -> BoundStatement<'a> {
    let mut step = BoundStatement { sql: PICK, ..picking_any(claim) };
    step.params.push(ledger.tasks().map(|task| task.id.as_str()).collect::<Vec<_>>().into());
    step
}

/// The first jobs in the order of the queue, of all tasks.
pub(super) fn picking_any(claim: &Claim) -> BoundStatement<'_> {
    BoundStatement {
        sql: PICK_ANY,
        params: vec![claim.slot.as_str().into(), claim.jobs_max.into(), Value::Owned(kinds(claim))],
    }
}

/// The permits that the round may use.
pub(super) fn asking_permits<'a>(request: &'a FinishAndClaim, claim: &'a Claim) -> BoundStatement<'a> {
    let jobs = ids(request);
    // What is left comes first, and with a permit inside it may be two of one job.
    let rows_max = claim.jobs_max.saturating_add(u32::try_from(jobs.len() * 2).unwrap_or(u32::MAX));
    let mut params = params![claim.slot.as_str(), claim.permits_max, rows_max].to_vec();
    params.push(jobs.into());
    BoundStatement { sql: USABLE, params }
}

/// All of them in one statement.
pub(super) fn pass_on<'a>(batch: &'a PermitBatch, taken: &[i64], new: &'a [Lease]) -> (Sql, Vec<Vec<Value<'a>>>) {
    if taken.is_empty() && batch.leases.is_empty() {
        return (PASS_ON, Vec::new());
    }
    let [numbers, jobs, attempts] = pairs(taken, new);
    let [left_jobs, left_attempts] = columns(batch.leases.iter());
    (PASS_ON, vec![vec![batch.slot.as_str().into(), numbers, jobs, attempts, left_jobs, left_attempts]])
}
