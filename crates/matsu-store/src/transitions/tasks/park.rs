//! Jobs that wait for a person: for an answer with the process alive, or for a login with the body ended.

use matsu_core::change::Topic;
use matsu_core::clock::Timestamp;
use matsu_core::id::{JobId, TaskId};
use matsu_core::job::{JobState, Lease};
use matsu_core::notify::{NoticeEvent, question_key};
use matsu_core::ports::store::{ParkForInput, RequeueParked, ResumeFromInput, StoreError};
use matsu_core::run::Question;
use matsu_core::slot::Slot;
use matsu_core::task::Task;

use super::permits;
use super::update_job::task_of;
use crate::sql::{Sql, Transition, Tx, params};
use crate::transitions::chats::turns;
use crate::transitions::hold::{Hold, hold};
use crate::transitions::ledger::Ledger;
use crate::transitions::notices;

const PARK: Sql = Sql::both(concat!(
    "UPDATE jobs SET state = 'awaiting_input', hold = ",
    hold!(NoPermit),
    ", progress_json = $3 WHERE id = $1 AND attempt = $2 AND state = 'running' RETURNING slot",
));
/// The process that asked is gone, and the one that took its run over asks again.
const PARK_AGAIN: Sql = Sql::both(
    "UPDATE jobs SET progress_json = $3 WHERE id = $1 AND attempt = $2 AND state = 'awaiting_input' RETURNING slot",
);
const RESUME: Sql =
    Sql::both("UPDATE jobs SET state = 'running' WHERE id = $1 AND attempt = $2 AND state = 'awaiting_input'");
const SLOT_OF: Sql = Sql::both("SELECT slot FROM jobs WHERE id = $1 AND attempt = $2 AND state = 'awaiting_input'");
const PARKED: Sql = Sql::each(
    "SELECT id, task_id, slot FROM jobs WHERE id = $1 AND state = 'awaiting_auth'",
    "SELECT id, task_id, slot FROM jobs WHERE id = ANY($1) AND state = 'awaiting_auth' ORDER BY id",
);
const REQUEUE: Sql =
    Sql::both("UPDATE jobs SET state = 'queued', hold = $2, run_at = $3 WHERE id = $1 AND state = 'awaiting_auth'");

impl Transition for ParkForInput {
    async fn run(&self, tx: &mut Tx<'_>) -> Result<(), StoreError> {
        let task_id = task_of(tx, &self.lease).await?;
        let mut ledger = Ledger::lock(tx, task_id.clone()).await?;
        let row = tx.row(&PARK, params![&self.lease.job_id, self.lease.attempt, &self.question_json]).await?;
        let Some(row) = row else {
            park_again(tx, self).await?;
            return notify_question(tx, self, task_id.as_ref().and_then(|id| ledger.task(id))).await;
        };
        let slot = row.columns().word(Slot::parse)?;
        permits::free_in_slot(tx, &self.lease, slot).await?;
        ledger.moved(task_id.as_ref(), JobState::Running, JobState::AwaitingInput);
        let tasks = ledger.write(tx, self.now).await?;
        notify_question(tx, self, tasks.first()).await?;
        // Its permit is free for another job.
        tx.publish(Topic::queue(slot));
        announce_in_chat(tx, task_id.as_ref(), &self.lease, self.now).await
    }
}

/// A question that was asked before has its notices already.
async fn notify_question(tx: &mut Tx<'_>, park: &ParkForInput, task: Option<&Task>) -> Result<(), StoreError> {
    let question = serde_json::from_str::<Question>(&park.question_json).ok();
    let (Some(task), Some(question)) = (task, question) else { return Ok(()) };
    let key = question_key(&park.lease.job_id, &question.id);
    notices::add(tx, task, NoticeEvent::Asks, &key, park.now).await
}

async fn park_again(tx: &mut Tx<'_>, park: &ParkForInput) -> Result<(), StoreError> {
    let lease = &park.lease;
    let again = tx.row(&PARK_AGAIN, params![&lease.job_id, lease.attempt, &park.question_json]).await?;
    again.map(drop).ok_or_else(|| StoreError::LeaseLost(lease.job_id.clone()))
}

impl Transition for ResumeFromInput {
    async fn run(&self, tx: &mut Tx<'_>) -> Result<bool, StoreError> {
        let task_id = task_of(tx, &self.lease).await?;
        let mut ledger = Ledger::lock(tx, task_id.clone()).await?;
        let row = tx.row(&SLOT_OF, params![&self.lease.job_id, self.lease.attempt]).await?;
        let row = row.ok_or_else(|| StoreError::LeaseLost(self.lease.job_id.clone()))?;
        let slot = row.columns().word(Slot::parse)?;
        let numbers = permits::free(tx, slot, self.permits_max, 1).await?;
        if numbers.is_empty() {
            return Ok(false);
        }
        let resumed = tx.run(&RESUME, params![&self.lease.job_id, self.lease.attempt]).await?;
        if resumed == 0 {
            return Err(StoreError::LeaseLost(self.lease.job_id.clone()));
        }
        permits::take(tx, slot, &numbers, std::slice::from_ref(&self.lease)).await?;
        ledger.moved(task_id.as_ref(), JobState::AwaitingInput, JobState::Running);
        ledger.write(tx, self.now).await?;
        announce_in_chat(tx, task_id.as_ref(), &self.lease, self.now).await?;
        Ok(true)
    }
}

/// A job without a task may work for a chat; people see there that it asks, and that it goes on.
async fn announce_in_chat(
    tx: &mut Tx<'_>,
    task: Option<&TaskId>,
    lease: &Lease,
    now: Timestamp,
) -> Result<(), StoreError> {
    match task {
        Some(_) => Ok(()),
        None => turns::announce_job(tx, &lease.job_id, now).await,
    }
}

impl Transition for RequeueParked {
    async fn run(&self, tx: &mut Tx<'_>) -> Result<Vec<JobId>, StoreError> {
        let mut ids: Vec<&str> = self.jobs.iter().map(JobId::as_str).collect();
        ids.sort_unstable();
        ids.dedup();
        let mut parked = Vec::new();
        for row in tx.rows_of(&PARKED, &ids, params![]).await? {
            let mut c = row.columns();
            let id = JobId::from_text(c.text()?);
            parked.push((id, c.opt_text()?.map(TaskId::from_text), c.word(Slot::parse)?));
        }
        let mut ledger = Ledger::lock(tx, parked.iter().filter_map(|(_, task, _)| task.clone())).await?;
        let mut moved = Vec::new();
        for (id, task_id, slot) in parked {
            let held = task_id.as_ref().and_then(|id| ledger.task(id)).is_some_and(|task| task.status.is_held());
            let hold = if held { Hold::Task } else { Hold::None };
            // A stop may have been faster; then there is nothing to requeue.
            if tx.run(&REQUEUE, params![&id, hold, self.now]).await? > 0 {
                ledger.moved(task_id.as_ref(), JobState::AwaitingAuth, JobState::Queued);
                tx.publish(Topic::queue(slot));
                moved.push(id);
            }
        }
        ledger.write(tx, self.now).await?;
        Ok(moved)
    }
}
