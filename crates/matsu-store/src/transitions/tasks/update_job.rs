//! What a running job writes about itself, under its fence.

use std::collections::HashMap;

use matsu_core::change::ChangeKind;
use matsu_core::id::{JobId, TaskId};
use matsu_core::job::Lease;
use matsu_core::ports::store::{JobUpdate, NoteProgress, StoreError, UpdateJob};

use crate::sql::{QUICK_MAX, Sql, Transition, Tx, Value, params};
use crate::transitions::held;
use crate::transitions::ledger::Ledger;

const TASK_OF: Sql = Sql::both(concat!("SELECT task_id FROM jobs WHERE id = $1 AND attempt = $2 AND ", held!()));
/// What a parked job asks stands in the same place. A note from before the question, which came late, must not cover it.
const PROGRESS: Sql = Sql::both(concat!(
    "UPDATE jobs SET progress_json = CASE WHEN state = 'awaiting_input' THEN progress_json ELSE $3 END \
     WHERE id = $1 AND attempt = $2 AND ",
    held!()
));
pub const CHECKPOINT: Sql =
    Sql::both(concat!("UPDATE jobs SET checkpoint_json = $3, deaths = 0 WHERE id = $1 AND attempt = $2 AND ", held!()));
const OUTPUT: Sql = Sql::both(concat!("UPDATE jobs SET output_json = $3 WHERE id = $1 AND attempt = $2 AND ", held!()));

const TASKS_OF: Sql =
    Sql::each("SELECT id, task_id FROM jobs WHERE id = $1", "SELECT id, task_id FROM jobs WHERE id = ANY($1)");

impl Transition for UpdateJob {
    fn is_quick(&self) -> bool {
        true
    }

    async fn run(&self, tx: &mut Tx<'_>) -> Result<(), StoreError> {
        let (sql, text) = match &self.update {
            JobUpdate::Progress(text) | JobUpdate::LastProgress(text) => (&PROGRESS, text),
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

impl Transition for NoteProgress {
    fn is_quick(&self) -> bool {
        self.notes.len() <= QUICK_MAX
    }

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Vec<JobId>, StoreError> {
        let ids: Vec<&str> = self.notes.iter().map(|note| note.lease.job_id.as_str()).collect();
        let mut task_of = HashMap::new();
        for row in tx.rows_of(&TASKS_OF, &ids, params![]).await? {
            let mut c = row.columns();
            task_of.insert(JobId::from_text(c.text()?), c.opt_text()?.map(TaskId::from_text));
        }
        let mut ledger = Ledger::lock(tx, task_of.values().flatten().cloned()).await?;
        let sets: Vec<Vec<Value<'_>>> = self
            .notes
            .iter()
            .map(|note| params![&note.lease.job_id, note.lease.attempt, &note.progress_json].to_vec())
            .collect();
        let written = tx.run_each(&PROGRESS, &sets).await?;
        let mut lost = Vec::new();
        for (note, rows) in self.notes.iter().zip(written) {
            match task_of.get(&note.lease.job_id) {
                _ if rows == 0 => lost.push(note.lease.job_id.clone()),
                Some(Some(task_id)) => ledger.change(task_id, ChangeKind::Progress, |_| {}),
                Some(None) | None => {}
            }
        }
        ledger.write(tx, self.now).await?;
        Ok(lost)
    }
}

/// The task of a job that this lease holds. The write that follows checks the fence again, under its row lock.
pub async fn task_of(tx: &mut Tx<'_>, lease: &Lease) -> Result<Option<TaskId>, StoreError> {
    let row = tx.row(&TASK_OF, params![&lease.job_id, lease.attempt]).await?;
    let row = row.ok_or_else(|| StoreError::LeaseLost(lease.job_id.clone()))?;
    Ok(row.columns().opt_text()?.map(TaskId::from_text))
}
