//! The hot path: settle what ended, claim what is next, in one transaction.

use std::collections::HashMap;

use matsu_core::change::Topic;
use matsu_core::clock::Timestamp;
use matsu_core::id::{JobId, TaskId};
use matsu_core::job::{Job, JobEnd, JobKind, JobState, Lease, Settled, settle};
use matsu_core::ports::store::{Claim, ClaimOutcome, Finish, FinishAndClaim, StoreError};
use matsu_core::slot::Slot;
use matsu_core::task::Task;

use super::ledger::Ledger;
use super::rows::{self, job_columns};
use super::{held, permits, spending};
use crate::sql::{Sql, Transition, Tx, params};

const ENDING: Sql = Sql::each(
    "SELECT id, task_id, kind, failures, slot, state, attempt FROM jobs WHERE id IN (SELECT value FROM json_each($1))",
    "SELECT id, task_id, kind, failures, slot, state, attempt FROM jobs WHERE id = ANY($1)",
);
const SETTLE: Sql = Sql::both(concat!(
    "UPDATE jobs SET state = $3, hold = $4, output_json = coalesce($5, output_json), error_code = $6, \
     error_message = $7, failures = $8, run_at = coalesce($9, run_at), finished_at = $10, attempt = attempt + $11, \
     owner_node = NULL WHERE id = $1 AND attempt = $2 AND state = $12 AND ",
    held!()
));
/// Delayed jobs whose time has come. Only those of locked tasks: a stop may be cancelling the others.
const WAKE_DELAYED: Sql = Sql::each(
    "UPDATE jobs SET hold = 0 WHERE slot = $1 AND state = 'queued' AND hold = 1 AND run_at <= $2 \
     AND (task_id IS NULL OR task_id IN (SELECT value FROM json_each($3)))",
    "UPDATE jobs SET hold = 0 WHERE seq IN (SELECT seq FROM jobs WHERE slot = $1 AND state = 'queued' AND hold = 1 \
     AND run_at <= $2 AND (task_id IS NULL OR task_id = ANY($3)) ORDER BY seq FOR UPDATE SKIP LOCKED)",
);
const NEXT_DELAYED: Sql = Sql::both("SELECT min(run_at) FROM jobs WHERE slot = $1 AND state = 'queued' AND hold = 1");
/// The first that are ready, and those that will be as soon as they are woken.
const CANDIDATES: Sql = Sql::both(
    "SELECT task_id, due FROM (SELECT task_id, CAST(0 AS BIGINT) AS due FROM jobs WHERE slot = $1 AND \
     state = 'queued' AND hold = 0 ORDER BY priority, queued_at, seq LIMIT $2) AS ready \
     UNION ALL SELECT task_id, due FROM (SELECT task_id, CAST(1 AS BIGINT) AS due FROM jobs WHERE slot = $1 AND \
     state = 'queued' AND hold = 1 AND run_at <= $3 ORDER BY run_at LIMIT $4) AS delayed",
);
/// Delayed jobs that one claim wakes; the rest wait for the next.
const WOKEN_MAX: i64 = 256;
/// Picks again, now under the locks of the tasks: on PostgreSQL another node may have been faster.
const CLAIM: Sql = Sql::each(
    concat!(
        "UPDATE jobs SET state = 'running', attempt = attempt + 1, started_at = $2, owner_node = $3, \
         error_code = NULL, error_message = NULL WHERE seq IN (SELECT seq FROM jobs WHERE slot = $1 AND \
         state = 'queued' AND hold = 0 AND (task_id IS NULL OR task_id IN (SELECT value FROM json_each($4))) \
         ORDER BY priority, queued_at, seq LIMIT $5) RETURNING ",
        job_columns!()
    ),
    concat!(
        // Materialized: a planner that ran the inner select once per row would pick more than the limit.
        "WITH next AS MATERIALIZED (SELECT seq FROM jobs WHERE slot = $1 AND state = 'queued' AND hold = 0 \
         AND (task_id IS NULL OR task_id = ANY($4)) ORDER BY priority, queued_at, seq LIMIT $5 \
         FOR UPDATE SKIP LOCKED) UPDATE jobs SET state = 'running', attempt = attempt + 1, started_at = $2, \
         owner_node = $3, error_code = NULL, error_message = NULL WHERE seq IN (SELECT seq FROM next) RETURNING ",
        job_columns!()
    ),
);

impl Transition for FinishAndClaim {
    type Output = ClaimOutcome;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<ClaimOutcome, StoreError> {
        let ending = ending(tx, self.finishes.iter().map(|finish| &finish.lease.job_id)).await?;
        let candidates = match &self.claim {
            Some(claim) if claim.jobs_max > 0 => candidates(tx, claim, self.now).await?,
            _ => Candidates::default(),
        };
        let tasks = ending.values().filter_map(|row| row.task_id.clone());
        let tasks = tasks.chain(candidates.tasks.iter().flatten().cloned());
        let mut ledger = Ledger::lock(tx, tasks).await?;

        let finished = settle_all(tx, &mut ledger, &ending, &self.finishes, self.now).await?;
        let mut outcome = ClaimOutcome { finished, ..ClaimOutcome::default() };
        if let Some(claim) = &self.claim {
            outcome.claimed = start(tx, &mut ledger, claim, &candidates, self.now).await?;
            if outcome.claimed.is_empty() {
                outcome.next_run_at = next_run_at(tx, claim.slot, &candidates, self.now).await?;
            }
        }
        ledger.write(tx, self.now).await?;
        Ok(outcome)
    }
}

/// What must be known of a job to settle it.
pub struct Ending {
    pub task_id: Option<TaskId>,
    pub kind: JobKind,
    pub failures: u32,
    pub slot: Slot,
    pub state: JobState,
    pub attempt: i64,
}

/// Reads, without locks, what is about to end. The fence in the update decides what really does.
pub async fn ending(tx: &mut Tx<'_>, ids: impl Iterator<Item = &JobId>) -> Result<HashMap<JobId, Ending>, StoreError> {
    let ids: Vec<&str> = ids.map(JobId::as_str).collect();
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let mut found = HashMap::with_capacity(ids.len());
    for row in tx.rows(&ENDING, params![ids]).await? {
        let mut c = row.columns();
        let id = JobId::from_text(c.text()?);
        let ending = Ending {
            task_id: c.opt_text()?.map(TaskId::from_text),
            kind: c.word(JobKind::parse)?,
            failures: c.count()?,
            slot: c.word(Slot::parse)?,
            state: c.word(JobState::parse)?,
            attempt: c.int()?,
        };
        found.insert(id, ending);
    }
    Ok(found)
}

/// Whether ending a job also takes it away from an owner that may still believe it holds it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Fence {
    Keep,
    /// The attempt grows, so that whatever the dead owner still sends is refused.
    Bump,
}

async fn settle_all(
    tx: &mut Tx<'_>,
    ledger: &mut Ledger,
    ending: &HashMap<JobId, Ending>,
    finishes: &[Finish],
    now: Timestamp,
) -> Result<Vec<Result<JobState, StoreError>>, StoreError> {
    let mut answers = Vec::with_capacity(finishes.len());
    for finish in finishes {
        let answer = match ending.get(&finish.lease.job_id) {
            None => Err(StoreError::LeaseLost(finish.lease.job_id.clone())),
            Some(row) => settle_held(tx, ledger, row, finish, now).await?,
        };
        answers.push(answer);
    }
    let freed: Vec<&str> = finishes
        .iter()
        .zip(&answers)
        .filter(|(_, answer)| answer.is_ok())
        .map(|(finish, _)| finish.lease.job_id.as_str())
        .collect();
    release(tx, freed).await?;
    Ok(answers)
}

/// The row was read before its task was locked. If the lease still stands and only the state has moved since, from
/// running to parked or back, the end counts for what is there now.
async fn settle_held(
    tx: &mut Tx<'_>,
    ledger: &mut Ledger,
    row: &Ending,
    finish: &Finish,
    now: Timestamp,
) -> Result<Result<JobState, StoreError>, StoreError> {
    let Finish { lease, end } = finish;
    let answer = settle_one(tx, ledger, row, lease, end, Fence::Keep, now).await?;
    if answer.is_ok() {
        return Ok(answer);
    }
    match ending(tx, std::iter::once(&lease.job_id)).await?.get(&lease.job_id) {
        Some(moved) if moved.state != row.state && moved.state.is_held() && moved.attempt == lease.attempt => {
            settle_one(tx, ledger, moved, lease, end, Fence::Keep, now).await
        }
        _ => Ok(answer),
    }
}

/// Permits and reservations of jobs that no longer run.
pub async fn release(tx: &mut Tx<'_>, jobs: Vec<&str>) -> Result<(), StoreError> {
    if jobs.is_empty() {
        return Ok(());
    }
    permits::free_all_of(tx, jobs.clone()).await?;
    spending::return_reservations(tx, jobs).await
}

/// Settles one job under its fence. The inner result is the answer to whoever held the lease.
pub async fn settle_one(
    tx: &mut Tx<'_>,
    ledger: &mut Ledger,
    row: &Ending,
    lease: &Lease,
    end: &JobEnd,
    fence: Fence,
    now: Timestamp,
) -> Result<Result<JobState, StoreError>, StoreError> {
    let task = row.task_id.as_ref().and_then(|id| ledger.task(id));
    let settled = settle_within(task, row, end, now);
    let hold = hold_of(task, settled.run_at, now);
    let finished_at = settled.state.is_finished().then_some(now);
    let changed = tx
        .run(
            &SETTLE,
            params![
                &lease.job_id,
                lease.attempt,
                settled.state.as_str(),
                hold,
                settled.output_json.as_ref(),
                settled.error_code.as_ref(),
                settled.error_message.as_ref(),
                settled.failures,
                settled.run_at,
                finished_at,
                i64::from(fence == Fence::Bump),
                // The counts of the task move by what was read; if that is stale, nothing is written.
                row.state.as_str(),
            ],
        )
        .await?;
    if changed == 0 {
        return Ok(Err(StoreError::LeaseLost(lease.job_id.clone())));
    }
    ledger.moved(row.task_id.as_ref(), row.state, settled.state);
    if settled.state == JobState::Queued {
        tx.publish(Topic::queue(row.slot));
    }
    Ok(Ok(settled.state))
}

/// A task that was stopped takes nothing back into its queue.
fn settle_within(task: Option<&Task>, row: &Ending, end: &JobEnd, now: Timestamp) -> Settled {
    let settled = settle(row.kind, row.failures, end, now);
    let returns = matches!(settled.state, JobState::Queued | JobState::AwaitingAuth);
    if returns && task.is_some_and(|task| task.stop.is_some() || task.status.is_terminal()) {
        return settle(row.kind, row.failures, &JobEnd::Cancelled { code: None, output_json: None }, now);
    }
    settled
}

/// How a queued job is held: with its task, until its time, or not at all.
fn hold_of(task: Option<&Task>, run_at: Option<Timestamp>, now: Timestamp) -> i64 {
    match (task, run_at) {
        (Some(task), _) if task.status.is_held() => 2,
        (_, Some(run_at)) if run_at > now => 1,
        _ => 0,
    }
}

/// What could be claimed, seen without locks.
#[derive(Default)]
struct Candidates {
    /// The task of each; `None` for a job of the house.
    tasks: Vec<Option<TaskId>>,
    /// Whether some of them are still held back until their time, which has come.
    due: bool,
}

async fn candidates(tx: &mut Tx<'_>, claim: &Claim, now: Timestamp) -> Result<Candidates, StoreError> {
    let mut found = Candidates::default();
    for row in tx.rows(&CANDIDATES, params![claim.slot.as_str(), claim.jobs_max, now, WOKEN_MAX]).await? {
        let mut c = row.columns();
        found.tasks.push(c.opt_text()?.map(TaskId::from_text));
        found.due |= c.int()? == 1;
    }
    Ok(found)
}

/// Takes permits and, for as many as there are, the first candidates that are still there.
async fn start(
    tx: &mut Tx<'_>,
    ledger: &mut Ledger,
    claim: &Claim,
    candidates: &Candidates,
    now: Timestamp,
) -> Result<Vec<Job>, StoreError> {
    if candidates.tasks.is_empty() {
        return Ok(Vec::new());
    }
    let locked: Vec<TaskId> = ledger.tasks().map(|task| task.id.clone()).collect();
    let locked: Vec<&str> = locked.iter().map(TaskId::as_str).collect();
    if candidates.due {
        tx.run(&WAKE_DELAYED, params![claim.slot.as_str(), now, locked.clone()]).await?;
    }
    let wanted = u32::try_from(candidates.tasks.len()).unwrap_or(u32::MAX).min(claim.jobs_max);
    let numbers = permits::free(tx, claim.slot, claim.permits_max, wanted).await?;
    if numbers.is_empty() {
        return Ok(Vec::new());
    }
    let limit = i64::try_from(numbers.len()).unwrap_or(i64::MAX);
    let rows = tx.rows(&CLAIM, params![claim.slot.as_str(), now, &claim.node, locked, limit]).await?;
    let mut jobs = rows.iter().map(rows::job).collect::<Result<Vec<_>, _>>()?;
    jobs.sort_by_key(|job| (job.priority.rank(), job.queued_at, job.seq));
    let leases: Vec<Lease> = jobs.iter().map(|job| Lease { job_id: job.id.clone(), attempt: job.attempt }).collect();
    permits::take(tx, claim.slot, &numbers, &leases).await?;
    for job in &jobs {
        ledger.moved(job.task_id.as_ref(), JobState::Queued, JobState::Running);
    }
    Ok(jobs)
}

/// When to look again although nobody calls.
async fn next_run_at(
    tx: &mut Tx<'_>,
    slot: Slot,
    candidates: &Candidates,
    now: Timestamp,
) -> Result<Option<Timestamp>, StoreError> {
    let delayed = match tx.row(&NEXT_DELAYED, params![slot.as_str()]).await? {
        Some(row) => row.columns().opt_time()?,
        None => None,
    };
    // Candidates that were not claimed: another node has them or holds the permits. It may be gone in a moment,
    // and the wake-up of that moment may already be on its way to somebody else.
    let contested = (!candidates.tasks.is_empty()).then(|| now.plus(std::time::Duration::from_millis(100)));
    Ok(delayed.into_iter().chain(contested).min())
}
