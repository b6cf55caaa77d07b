//! What transitions of several modules do with jobs: they queue new ones and check fences.

use matsu_core::change::Topic;
use matsu_core::clock::Timestamp;
use matsu_core::id::TaskId;
use matsu_core::job::{Lease, NewJob};
use matsu_core::ports::store::StoreError;

use super::held;
use super::hold::Hold;
use crate::sql::{Sql, Tx, Value, params};

const INSERT: Sql = Sql::both(
    "INSERT INTO jobs (id, task_id, kind, priority, slot, state, hold, input_json, queued_at, cause_id, run_at, \
     attempt, failures, dedupe_key) VALUES ($1, $2, $3, $4, $5, 'queued', $6, $7, $8, $9, $10, 0, 0, $11)",
);
const HELD: Sql = Sql::each(
    concat!("SELECT attempt FROM jobs WHERE id = $1 AND attempt = $2 AND ", held!()),
    // Locked: a stop that commits in between must not find a part that it did not see.
    concat!("SELECT attempt FROM jobs WHERE id = $1 AND attempt = $2 AND ", held!(), " FOR SHARE"),
);

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

/// Refuses a lease that no longer holds the job, and keeps the job from being taken until the transaction ends.
pub async fn check_fence(tx: &mut Tx<'_>, lease: &Lease) -> Result<(), StoreError> {
    match tx.row(&HELD, params![&lease.job_id, lease.attempt]).await? {
        Some(_) => Ok(()),
        None => Err(StoreError::LeaseLost(lease.job_id.clone())),
    }
}
