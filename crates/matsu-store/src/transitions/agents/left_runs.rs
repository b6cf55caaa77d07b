//! Runs that outlive their node: those that wait for another node, and its taking over.

use matsu_core::change::ChangeKind;
use matsu_core::error_code::ErrorCode;
use matsu_core::id::JobId;
use matsu_core::job::{JobEnd, JobKind, Lease, Retry};
use matsu_core::ports::store::{AdoptRun, LeftRun, LoseRun, ReadLeftRuns, StoreError};
use matsu_core::slot::Slot;

use crate::sql::{Sql, Transition, Tx, params};
use crate::transitions::held;
use crate::transitions::ledger::Ledger;
use crate::transitions::tasks::finish_and_claim::{Fence, ending, release, settle_one};

const LEFT: Sql = Sql::both(
    "SELECT jobs.id, jobs.attempt, jobs.slot, nodes.host, nodes.left_at FROM nodes \
     JOIN jobs ON jobs.owner_node = nodes.id WHERE nodes.role = 'left' AND jobs.finished_at IS NULL \
     AND jobs.state IN ('running', 'awaiting_input') ORDER BY nodes.left_at, jobs.id",
);
const ADOPT: Sql = Sql::both(concat!(
    "UPDATE jobs SET attempt = attempt + 1, owner_node = $3 WHERE id = $1 AND attempt = $2 \
     AND owner_node IN (SELECT id FROM nodes WHERE role = 'left') AND ",
    held!()
));
const PERMITS: Sql = Sql::both("UPDATE permits SET attempt = $2 WHERE job_id = $1");
/// A node that has left is known for as long as it has runs.
const FORGET: Sql = Sql::both(
    "DELETE FROM nodes WHERE role = 'left' AND NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.owner_node = nodes.id \
     AND jobs.finished_at IS NULL AND jobs.state IN ('running', 'awaiting_input'))",
);

impl Transition for ReadLeftRuns {
    const READS: bool = true;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Vec<LeftRun>, StoreError> {
        let rows = tx.rows(&LEFT, params![]).await?;
        rows.iter()
            .map(|row| {
                let mut c = row.columns();
                let lease = Lease { job_id: JobId::from_text(c.text()?), attempt: c.int()? };
                Ok(LeftRun { lease, slot: c.word(Slot::parse)?, host: c.text()?, left_at: c.time()? })
            })
            .collect()
    }
}

impl Transition for AdoptRun {
    async fn run(&self, tx: &mut Tx<'_>) -> Result<Option<Lease>, StoreError> {
        let rows = ending(tx, std::iter::once(&self.run.job_id)).await?;
        let task = rows.get(&self.run.job_id).and_then(|row| row.task_id.clone());
        let mut ledger = Ledger::lock(tx, task.clone()).await?;
        if tx.run(&ADOPT, params![&self.run.job_id, self.run.attempt, &self.node]).await? == 0 {
            return Ok(None);
        }
        let lease = Lease { job_id: self.run.job_id.clone(), attempt: self.run.attempt + 1 };
        tx.run(&PERMITS, params![&lease.job_id, lease.attempt]).await?;
        tx.run(&FORGET, params![]).await?;
        // The attempt of a job can be read.
        if let Some(task) = &task {
            ledger.change(task, ChangeKind::JobStarted, |_| {});
        }
        ledger.write(tx, self.now).await?;
        Ok(Some(lease))
    }
}

impl Transition for LoseRun {
    async fn run(&self, tx: &mut Tx<'_>) -> Result<bool, StoreError> {
        let rows = ending(tx, std::iter::once(&self.run.job_id)).await?;
        let Some(row) = rows.get(&self.run.job_id) else { return Ok(false) };
        let mut ledger = Ledger::lock(tx, row.task_id.clone()).await?;
        let code = ErrorCode::HostLost.to_string();
        let end = match row.kind {
            // What it was called for is for the next one.
            JobKind::AgentChat => JobEnd::OwnerDied,
            _ => JobEnd::Failed { code, message: self.message.clone(), retry: Retry::Never, output_json: None },
        };
        let settled = settle_one(tx, &mut ledger, row, &self.run, &end, Fence::Bump, self.now).await?.is_ok();
        if settled {
            release(tx, &[self.run.job_id.as_str()]).await?;
        }
        tx.run(&FORGET, params![]).await?;
        ledger.write(tx, self.now).await?;
        Ok(settled)
    }
}
