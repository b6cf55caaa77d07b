//! What a running job writes about itself, under its fence.

use matsu_core::change::ChangeKind;
use matsu_core::clock::Timestamp;
use matsu_core::id::TaskId;
use matsu_core::job::Lease;
use matsu_core::ports::store::{JobUpdate, StoreError};

use super::held;
use super::ledger::Ledger;
use crate::sql::{Sql, Transition, Tx, params};

const TASK_OF: Sql = Sql::both(concat!("SELECT task_id FROM jobs WHERE id = $1 AND attempt = $2 AND ", held!()));
const PROGRESS: Sql =
    Sql::both(concat!("UPDATE jobs SET progress_json = $3 WHERE id = $1 AND attempt = $2 AND ", held!()));
const CHECKPOINT: Sql =
    Sql::both(concat!("UPDATE jobs SET checkpoint_json = $3 WHERE id = $1 AND attempt = $2 AND ", held!()));
const OUTPUT: Sql = Sql::both(concat!("UPDATE jobs SET output_json = $3 WHERE id = $1 AND attempt = $2 AND ", held!()));

pub struct UpdateJob {
    pub lease: Lease,
    pub update: JobUpdate,
    pub now: Timestamp,
}

impl Transition for UpdateJob {
    type Output = ();

    async fn run(&self, tx: &mut Tx<'_>) -> Result<(), StoreError> {
        let (sql, text) = match &self.update {
            JobUpdate::Progress(text) => (&PROGRESS, text),
            JobUpdate::Checkpoint(text) => (&CHECKPOINT, text),
            JobUpdate::PartialOutput(text) => (&OUTPUT, text),
        };
        let visible = matches!(self.update, JobUpdate::Progress(_));
        let task_id = task_of(tx, &self.lease).await?;
        let mut ledger = match &task_id {
            Some(id) if visible => Ledger::lock(tx, [id.clone()]).await?,
            _ => Ledger::default(),
        };
        let written = tx.run(sql, params![&self.lease.job_id, self.lease.attempt, text]).await?;
        if written == 0 {
            return Err(StoreError::LeaseLost(self.lease.job_id.clone()));
        }
        if let Some(id) = &task_id {
            ledger.change(id, ChangeKind::Progress, |_| {});
        }
        ledger.write(tx, self.now).await?;
        Ok(())
    }
}

/// The task of a job that this lease holds. The write that follows checks the fence again, under its row lock.
pub async fn task_of(tx: &mut Tx<'_>, lease: &Lease) -> Result<Option<TaskId>, StoreError> {
    let row = tx.row(&TASK_OF, params![&lease.job_id, lease.attempt]).await?;
    let row = row.ok_or_else(|| StoreError::LeaseLost(lease.job_id.clone()))?;
    Ok(row.columns().opt_text()?.map(TaskId::from_text))
}
