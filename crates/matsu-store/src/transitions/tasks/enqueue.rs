//! Jobs into the queue, all or nothing.

use std::collections::HashMap;

use matsu_core::change::ChangeKind;
use matsu_core::id::{JobId, TaskId};
use matsu_core::job::{JobState, NewJob};
use matsu_core::ports::store::{Enqueue, Enqueued, EnqueuedJob, StoreError};
use matsu_core::task::TaskStatus;

use super::steer;
use crate::sql::{QUICK_MAX, Sql, Transition, Tx, params};
use crate::transitions::jobs::insert_jobs;
use crate::transitions::ledger::{Ledger, closed};
use crate::transitions::unfinished;

const UNFINISHED_KEYS: Sql = Sql::each(
    concat!("SELECT dedupe_key, id FROM jobs WHERE dedupe_key = $1 AND task_id = $2 AND ", unfinished!()),
    concat!("SELECT dedupe_key, id FROM jobs WHERE dedupe_key = ANY($1) AND task_id = $2 AND ", unfinished!()),
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
