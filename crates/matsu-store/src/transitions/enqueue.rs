//! Jobs into the queue, all or nothing.

use std::collections::HashMap;

use matsu_core::change::{ChangeKind, Topic};
use matsu_core::clock::Timestamp;
use matsu_core::id::{JobId, TaskId};
use matsu_core::job::{JobState, NewJob};
use matsu_core::ports::store::{Enqueue, Enqueued, EnqueuedJob, StoreError};
use matsu_core::task::TaskStatus;

use super::hold::Hold;
use super::ledger::{Ledger, closed};
use super::{steer, unfinished};
use crate::sql::{QUICK_MAX, Sql, Transition, Tx, Value, params};

const UNFINISHED_KEYS: Sql = Sql::each(
    concat!("SELECT dedupe_key, id FROM jobs WHERE dedupe_key = $1 AND task_id = $2 AND ", unfinished!()),
    concat!("SELECT dedupe_key, id FROM jobs WHERE dedupe_key = ANY($1) AND task_id = $2 AND ", unfinished!()),
);
const INSERT: Sql = Sql::both(
    "INSERT INTO jobs (id, task_id, kind, priority, slot, state, hold, input_json, queued_at, cause_id, run_at, \
     attempt, failures, dedupe_key) VALUES ($1, $2, $3, $4, $5, 'queued', $6, $7, $8, $9, $10, 0, 0, $11)",
);

impl Transition for Enqueue {
    fn is_quick(&self) -> bool {
        self.jobs.len() <= QUICK_MAX
    }

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Enqueued, StoreError> {
        let Some(task_id) = &self.task_id else {
            insert_jobs(tx, None, &self.jobs, self.now).await?;
            let jobs = self.jobs.iter().map(|job| EnqueuedJob::Queued(job.id.clone())).collect();
            return Ok(Enqueued { task: None, jobs });
        };
        // The lock on the task is what keeps a stop from slipping in between this check and the insertion.
        let mut ledger = Ledger::lock(tx, [task_id.clone()]).await?;
        let task = ledger.existing(task_id)?;
        let owner_returns =
            task.status == TaskStatus::Paused && task.held_by.is_some() && task.held_by == self.resume_for;
        if owner_returns {
            steer::resume(tx, &mut ledger, task_id, self.now).await?;
        }
        if ledger.existing(task_id)?.can_continue() {
            ledger.change(task_id, ChangeKind::TaskStatus, |task| {
                task.status = TaskStatus::Queued;
                task.stop = None;
                task.finished_at = None;
            });
        }
        if let Some(refusal) = closed(ledger.existing(task_id)?) {
            return Err(refusal);
        }
        let mut keys = unfinished_keys(tx, task_id, &self.jobs).await?;
        let mut answers = Vec::with_capacity(self.jobs.len());
        let mut fresh = Vec::with_capacity(self.jobs.len());
        for job in &self.jobs {
            if let Some(known) = job.dedupe_key.as_ref().and_then(|key| keys.get(key)) {
                answers.push(EnqueuedJob::Duplicate(known.clone()));
                continue;
            }
            if let Some(key) = &job.dedupe_key {
                keys.insert(key.clone(), job.id.clone());
            }
            answers.push(EnqueuedJob::Queued(job.id.clone()));
            fresh.push(job.clone());
        }
        if !fresh.is_empty() {
            insert_jobs(tx, Some(task_id), &fresh, self.now).await?;
            let added = i64::try_from(fresh.len()).unwrap_or(i64::MAX);
            ledger.change(task_id, ChangeKind::JobQueued, |task| task.counts.add(JobState::Queued, added));
        }
        let task = ledger.write(tx, self.now).await?.into_iter().next();
        Ok(Enqueued { task, jobs: answers })
    }
}

async fn unfinished_keys(
    tx: &mut Tx<'_>,
    task_id: &TaskId,
    jobs: &[NewJob],
) -> Result<HashMap<String, JobId>, StoreError> {
    let keys: Vec<&str> = jobs.iter().filter_map(|job| job.dedupe_key.as_deref()).collect();
    if keys.is_empty() {
        return Ok(HashMap::new());
    }
    let rows = tx.rows_of(&UNFINISHED_KEYS, &keys, params![task_id]).await?;
    rows.iter()
        .map(|row| {
            let mut columns = row.columns();
            Ok((columns.text()?, JobId::from_text(columns.text()?)))
        })
        .collect()
}

/// Writes jobs down as queued and has the dispatchers of their slots woken.
pub async fn insert_jobs(
    tx: &mut Tx<'_>,
    task_id: Option<&TaskId>,
    jobs: &[NewJob],
    now: Timestamp,
) -> Result<(), StoreError> {
    let sets: Vec<Vec<Value<'_>>> = jobs
        .iter()
        .map(|job| {
            params![
                &job.id,
                task_id,
                job.kind.as_str(),
                job.priority.rank(),
                job.slot.as_str(),
                if job.run_at > now { Hold::Later } else { Hold::None },
                &job.input_json,
                now,
                job.cause_id.as_ref(),
                job.run_at,
                job.dedupe_key.as_ref(),
            ]
            .to_vec()
        })
        .collect();
    tx.post(&INSERT, &sets).await?;
    for job in jobs {
        tx.publish(Topic::queue(job.slot));
    }
    Ok(())
}
