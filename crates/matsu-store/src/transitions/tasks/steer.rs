//! Pause, block, resume, reassign; and the order to stop that goes with each, in the same transaction.

use matsu_core::change::{ChangeKind, Topic};
use matsu_core::clock::Timestamp;
use matsu_core::error_code::ErrorCode;
use matsu_core::id::{AgentId, JobId, ProjectId, TaskId};
use matsu_core::job::{JobState, NewJob};
use matsu_core::limits::DEATHS_MAX;
use matsu_core::notification::Cause;
use matsu_core::ports::store::{Reassign, SetStatus, Steer, StoreError};
use matsu_core::slot::Slot;
use matsu_core::task::{Task, TaskKind, TaskStatus, check_transition};

use crate::sql::{Sql, Transition, Tx, params};
use crate::transitions::chats::interrupts;
use crate::transitions::dependencies::waits_for_others;
use crate::transitions::hold::hold;
use crate::transitions::jobs::insert_jobs;
use crate::transitions::ledger::Ledger;
use crate::transitions::rows::{self, job_columns};
use crate::transitions::unfinished;

const HOLD_QUEUED: Sql = Sql::both(concat!(
    "UPDATE jobs SET hold = ",
    hold!(Task),
    " WHERE task_id = $1 AND state = 'queued' AND ",
    unfinished!()
));
const LET_GO: Sql = Sql::both(concat!(
    "UPDATE jobs SET hold = CASE WHEN ",
    waits_for_others!(),
    " THEN ",
    hold!(Dependencies),
    " WHEN deaths >= $3 THEN ",
    hold!(Alone),
    " WHEN run_at > $2 THEN ",
    hold!(Later),
    " ELSE ",
    hold!(None),
    " END WHERE task_id = $1 AND state = 'queued' AND ",
    unfinished!()
));

/// Runs that a pause has ended and that no job has taken up since.
const PAUSED_RUNS: Sql = Sql::both(concat!(
    "SELECT ",
    job_columns!(),
    " FROM jobs WHERE task_id = $1 AND state = 'cancelled' AND error_code = 'TASK_PAUSED' AND NOT EXISTS \
     (SELECT 1 FROM jobs later WHERE later.task_id = $1 AND later.cause_id = jobs.id) ORDER BY seq"
));
const CONTINUE: Sql = Sql::both(
    "UPDATE jobs SET checkpoint_json = (SELECT before.checkpoint_json FROM jobs before WHERE before.id = $2) WHERE id = $1",
);

const AT_WORK: Sql =
    Sql::both("SELECT 1 FROM sessions WHERE task_id = $1 AND state = 'active' AND expires_at > $2 LIMIT 1");
const GIVE_TO: Sql = Sql::both("UPDATE tasks SET assignee = $2 WHERE id = $1");

impl Transition for SetStatus {
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
                interrupts::resume(tx, &self.task_id, self.now).await?;
            }
        } else if task.status != target {
            if task.counts.unfinished() > 0 {
                hold_queued(tx, &self.task_id).await?;
                wake_all_slots(tx);
            }
            ledger.change(&self.task_id, ChangeKind::TaskStatus, |task| {
                task.status = target;
                task.held_by = Some(self.by.clone());
                task.status_message.clone_from(&self.message);
            });
            let cause = if self.to == Steer::Block { Cause::TaskBlocked } else { Cause::TaskPaused };
            interrupts::raise(tx, &self.task_id, cause, None, self.now).await?;
        }
        let task = ledger.write(tx, self.now).await?.into_iter().next();
        task.ok_or_else(|| crate::sql::internal("a locked task is gone"))
    }
}

/// Queued jobs of a held task are not claimed.
pub async fn hold_queued(tx: &mut Tx<'_>, task_id: &TaskId) -> Result<(), StoreError> {
    tx.run(&HOLD_QUEUED, params![task_id]).await.map(drop)
}

/// Lets a held task go on; what its jobs make of it, the ledger decides.
pub async fn resume(tx: &mut Tx<'_>, ledger: &mut Ledger, task_id: &TaskId, now: Timestamp) -> Result<(), StoreError> {
    tx.run(&LET_GO, params![task_id, now, DEATHS_MAX]).await?;
    let again = runs_to_repeat(tx, task_id, now).await?;
    insert_jobs(tx, Some(task_id), &again, now).await?;
    for job in &again {
        tx.run(&CONTINUE, params![&job.id, job.cause_id.as_ref()]).await?;
    }
    let added = i64::try_from(again.len()).unwrap_or(i64::MAX);
    let is_worked_on = tx.row(&AT_WORK, params![task_id, now]).await?.is_some();
    ledger.change(task_id, ChangeKind::TaskStatus, |task| {
        // A wait has no jobs that could set it running again, nor has a task that a session carries.
        let goes_on = task.kind == TaskKind::Wait || (task.is_carried_by_session() && is_worked_on);
        task.status = if goes_on { TaskStatus::Running } else { TaskStatus::Queued };
        task.held_by = None;
        task.status_message = None;
        task.counts.add(JobState::Queued, added);
    });
    if ledger.existing(task_id)?.counts.unfinished() > 0 {
        wake_all_slots(tx);
    }
    Ok(())
}

/// A pause ends an agent's run for good; what it was doing is begun by a new job that knows which one it follows.
async fn runs_to_repeat(tx: &mut Tx<'_>, task_id: &TaskId, now: Timestamp) -> Result<Vec<NewJob>, StoreError> {
    let rows = tx.rows(&PAUSED_RUNS, params![task_id]).await?;
    rows.iter()
        .map(|row| {
            let before = rows::job(row)?;
            Ok(NewJob {
                id: JobId::mint(now),
                kind: before.kind,
                priority: before.priority,
                slot: before.slot,
                input_json: before.input_json,
                cause_id: Some(before.id.to_string()),
                run_at: now,
                dedupe_key: before.dedupe_key,
            })
        })
        .collect()
}

impl Transition for Reassign {
    async fn run(&self, tx: &mut Tx<'_>) -> Result<Task, StoreError> {
        let mut ledger = Ledger::lock(tx, [self.task_id.clone()]).await?;
        let task = ledger.existing(&self.task_id)?;
        if task.assignee == self.to {
            return Ok(task.clone());
        }
        if task.status.is_terminal() || task.counts.total() > 0 {
            let message = format!("task {} is {} and cannot be assigned to another agent", task.id, task.status);
            return Err(StoreError::Closed { code: ErrorCode::IllegalTransition, message });
        }
        tx.run(&GIVE_TO, params![&self.task_id, self.to.as_ref()]).await?;
        interrupts::raise(tx, &self.task_id, Cause::TaskReassigned, None, self.now).await?;
        ledger.change(&self.task_id, ChangeKind::TaskStatus, |task| {
            task.assignee.clone_from(&self.to);
            // The new agent has not begun.
            if task.status == TaskStatus::Running {
                task.status = TaskStatus::Queued;
            }
        });
        if let (Some(agent), Some(project)) = (&self.to, ledger.existing(&self.task_id)?.project_id.clone()) {
            tx.publish(Topic::agent(&AgentId::from_text(agent.clone()), &ProjectId::from_text(project)));
        }
        let task = ledger.write(tx, self.now).await?.into_iter().next();
        task.ok_or_else(|| crate::sql::internal("a locked task is gone"))
    }
}

/// Wakes all nodes, so that they look for new work and for new orders.
pub fn wake_all_slots(tx: &mut Tx<'_>) {
    for slot in Slot::FOR_JOBS {
        tx.publish(Topic::queue(*slot));
    }
}
