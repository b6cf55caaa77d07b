//! Settling and claiming on PostgreSQL, where every answer costs a round trip, and others work at the same time.
//!
//! Two of them if all that ended was completed (see [`completed`]), else three: what ends, and the locks on its tasks
//! and on those of what could be claimed; the ends, their permits, and the jobs picked behind the locks; and
//! everything that follows, with the commit. Tasks are locked once and in order, so the candidates are looked at
//! before; another node may be faster meanwhile, which is why the jobs are picked again.

mod completed;
mod queue;

use std::collections::{HashMap, HashSet};

use matsu_core::clock::Timestamp;
use matsu_core::id::{JobId, TaskId};
use matsu_core::job::{Job, JobEnd, JobState, Lease};
use matsu_core::ports::store::{Claim, ClaimOutcome, Finish, FinishAndClaim, StoreError};
use matsu_core::slot::Slot;

use crate::sql::{BoundStatement, Columns, Row, Sql, Tx, Value, internal, params};
use crate::transitions::ledger::Ledger;
use crate::transitions::tasks::claim::{self, Due};
use crate::transitions::tasks::finish_and_claim::{
    ENDING, Ending, Plan, answer_all, ended, leave_capacity, look_again, read_ending, release, settle_moved, start,
};
use crate::transitions::tasks::permits::PermitBatch;
use crate::transitions::tasks::spending;
use crate::transitions::{held, rows};

/// Answers with those that were written. The list beside the join is what keeps the planner on the index.
const SETTLE_ALL: Sql = Sql::postgres(concat!(
    "UPDATE jobs SET state = v.state, hold = v.hold, output_json = coalesce(v.output_json, jobs.output_json), \
     error_code = v.error_code, error_message = v.error_message, failures = v.failures, deaths = v.deaths, \
     run_at = coalesce(v.run_at, jobs.run_at), finished_at = v.finished_at, owner_node = NULL \
     FROM unnest($1::text[], $2::bigint[], $3::text[], $4::bigint[], $5::text[], $6::text[], $7::text[], \
     $8::bigint[], $9::bigint[], $10::bigint[], $11::text[], $12::bigint[]) \
     AS v(id, attempt, state, hold, output_json, error_code, error_message, failures, run_at, finished_at, was, deaths) \
     WHERE jobs.id = ANY($1) AND jobs.id = v.id AND jobs.attempt = v.attempt AND jobs.state = v.was \
     AND jobs.",
    held!(),
    " RETURNING jobs.id, jobs.attempt"
));

pub async fn run(request: &FinishAndClaim, claim: &Claim, tx: &mut Tx<'_>) -> Result<ClaimOutcome, StoreError> {
    let now = request.now;
    let is_completed = |finish: &Finish| matches!(finish.end, JobEnd::Completed { .. });
    let round = if request.finishes.iter().all(is_completed) {
        completed::settle(request, claim, tx).await?
    } else {
        settle(request, claim, tx).await?
    };
    let Settling { mut ledger, finished, slots, permits, picked, some_left } = round;
    let mut outcome = ClaimOutcome { finished, ..ClaimOutcome::default() };
    outcome.claimed = start(tx, &mut ledger, claim, picked, &permits, now).await?;
    let contested = outcome.claimed.is_empty() && claim::is_any_ready(tx, claim).await?;
    look_again(tx, claim, contested, &mut outcome, now).await?;
    if some_left {
        let soon = now.plus(claim::CONTESTED_PAUSE);
        outcome.next_run_at = Some(outcome.next_run_at.map_or(soon, |next| next.min(soon)));
    }
    ledger.write(tx, now).await?;
    leave_capacity(tx, request, slots.into_iter());
    Ok(outcome)
}

/// A round before anything new is started.
struct Settling {
    ledger: Ledger,
    finished: Vec<Result<JobState, StoreError>>,
    /// Of the jobs that ended.
    slots: Vec<Slot>,
    permits: PermitBatch,
    /// Of tasks that are locked.
    picked: Vec<Job>,
    /// Whether there were more, of tasks that came too late to be locked.
    some_left: bool,
}

async fn settle(request: &FinishAndClaim, claim: &Claim, tx: &mut Tx<'_>) -> Result<Settling, StoreError> {
    let now = request.now;
    let Locked { ending, due, mut ledger } = look_and_lock(tx, request, claim).await?;
    let plans = Plan::of_all(&ledger, &ending, &request.finishes, now);
    due.wake(tx, &ledger).await?;
    let answers = settle_and_pick(tx, request, claim, &ledger, &plans).await?;
    let written = written(&answers.settled, &plans)?;
    let finished = answer_all(tx, &mut ledger, &request.finishes, &plans, written, now).await?;
    give_back(tx, request, &finished, !answers.reserved.is_empty()).await?;
    let slots = ending.values().map(|row| row.slot).collect();
    let permits = PermitBatch::read(&answers.permits, request, claim, queue::pass_on)?;
    Ok(Settling { ledger, finished, slots, permits, picked: rows::jobs(&answers.picked)?, some_left: false })
}

struct Locked {
    ending: HashMap<JobId, Ending>,
    due: Due,
    ledger: Ledger,
}

/// What is about to end, what is due, and their tasks, locked together with those of what could be claimed.
async fn look_and_lock(tx: &mut Tx<'_>, request: &FinishAndClaim, claim: &Claim) -> Result<Locked, StoreError> {
    let ids = ids(request);
    let ending = BoundStatement { sql: ENDING, params: params![ids.clone()].to_vec() };
    let (due, lock) = queue::locking(claim, ids, request.now);
    let steps: Vec<BoundStatement<'_>> = [ending, lock].into_iter().chain(due).collect();
    let answers = tx.rows_of_all(&steps).await?;
    let [ending, tasks, due @ ..] = answers.as_slice() else { return Err(not_the_answers()) };
    let due = due.first().map_or_else(|| Ok(Due::default()), |due| Due::read(due))?;
    Ok(Locked { ending: read_ending(ending)?, due, ledger: Ledger::of_locked(tasks)? })
}

fn ids(request: &FinishAndClaim) -> Vec<&str> {
    leases(request).map(|lease| lease.job_id.as_str()).collect()
}

fn leases(request: &FinishAndClaim) -> impl Iterator<Item = &Lease> + Clone {
    request.finishes.iter().map(|finish| &finish.lease)
}

fn not_the_answers() -> StoreError {
    internal("the results do not match the statements")
}

/// The server's answers to the ends and the picking, still as they came.
struct RoundReplies {
    settled: Vec<Row>,
    reserved: Vec<Row>,
    permits: Vec<Row>,
    picked: Vec<Row>,
}

async fn settle_and_pick(
    tx: &mut Tx<'_>,
    request: &FinishAndClaim,
    claim: &Claim,
    ledger: &Ledger,
    plans: &[Option<Plan<'_>>],
) -> Result<RoundReplies, StoreError> {
    let answers = tx
        .rows_of_all(&[
            BoundStatement { sql: SETTLE_ALL, params: columns(plans.iter().flatten()).to_vec() },
            spending::asking_reserved_by(&ids(request)),
            queue::asking_permits(request, claim),
            queue::picking(claim, ledger),
        ])
        .await?;
    let [settled, reserved, permits, picked] = answers.try_into().map_err(|_| not_the_answers())?;
    Ok(RoundReplies { settled, reserved, permits, picked })
}

/// Whether each plan was written, in order. An end that is reported twice is refused the second time, and an old lease
/// beside a live one of the same job every time.
fn written(settled: &[Row], plans: &[Option<Plan<'_>>]) -> Result<Vec<bool>, StoreError> {
    let mut written =
        settled.iter().map(|row| lease(&mut row.columns())).collect::<Result<HashSet<Lease>, StoreError>>()?;
    Ok(plans.iter().flatten().map(|plan| written.remove(plan.lease)).collect())
}

fn lease(c: &mut Columns<'_>) -> Result<Lease, StoreError> {
    Ok(Lease { job_id: JobId::from_text(c.text()?), attempt: c.int()? })
}

/// Reservations of what really ended; and everything of what had moved and was settled after all.
async fn give_back(
    tx: &mut Tx<'_>,
    request: &FinishAndClaim,
    finished: &[Result<JobState, StoreError>],
    any_reserved: bool,
) -> Result<(), StoreError> {
    if !any_reserved && finished.iter().all(Result::is_ok) {
        return Ok(());
    }
    release(tx, &ended(&request.finishes, finished)).await
}

/// The parameters of `SETTLE_ALL`.
fn columns<'a>(plans: impl Iterator<Item = &'a Plan<'a>> + Clone) -> [Value<'a>; 12] {
    let texts = |of: fn(&'a Plan<'a>) -> Option<&'a str>| Value::Texts(plans.clone().map(of).collect());
    let numbers = |of: fn(&'a Plan<'a>) -> Option<i64>| Value::Ints(plans.clone().map(of).collect());
    [
        texts(|plan| Some(plan.lease.job_id.as_str())),
        numbers(|plan| Some(plan.lease.attempt)),
        texts(|plan| Some(plan.settled.state.as_str())),
        numbers(|plan| Some(plan.hold.into())),
        texts(|plan| plan.settled.output_json.as_deref()),
        texts(|plan| plan.settled.error_code.as_deref()),
        texts(|plan| plan.settled.error_message.as_deref()),
        numbers(|plan| Some(plan.settled.failures.into())),
        numbers(|plan| plan.settled.run_at.map(Timestamp::as_millis)),
        numbers(|plan| plan.finished_at.map(Timestamp::as_millis)),
        texts(|plan| Some(plan.row.state.as_str())),
        numbers(|plan| Some(plan.settled.deaths.into())),
    ]
}
