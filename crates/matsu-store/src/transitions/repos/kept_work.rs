//! The changes of a run whose job was over before its tree was closed.

use matsu_core::change::ChangeKind;
use matsu_core::id::TaskId;
use matsu_core::ports::store::{KeepWork, StoreError};
use matsu_core::run::{RunCheckpoint, RunOutput};

use crate::sql::{Sql, Transition, Tx, internal, params};
use crate::transitions::ledger::Ledger;

const TASK_OF: Sql = Sql::both("SELECT task_id FROM jobs WHERE id = $1 AND finished_at IS NOT NULL");
const OVER: Sql = Sql::both("SELECT output_json, checkpoint_json FROM jobs WHERE id = $1 AND finished_at IS NOT NULL");
const KEEP: Sql = Sql::both("UPDATE jobs SET output_json = $2, checkpoint_json = $3 WHERE id = $1");
/// A conversation that another task has taken since is left alone.
const PLACE: Sql = Sql::both("UPDATE agent_sessions SET place = $2 WHERE task_id = $1");

impl Transition for KeepWork {
    async fn run(&self, tx: &mut Tx<'_>) -> Result<bool, StoreError> {
        let Some(row) = tx.row(&TASK_OF, params![&self.job]).await? else { return Ok(false) };
        let task = row.columns().opt_text()?.map(TaskId::from_text);
        let mut ledger = Ledger::lock(tx, task.clone()).await?;
        let Some(row) = tx.row(&OVER, params![&self.job]).await? else { return Ok(false) };
        let mut c = row.columns();
        let output: Option<RunOutput> = c.opt_text()?.and_then(|text| serde_json::from_str(&text).ok());
        let checkpoint: Option<RunCheckpoint> = c.opt_text()?.and_then(|text| serde_json::from_str(&text).ok());
        let mut output = output.unwrap_or_else(|| RunOutput { agent: self.work.agent.clone(), ..RunOutput::default() });
        if output.changes.is_some() || output.left_work.is_some() {
            return Ok(false);
        }
        output.changes.clone_from(&self.work.changes);
        output.left_work.clone_from(&self.work.left_work);
        let mut checkpoint = checkpoint.unwrap_or_default();
        if let Some(place) = &self.work.place {
            checkpoint.place = Some(place.clone());
        }
        let (output, checkpoint) = (json(&output)?, json(&checkpoint)?);
        tx.run(&KEEP, params![&self.job, &output, &checkpoint]).await?;
        if let Some(task) = &task {
            if let Some(place) = &self.work.place {
                tx.run(&PLACE, params![task, place]).await?;
            }
            ledger.change(task, ChangeKind::Progress, |_| {});
        }
        ledger.write(tx, self.now).await?;
        Ok(true)
    }
}

fn json(value: &impl serde::Serialize) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(internal)
}
