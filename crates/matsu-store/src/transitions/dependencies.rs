//! Tasks that start after others. Their jobs are held until every task that they wait for is over, or one of them has
//! failed; the transaction that ends the last one lets them go.

use matsu_core::change::Topic;
use matsu_core::clock::Timestamp;
use matsu_core::id::TaskId;
use matsu_core::ports::store::StoreError;
use matsu_core::slot::Slot;
use matsu_core::task::{NewTask, TaskStatus};

use super::hold::hold;
use super::ledger::Ledger;
use crate::sql::{Sql, Tx, params};

/// Of a row of `jobs`: one of the tasks is not over, and none has failed. A task that has expired was over.
macro_rules! waits_for_others {
    () => {
        "(EXISTS (SELECT 1 FROM task_dependencies d JOIN tasks t ON t.id = d.depends_on WHERE d.task_id = jobs.task_id \
         AND t.status NOT IN ('completed', 'finished', 'failed', 'cancelled')) \
         AND NOT EXISTS (SELECT 1 FROM task_dependencies d JOIN tasks t ON t.id = d.depends_on \
         WHERE d.task_id = jobs.task_id AND t.status IN ('failed', 'cancelled')))"
    };
}
/// Held jobs of the tasks that wait for this one.
macro_rules! held {
    () => {
        concat!(
            "state = 'queued' AND hold = ",
            hold!(Dependencies),
            " AND task_id IN (SELECT task_id FROM task_dependencies WHERE depends_on = $1)"
        )
    };
}
pub(crate) use waits_for_others;

const INSERT: Sql = Sql::both("INSERT INTO task_dependencies (task_id, depends_on) VALUES ($1, $2)");
const MARK_AWAITED: Sql = Sql::both("UPDATE tasks SET is_awaited = 1 WHERE id = $1");
const HOLD: Sql =
    Sql::both(concat!("UPDATE jobs SET hold = ", hold!(Dependencies), " WHERE task_id = $1 AND state = 'queued'"));
/// Of two transactions that end two tasks at once the second waits here, and sees afterwards what the first has written.
const LOCK_HELD: Sql = Sql::both(concat!("UPDATE jobs SET hold = ", hold!(Dependencies), " WHERE ", held!()));
const LET_GO: Sql = Sql::both(concat!(
    "UPDATE jobs SET hold = CASE WHEN run_at > $2 THEN ",
    hold!(Later),
    " ELSE ",
    hold!(None),
    " END WHERE ",
    held!(),
    " AND NOT ",
    waits_for_others!()
));

/// Stores what a new task waits for. The tasks are locked, so none of them ends unseen meanwhile.
///
/// # Returns
/// Whether its jobs have to be held.
pub async fn insert(tx: &mut Tx<'_>, new: &NewTask) -> Result<bool, StoreError> {
    if new.depends_on.is_empty() {
        return Ok(false);
    }
    // With the parent, in order.
    let ids = new.depends_on.iter().chain(&new.parent_id).cloned();
    let ledger = Ledger::lock(tx, ids).await?;
    let (mut open, mut has_failed) = (false, false);
    for id in &new.depends_on {
        let status = ledger.existing(id)?.status;
        has_failed |= matches!(status, TaskStatus::Failed | TaskStatus::Cancelled);
        if !status.is_over() {
            open = true;
            tx.run(&MARK_AWAITED, params![id]).await?;
        }
        tx.run(&INSERT, params![&new.id, id]).await?;
    }
    Ok(open && !has_failed)
}

/// The jobs of a new task that waits.
pub async fn hold_jobs(tx: &mut Tx<'_>, id: &TaskId) -> Result<(), StoreError> {
    tx.run(&HOLD, params![id]).await.map(drop)
}

/// A task that others wait for is over.
pub async fn release(tx: &mut Tx<'_>, id: &TaskId, now: Timestamp) -> Result<(), StoreError> {
    if tx.run(&LOCK_HELD, params![id]).await? == 0 {
        return Ok(());
    }
    tx.run(&LET_GO, params![id, now]).await?;
    tx.publish(Topic::queue(Slot::AgentCli));
    Ok(())
}
