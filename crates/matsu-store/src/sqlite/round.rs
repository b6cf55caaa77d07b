//! Settling and claiming on SQLite: nothing can move between two statements, so each follows from the answer before.

use matsu_core::job::{Job, Lease};
use matsu_core::ports::store::{Claim, ClaimOutcome, FinishAndClaim, StoreError};
use matsu_core::slot::Slot;

use crate::sql::{Sql, Tx, Value, params};
use crate::transitions::ledger::Ledger;
use crate::transitions::rows::{self, job_columns};
use crate::transitions::tasks::claim::{self, DUE, Due, in_line};
use crate::transitions::tasks::finish_and_claim::{
    ended, leave_capacity, look_again, release_reservations, settle_in_steps, start,
};
use crate::transitions::tasks::permits::PermitBatch;

/// Only kinds that the node can run, given as `|a|b|`: after an upgrade an old process leaves new kinds alone.
const READY: Sql = Sql::sqlite(concat!(
    "SELECT ",
    job_columns!(),
    " FROM jobs WHERE slot = $1 AND ",
    in_line!(),
    " AND instr($3, '|' || kind || '|') > 0 ORDER BY priority, queued_at, seq LIMIT $2"
));
/// All that are held, in every slot; then free ones of one slot. They are a handful, so what others hold comes along.
const USABLE: Sql = Sql::sqlite(
    "SELECT slot, n, job_id, attempt, coalesce((SELECT min(permits_max) FROM slot_wishes WHERE slot = $1), $2) \
     FROM permits WHERE job_id IS NOT NULL OR (slot = $1 AND n <= $2) ORDER BY job_id IS NULL, n",
);
const HAND_OVER: Sql = Sql::sqlite("UPDATE permits SET job_id = $3, attempt = $4 WHERE slot = $1 AND n = $2");

pub async fn run(request: &FinishAndClaim, claim: &Claim, tx: &mut Tx<'_>) -> Result<ClaimOutcome, StoreError> {
    let now = request.now;
    let (ending, mut ledger, finished) = settle_in_steps(request, tx).await?;
    // Only now: a finish may have put a job back at the head of the queue.
    let due = if claim.wakes_due { tx.rows(&DUE, &claim::due_params(claim, now)).await? } else { Vec::new() };
    let (due, ready) = (Due::read(&due)?, ready(tx, claim).await?);
    let contested = !ready.is_empty() || !due.is_empty();
    let tasks = ready.iter().filter_map(|job| job.task_id.clone()).chain(due.tasks());
    ledger.lock_also(tx, tasks).await?;
    let permits = tx.rows(&USABLE, params![claim.slot.as_str(), claim.permits_max]).await?;
    let permits = PermitBatch::read(&permits, request, claim, hand_over)?;
    let picked = if due.is_empty() { ready } else { woken(tx, &due, &ledger, claim).await? };
    let mut outcome = ClaimOutcome { finished, ..ClaimOutcome::default() };
    outcome.claimed = start(tx, &mut ledger, claim, picked, &permits, now).await?;
    look_again(tx, claim, contested, &mut outcome, now).await?;
    release_reservations(tx, &ended(&request.finishes, &outcome.finished)).await?;
    ledger.write(tx, now).await?;
    leave_capacity(tx, request, ending.values().map(|row| row.slot));
    Ok(outcome)
}

/// The first jobs in the order of the queue.
async fn ready(tx: &mut Tx<'_>, claim: &Claim) -> Result<Vec<Job>, StoreError> {
    let kinds = claim::kinds(claim);
    rows::jobs(&tx.rows(&READY, params![claim.slot.as_str(), claim.jobs_max, &kinds]).await?)
}

/// The same once what is due has joined the queue.
async fn woken(tx: &mut Tx<'_>, due: &Due, ledger: &Ledger, claim: &Claim) -> Result<Vec<Job>, StoreError> {
    due.wake(tx, ledger).await?;
    ready(tx, claim).await
}

/// Row by row: those that are taken, then those that become free.
fn hand_over<'a>(batch: &'a PermitBatch, taken: &[i64], new: &'a [Lease]) -> (Sql, Vec<Vec<Value<'a>>>) {
    let slot = batch.slot.as_str();
    let taken_rows = taken.iter().zip(new).map(|(n, lease)| params![slot, *n, &lease.job_id, lease.attempt].to_vec());
    let is_taken = |(slot, number): &(Slot, i64)| *slot == batch.slot && taken.contains(number);
    let freed = batch.left.iter().filter(|left| !is_taken(left));
    let freed_rows = freed.map(|(slot, n)| params![slot.as_str(), *n, None::<&str>, None::<i64>].to_vec());
    (HAND_OVER, taken_rows.chain(freed_rows).collect())
}
