//! Pause, block, resume.

use matsu_core::change::{ChangeKind, Topic};
use matsu_core::clock::Timestamp;
use matsu_core::id::TaskId;
use matsu_core::ports::store::{SetStatus, Steer, StoreError};
use matsu_core::slot::Slot;
use matsu_core::task::{Task, TaskKind, TaskStatus, check_transition};

use super::ledger::Ledger;
use super::unfinished;
use crate::sql::{Sql, Transition, Tx, params};

const HOLD_QUEUED: Sql =
    Sql::both(concat!("UPDATE jobs SET hold = 2 WHERE task_id = $1 AND state = 'queued' AND ", unfinished!()));
const LET_GO: Sql = Sql::both(concat!(
    "UPDATE jobs SET hold = CASE WHEN run_at > $2 THEN 1 ELSE 0 END WHERE task_id = $1 AND state = 'queued' AND ",
    unfinished!()
));

impl Transition for SetStatus {
    type Output = Task;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Task, StoreError> {
        let mut ledger = Ledger::lock(tx, [self.task_id.clone()]).await?;
        let task = ledger.existing(&self.task_id)?;
        let target = match self.to {
            Steer::Pause => TaskStatus::Paused,
            Steer::Block => TaskStatus::Blocked,
            Steer::Resume => TaskStatus::Running,
        };
        check_transition(task.status, target)?;
        if self.to == Steer::Resume {
            if task.status.is_held() {
                resume(tx, &mut ledger, &self.task_id, self.now).await?;
            }
        } else if task.status != target {
            tx.run(&HOLD_QUEUED, params![&self.task_id]).await?;
            ledger.change(&self.task_id, ChangeKind::TaskStatus, |task| {
                task.status = target;
                task.held_by = Some(self.by.clone());
                task.status_message.clone_from(&self.message);
            });
            wake_all_slots(tx);
        }
        let task = ledger.write(tx, self.now).await?.into_iter().next();
        task.ok_or_else(|| crate::sql::internal("a locked task is gone"))
    }
}

/// Lets a held task go on; what its jobs make of it, the ledger decides.
pub async fn resume(tx: &mut Tx<'_>, ledger: &mut Ledger, task_id: &TaskId, now: Timestamp) -> Result<(), StoreError> {
    tx.run(&LET_GO, params![task_id, now]).await?;
    ledger.change(task_id, ChangeKind::TaskStatus, |task| {
        // A wait has no jobs that could set it running again.
        task.status = if task.kind == TaskKind::Wait { TaskStatus::Running } else { TaskStatus::Queued };
        task.held_by = None;
        task.status_message = None;
    });
    wake_all_slots(tx);
    Ok(())
}

/// Whoever runs jobs looks for new work and for new orders.
pub fn wake_all_slots(tx: &mut Tx<'_>) {
    for slot in Slot::FOR_JOBS {
        tx.publish(Topic::queue(*slot));
    }
}
