//! Stopping a task, and with it every task it started.

use matsu_core::change::ChangeKind;
use matsu_core::id::TaskId;
use matsu_core::job::JobState;
use matsu_core::notification::Cause;
use matsu_core::ports::store::{StopTask, StoppedTask, StoreError};
use matsu_core::task::{Stop, StopMode, StopReason};

use super::finish_and_claim::release;
use super::steer::wake_all_slots;
use crate::sql::{Row, Sql, Transition, Tx, params};
use crate::transitions::chats::interrupts;
use crate::transitions::ledger::Ledger;

const CHILDREN: Sql = Sql::each(
    "SELECT id, finished_at FROM tasks WHERE parent_id = $1",
    "SELECT id, finished_at FROM tasks WHERE parent_id = ANY($1)",
);
const WAITING: Sql = Sql::both(concat!(
    "SELECT id, state FROM jobs WHERE task_id = $1 AND state <> 'running' AND ",
    crate::transitions::unfinished!()
));
const UNFINISHED: Sql =
    Sql::both(concat!("SELECT id, state FROM jobs WHERE task_id = $1 AND ", crate::transitions::unfinished!()));
const CANCEL: Sql = Sql::each(
    "UPDATE jobs SET state = 'cancelled', finished_at = $2, error_code = 'TASK_STOPPED', owner_node = NULL \
     WHERE id = $1",
    "UPDATE jobs SET state = 'cancelled', finished_at = $2, error_code = 'TASK_STOPPED', owner_node = NULL \
     WHERE id = ANY($1)",
);

impl Transition for StopTask {
    async fn run(&self, tx: &mut Tx<'_>) -> Result<StoppedTask, StoreError> {
        let family = family_of(tx, &self.task_id).await?;
        let mut ledger = Ledger::lock(tx, family).await?;
        // A transition that starts a child locks its parent, so one may have come before our lock; once nothing new is
        // found under the locks, nothing can come any more.
        loop {
            let family = family_of(tx, &self.task_id).await?;
            if !ledger.lock_also(tx, family).await? {
                break;
            }
        }
        let root = ledger.existing(&self.task_id)?;
        if root.status.is_terminal() {
            return Ok(StoppedTask {
                task: root.clone(),
                cancelled_queued: 0,
                cancelled_running: 0,
                was_terminal: true,
            });
        }
        let mut queued = 0;
        let mut running = 0;
        let ids: Vec<TaskId> = ledger.tasks().map(|task| task.id.clone()).collect();
        for id in &ids {
            let (waiting, started) = self.stop_one(tx, &mut ledger, id).await?;
            queued += waiting;
            running += started;
        }
        wake_all_slots(tx);
        let tasks = ledger.write(tx, self.now).await?;
        let task = tasks.into_iter().find(|task| task.id == self.task_id);
        let task = task.ok_or_else(|| crate::sql::internal("a locked task is gone"))?;
        Ok(StoppedTask { task, cancelled_queued: queued, cancelled_running: running, was_terminal: false })
    }
}

trait StopOne {
    async fn stop_one(&self, tx: &mut Tx<'_>, ledger: &mut Ledger, id: &TaskId) -> Result<(i64, i64), StoreError>;
}

impl StopOne for StopTask {
    /// How many waiting and how many running jobs were cancelled.
    async fn stop_one(&self, tx: &mut Tx<'_>, ledger: &mut Ledger, id: &TaskId) -> Result<(i64, i64), StoreError> {
        let task = ledger.existing(id)?;
        let before = task.stop;
        if task.status.is_terminal() {
            return Ok((0, 0));
        }
        // A harder mode replaces a softer one; the first reason stands.
        let mode = task.stop.map_or(self.mode, |stop| stop.mode.max(self.mode));
        let stop =
            task.stop.map_or(Stop { mode, reason: self.reason, requested_at: self.now }, |stop| Stop { mode, ..stop });
        let which = if mode == StopMode::Immediate { &UNFINISHED } else { &WAITING };
        let jobs = jobs(&tx.rows(which, params![id]).await?)?;
        let ids: Vec<&str> = jobs.iter().map(|(job, _)| job.as_str()).collect();
        if !ids.is_empty() {
            tx.run_of(&CANCEL, &ids, params![self.now]).await?;
            release(tx, &ids).await?;
        }
        for (_, state) in &jobs {
            ledger.moved(Some(id), *state, JobState::Cancelled);
        }
        if before != Some(stop) {
            ledger.change(id, ChangeKind::TaskStatus, |task| task.stop = Some(stop));
        }
        // A harder stop is no second order.
        match (before, self.reason) {
            (None, StopReason::UserCancelled) => {
                interrupts::raise(tx, id, Cause::TaskCancelled, None, self.now).await?;
            }
            (None, StopReason::Completed | StopReason::BudgetExhausted) => {
                interrupts::void(tx, id, self.now).await?;
            }
            (Some(_), _) => {}
        }
        let running = jobs.iter().filter(|(_, state)| *state == JobState::Running).count();
        let count = |jobs: usize| i64::try_from(jobs).unwrap_or(i64::MAX);
        Ok((count(jobs.len() - running), count(running)))
    }
}

fn jobs(rows: &[Row]) -> Result<Vec<(String, JobState)>, StoreError> {
    rows.iter()
        .map(|row| {
            let mut c = row.columns();
            Ok((c.text()?, c.word(JobState::parse)?))
        })
        .collect()
}

/// The task and all unfinished tasks below it, also below ended ones. Delegation is bounded in depth, so this ends.
async fn family_of(tx: &mut Tx<'_>, root: &TaskId) -> Result<Vec<TaskId>, StoreError> {
    let mut unfinished = vec![root.clone()];
    let mut level = vec![root.clone()];
    while !level.is_empty() {
        let parents: Vec<&str> = level.iter().map(TaskId::as_str).collect();
        let rows = tx.rows_of(&CHILDREN, &parents, params![]).await?;
        level.clear();
        for row in &rows {
            let mut c = row.columns();
            let id = TaskId::from_text(c.text()?);
            if c.opt_time()?.is_none() {
                unfinished.push(id.clone());
            }
            level.push(id);
        }
    }
    Ok(unfinished)
}
