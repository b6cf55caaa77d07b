//! What a running body can use. Everything it writes goes through its lease, so that a body which was taken for dead
//! cannot change the job that another node runs by now.

mod mending;
mod meter;
mod notes;
mod permits;

use std::sync::Arc;

use serde_json::{Value, json};

use matsu_core::budget::BudgetUnit;
use matsu_core::job::end::clip;
use matsu_core::job::{Job, JobEnd, Lease};
use matsu_core::limits::{CHECKPOINT_BYTES_MAX, JOB_OUTPUT_BYTES_MAX, PROGRESS_BYTES_MAX, TICK};
use matsu_core::ports::store::{
    JobUpdate, NoteProgress, ProgressNote, Reservation, Reserve, Settle, StoreError, UpdateJob,
};
use matsu_core::run::{RunCheckpoint, RunOutput};

use super::Runtime;
use crate::stop_signal::StopSignal;

pub use mending::Mend;
pub(crate) use mending::mend;
pub use meter::{Spend, TimeOver, count_seconds};
pub(crate) use meter::{budget_spent, close as close_meter, fill as fill_meter, open as open_meter};
pub use notes::Notes;

/// How an attempt came to this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// From the queue: nothing of it runs.
    Claimed,
    /// It was held already, by this node or by one that is gone. What it started may still be at work.
    TakenOver,
}

/// One attempt at one job. Cheap to clone, so that parts of a body can share it.
#[derive(Clone)]
pub struct JobContext {
    pub job: Arc<Job>,
    pub lease: Lease,
    pub stop: StopSignal,
    pub taken: Taken,
    runtime: Runtime,
    notes: Arc<Notes>,
}

impl JobContext {
    pub(crate) fn new(
        runtime: Runtime,
        job: Job,
        lease: Lease,
        stop: StopSignal,
        notes: Arc<Notes>,
        taken: Taken,
    ) -> Self {
        Self { job: Arc::new(job), lease, stop, taken, runtime, notes }
    }

    #[must_use]
    pub fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// What the program of the run had printed when it was taken up is stored.
    pub(crate) fn caught_up(&self) {
        self.notes.set_caught_up();
    }

    /// What a body returns that was ordered to stop and did. The cause of the order decides what becomes of the job.
    #[must_use]
    pub fn stopped(&self) -> JobEnd {
        JobEnd::Cancelled { code: None, output_json: None }
    }

    /// Reports where the job stands. Shown at most once a second for each task; of what comes in between the last one
    /// wins.
    pub async fn progress(&self, message: &str) {
        // Quotes and escapes at most double a text of ASCII; longer ones are cut by the check below.
        let message = clip(message, PROGRESS_BYTES_MAX / 4);
        self.progress_value(&json!({ "message": message })).await;
    }

    /// As [`JobContext::progress`], with fields of the body's own. Too large a value is not shown.
    pub async fn progress_value(&self, value: &Value) {
        let text = value.to_string();
        if text.len() > PROGRESS_BYTES_MAX {
            tracing::warn!(job.id = %self.lease.job_id, bytes = text.len(), "progress is too large to be shown");
            return;
        }
        self.notes.set_progress(text);
        write_due_progress(&self.runtime).await;
    }

    /// The last note of a job that leaves its work for a while. It is written at once: nothing would write it later.
    pub async fn last_progress(&self, message: &str) {
        let message = clip(message, PROGRESS_BYTES_MAX / 4);
        if let Err(error) = self.update(JobUpdate::Progress(json!({ "message": message }).to_string())).await {
            tracing::debug!(%error, job.id = %self.lease.job_id, "the last progress note of a job could not be stored");
        }
    }

    /// Where the next attempt would go on.
    ///
    /// # Errors
    /// `LeaseLost`: stop working. `LimitExceeded`: too large, and nothing was written.
    pub async fn checkpoint(&self, value: &Value) -> Result<(), StoreError> {
        let text = bounded(value, CHECKPOINT_BYTES_MAX, "checkpoint")?;
        self.update(JobUpdate::Checkpoint(text)).await
    }

    /// The output so far: what the job has to show if it does not reach its end.
    ///
    /// # Errors
    /// `LeaseLost`: stop working. `LimitExceeded`: too large, and nothing was written.
    pub async fn partial_output(&self, value: &Value) -> Result<(), StoreError> {
        let text = bounded(value, JOB_OUTPUT_BYTES_MAX, "output")?;
        self.notes.set_partial_output(text.clone());
        self.update(JobUpdate::PartialOutput(text)).await
    }

    /// Writes down where a run stands between two of its programs, and what it has to show so far. A store that is away
    /// is waited for: what the first program came to is known to this process only.
    ///
    /// # Errors
    /// As [`JobContext::checkpoint`], but for a store that is away.
    pub async fn keep(&self, checkpoint: &RunCheckpoint, known: &RunOutput) -> Result<(), StoreError> {
        let (checkpoint, known) = (json!(checkpoint), json!(known));
        loop {
            match self.checkpoint(&checkpoint).await {
                Err(StoreError::Unavailable(_)) => self.runtime.clock().sleep(TICK).await,
                Err(error) => return Err(error),
                Ok(()) => break,
            }
        }
        // Only shown if the task is stopped meanwhile.
        if let Err(error) = self.partial_output(&known).await {
            tracing::debug!(job.id = %self.lease.job_id, %error, "the output so far could not be stored");
        }
        Ok(())
    }

    /// Sets aside some of the task's budget before it is spent. May grant less than was asked for, but never nothing.
    /// Seconds are not set aside by this, but by the meter of the job.
    ///
    /// # Errors
    /// As the store's; `Closed` with `BUDGET_EXHAUSTED` when nothing is left: end with what there is.
    pub async fn set_aside(&self, unit: BudgetUnit, amount: i64) -> Result<Reservation, StoreError> {
        self.runtime.store().run(Reserve { lease: self.lease.clone(), unit, amount }).await
    }

    /// Reports what a reservation really cost; the rest returns.
    ///
    /// # Errors
    /// As the store's.
    pub async fn settle(&self, reservation: &Reservation, spent: i64) -> Result<(), StoreError> {
        self.runtime.store().run(Settle { lease: self.lease.clone(), reservation: reservation.clone(), spent }).await
    }

    async fn update(&self, update: JobUpdate) -> Result<(), StoreError> {
        self.runtime.store().run(UpdateJob { lease: self.lease.clone(), update, now: self.runtime.clock().now() }).await
    }
}

fn bounded(value: &Value, bytes_max: usize, what: &str) -> Result<String, StoreError> {
    let text = value.to_string();
    if text.len() > bytes_max {
        return Err(StoreError::LimitExceeded(format!(
            "the {what} of {} bytes is larger than {bytes_max}",
            text.len()
        )));
    }
    Ok(text)
}

/// Writes the progress of every task whose turn it is, all jobs of a task together. What the store could not take
/// waits for the next turn, unless newer came.
pub(crate) async fn write_due_progress(runtime: &Runtime) {
    let due = runtime.running().take_due_progress(runtime.clock().instant());
    if due.is_empty() {
        return;
    }
    let notes: Vec<ProgressNote> = due.iter().map(|(note, _)| note.clone()).collect();
    match runtime.store().run(NoteProgress { notes: notes.clone(), now: runtime.clock().now() }).await {
        Ok(lost) if lost.is_empty() => {}
        // The orders will say the same; there is no reason to wait for them.
        Ok(_) => runtime.look_for_orders(),
        Err(_) => due.into_iter().for_each(|(note, notes)| notes.put_back_progress(note.progress_json)),
    }
}
