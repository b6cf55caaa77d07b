//! The hot path: settle what ended, claim what is next, in one transaction. The order of the statements is the driver's:
//! see `postgres/round.rs` and `sqlite/round.rs`.

use std::collections::HashMap;

use matsu_core::change::Topic;
use matsu_core::clock::Timestamp;
use matsu_core::error_code::ErrorCode;
use matsu_core::id::{JobId, TaskId};
use matsu_core::job::{Job, JobEnd, JobKind, JobState, Lease, Past, Settled, settle};
use matsu_core::ports::store::{Claim, ClaimOutcome, Finish, FinishAndClaim, StoreError};
use matsu_core::slot::Slot;
use matsu_core::task::Task;

use super::claim;
use super::permits;
use super::spending;
use crate::sql::{Row, Sql, Tx, Value, params};
use crate::transitions::held;
use crate::transitions::hold::Hold;
use crate::transitions::ledger::Ledger;

pub const ENDING: Sql = Sql::each(
    "SELECT id, task_id, kind, failures, deaths, slot, state, attempt FROM jobs WHERE id = $1",
    "SELECT id, task_id, kind, failures, deaths, slot, state, attempt FROM jobs WHERE id = ANY($1)",
);
const SETTLE: Sql = Sql::both(concat!(
    "UPDATE jobs SET state = $3, hold = $4, output_json = coalesce($5, output_json), error_code = $6, \
     error_message = $7, failures = $8, run_at = coalesce($9, run_at), finished_at = $10, attempt = attempt + $11, \
     deaths = $13, owner_node = NULL WHERE id = $1 AND attempt = $2 AND state = $12 AND ",
    held!()
));

/// Settles what ended, where nothing is claimed.
pub async fn finish(request: &FinishAndClaim, tx: &mut Tx<'_>) -> Result<ClaimOutcome, StoreError> {
    let (ending, ledger, finished) = settle_in_steps(request, tx).await?;
    release(tx, &ended(&request.finishes, &finished)).await?;
    ledger.write(tx, request.now).await?;
    leave_capacity(tx, request, ending.values().map(|row| row.slot));
    Ok(ClaimOutcome { finished, ..ClaimOutcome::default() })
}

/// Reads what is about to end, locks its tasks, settles it; each statement follows from the answer before.
pub async fn settle_in_steps(
    request: &FinishAndClaim,
    tx: &mut Tx<'_>,
) -> Result<(HashMap<JobId, Ending>, Ledger, Vec<Result<JobState, StoreError>>), StoreError> {
    let ending = ending(tx, request.finishes.iter().map(|finish| &finish.lease.job_id)).await?;
    let mut ledger = Ledger::lock(tx, ending.values().filter_map(|row| row.task_id.clone())).await?;
    let plans = Plan::of_all(&ledger, &ending, &request.finishes, request.now);
    let sets: Vec<Vec<Value<'_>>> = plans.iter().flatten().map(Plan::params).collect();
    let written: Vec<bool> = tx.run_each(&SETTLE, &sets).await?.into_iter().map(|rows| rows == 1).collect();
    let finished = answer_all(tx, &mut ledger, &request.finishes, &plans, written, request.now).await?;
    drop(plans);
    Ok((ending, ledger, finished))
}

/// Starts the first of the picked jobs, as many as there are permits. Permits that the ends leave and no job takes
/// become free.
pub async fn start(
    tx: &mut Tx<'_>,
    ledger: &mut Ledger,
    claim: &Claim,
    mut picked: Vec<Job>,
    permits: &permits::PermitBatch,
    now: Timestamp,
) -> Result<Vec<Job>, StoreError> {
    if permits.usable().len() >= picked.len() {
        let leases = claim::start(tx, ledger, claim, &mut picked, now).await?;
        permits.transfer(tx, &leases).await?;
        return Ok(picked);
    }
    // In use, or the slot was never this wide before.
    permits.transfer(tx, &[]).await?;
    let wanted = u32::try_from(picked.len()).unwrap_or(u32::MAX);
    let numbers = permits::free(tx, claim.slot, claim.permits_max, wanted).await?;
    picked.truncate(numbers.len());
    let leases = claim::start(tx, ledger, claim, &mut picked, now).await?;
    permits::take(tx, claim.slot, &numbers, &leases).await?;
    Ok(picked)
}

/// If there was less to claim than wished, notes when there may be more.
pub async fn look_again(
    tx: &mut Tx<'_>,
    claim: &Claim,
    contested: bool,
    outcome: &mut ClaimOutcome,
    now: Timestamp,
) -> Result<(), StoreError> {
    if outcome.claimed.len() < claim.jobs_max as usize {
        let contested = contested && outcome.claimed.is_empty();
        outcome.next_run_at = claim::next_look(tx, claim.slot, contested, now).await?;
    }
    Ok(())
}

/// What ended and is not replaced frees permits for others, which wait for nothing else.
pub fn leave_capacity(tx: &mut Tx<'_>, request: &FinishAndClaim, slots: impl Iterator<Item = Slot>) {
    let asked = request.claim.as_ref().map_or(0, |claim| claim.jobs_max as usize);
    if request.finishes.len() > asked {
        for slot in slots {
            tx.publish(Topic::queue(slot));
        }
    }
}

/// What must be known of a job to settle it.
pub struct Ending {
    pub task_id: Option<TaskId>,
    pub kind: JobKind,
    pub past: Past,
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
    read_ending(&tx.rows_of(&ENDING, &ids, params![]).await?)
}

pub fn read_ending(rows: &[Row]) -> Result<HashMap<JobId, Ending>, StoreError> {
    let mut found = HashMap::with_capacity(rows.len());
    for row in rows {
        let mut c = row.columns();
        let id = JobId::from_text(c.text()?);
        let ending = Ending {
            task_id: c.opt_text()?.map(TaskId::from_text),
            kind: c.word(JobKind::parse)?,
            past: Past { failures: c.count()?, deaths: c.count()? },
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

/// The jobs that really ended.
pub fn ended<'a>(finishes: &'a [Finish], answers: &[Result<JobState, StoreError>]) -> Vec<&'a str> {
    let really = finishes.iter().zip(answers).filter(|(_, answer)| answer.is_ok());
    really.map(|(finish, _)| finish.lease.job_id.as_str()).collect()
}

/// The answers to the holders of the leases, given which plans were written.
pub async fn answer_all(
    tx: &mut Tx<'_>,
    ledger: &mut Ledger,
    finishes: &[Finish],
    plans: &[Option<Plan<'_>>],
    written: Vec<bool>,
    now: Timestamp,
) -> Result<Vec<Result<JobState, StoreError>>, StoreError> {
    let mut written = written.into_iter();
    let mut answers = Vec::with_capacity(finishes.len());
    for (finish, plan) in finishes.iter().zip(plans) {
        let answer = match plan {
            Some(plan) if written.next() == Some(true) => Ok(plan.written(tx, ledger)),
            Some(_) => settle_moved(tx, ledger, finish, now).await?,
            None => Err(StoreError::LeaseLost(finish.lease.job_id.clone())),
        };
        answers.push(answer);
    }
    Ok(answers)
}

/// The job was not in the state it was thought to be in. If the lease still stands and only the state has moved, from
/// running to parked or back, the end counts for what is there now.
pub async fn settle_moved(
    tx: &mut Tx<'_>,
    ledger: &mut Ledger,
    finish: &Finish,
    now: Timestamp,
) -> Result<Result<JobState, StoreError>, StoreError> {
    let Finish { lease, end } = finish;
    match ending(tx, std::iter::once(&lease.job_id)).await?.get(&lease.job_id) {
        Some(moved) if moved.state.is_held() && moved.attempt == lease.attempt => {
            settle_one(tx, ledger, moved, lease, end, Fence::Keep, now).await
        }
        _ => Ok(Err(StoreError::LeaseLost(lease.job_id.clone()))),
    }
}

/// Permits and reservations of jobs that no longer run.
pub async fn release(tx: &mut Tx<'_>, jobs: &[&str]) -> Result<(), StoreError> {
    if jobs.is_empty() {
        return Ok(());
    }
    permits::free_all_of(tx, jobs).await?;
    release_reservations(tx, jobs).await
}

pub async fn release_reservations(tx: &mut Tx<'_>, jobs: &[&str]) -> Result<(), StoreError> {
    let reserved = spending::reserved_by(tx, jobs).await?;
    spending::return_reservations(tx, jobs, &reserved).await
}

/// Settles one job under its fence. The inner result is the answer to the holder of the lease.
pub async fn settle_one(
    tx: &mut Tx<'_>,
    ledger: &mut Ledger,
    row: &Ending,
    lease: &Lease,
    end: &JobEnd,
    fence: Fence,
    now: Timestamp,
) -> Result<Result<JobState, StoreError>, StoreError> {
    let plan = Plan::new(ledger, row, lease, end, fence, now);
    let written = tx.run(&SETTLE, &plan.params()).await?;
    Ok(if written == 1 { Ok(plan.written(tx, ledger)) } else { Err(StoreError::LeaseLost(lease.job_id.clone())) })
}

/// What an end will write.
pub struct Plan<'a> {
    pub row: &'a Ending,
    pub lease: &'a Lease,
    pub settled: Settled,
    pub hold: Hold,
    fence: Fence,
    pub finished_at: Option<Timestamp>,
}

impl<'a> Plan<'a> {
    /// One for each finish whose job is there.
    pub fn of_all(
        ledger: &Ledger,
        ending: &'a HashMap<JobId, Ending>,
        finishes: &'a [Finish],
        now: Timestamp,
    ) -> Vec<Option<Self>> {
        let plan = |Finish { lease, end }: &'a Finish| {
            ending.get(&lease.job_id).map(|row| Self::new(ledger, row, lease, end, Fence::Keep, now))
        };
        finishes.iter().map(plan).collect()
    }

    fn new(ledger: &Ledger, row: &'a Ending, lease: &'a Lease, end: &JobEnd, fence: Fence, now: Timestamp) -> Self {
        let task = row.task_id.as_ref().and_then(|id| ledger.task(id));
        let settled = settle_within(task, row, end, now);
        let hold = hold_of(task, &settled, now);
        let finished_at = settled.state.is_finished().then_some(now);
        Self { row, lease, settled, hold, fence, finished_at }
    }

    /// The parameters of `SETTLE`.
    fn params(&self) -> Vec<Value<'_>> {
        params![
            &self.lease.job_id,
            self.lease.attempt,
            self.settled.state.as_str(),
            self.hold,
            self.settled.output_json.as_ref(),
            self.settled.error_code.as_ref(),
            self.settled.error_message.as_ref(),
            self.settled.failures,
            self.settled.run_at,
            self.finished_at,
            i64::from(self.fence == Fence::Bump),
            // The counts of the task move by what was read; if that is stale, nothing is written.
            self.row.state.as_str(),
            self.settled.deaths,
        ]
        .to_vec()
    }

    /// It was written: the task's counts follow, and the queue if the job went back there.
    fn written(&self, tx: &mut Tx<'_>, ledger: &mut Ledger) -> JobState {
        ledger.moved(self.row.task_id.as_ref(), self.row.state, self.settled.state);
        if self.settled.state == JobState::Queued {
            tx.publish(Topic::queue(self.row.slot));
        }
        self.settled.state
    }
}

/// A task that was stopped takes nothing back into its queue.
fn settle_within(task: Option<&Task>, row: &Ending, end: &JobEnd, now: Timestamp) -> Settled {
    // Resumed before its run had ended: the resume found nothing to start again, so this job continues by itself.
    if is_paused(end) && task.is_some_and(|task| !task.status.is_held()) {
        return settle_within(task, row, &JobEnd::Requeue { run_at: None }, now);
    }
    let settled = settle(row.kind, row.past, end, now);
    let returns = matches!(settled.state, JobState::Queued | JobState::AwaitingAuth);
    if returns && task.is_some_and(|task| task.stop.is_some() || task.status.is_terminal()) {
        return settle(row.kind, row.past, &JobEnd::Cancelled { code: None, output_json: None }, now);
    }
    settled
}

fn is_paused(end: &JobEnd) -> bool {
    matches!(end, JobEnd::Cancelled { code: Some(code), .. } if code == ErrorCode::TaskPaused.as_str())
}

/// How a job is held after this end. `NoPermit` is set by the transition that takes a running job's permit away.
fn hold_of(task: Option<&Task>, settled: &Settled, now: Timestamp) -> Hold {
    match (task, settled.run_at) {
        _ if settled.state == JobState::AwaitingAuth => Hold::Login,
        (Some(task), _) if task.status.is_held() => Hold::Task,
        _ if settled.state == JobState::Queued && settled.must_run_alone() => Hold::Alone,
        (_, Some(run_at)) if run_at > now => Hold::Later,
        _ => Hold::None,
    }
}
