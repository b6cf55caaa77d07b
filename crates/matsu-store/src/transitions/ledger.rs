//! The ledger: the task rows a transition has locked, what moved in them, and the one place that writes them back.
//!
//! Every visible change bumps the task's revision and appends to `changes` in the same transaction, once per task
//! and transaction. The status follows from the counts by the core's rule, so no transition can forget it.

use std::collections::BTreeMap;

use matsu_core::change::{ChangeKind, Topic};
use matsu_core::clock::Timestamp;
use matsu_core::id::TaskId;
use matsu_core::job::JobState;
use matsu_core::notify::NoticeEvent;
use matsu_core::ports::store::StoreError;
use matsu_core::task::{Stop, StopMode, StopReason, Task, TaskStatus, check_transition, status_from_jobs};

use super::dependencies;
use super::notices;
use super::rows::{self, task_columns};
use crate::sql::{Row, Sql, Tx, params};

const LOCK: Sql = Sql::each(
    concat!("SELECT ", task_columns!(), " FROM tasks WHERE id = $1"),
    concat!("SELECT ", task_columns!(), " FROM tasks WHERE id = ANY($1) ORDER BY id FOR UPDATE"),
);

const WRITE: Sql = Sql::both(
    "UPDATE tasks SET status = $2, status_message = $3, held_by = $4, revision = $5, finished_revision = $6, \
     attention_revision = $7, n_queued = $8, n_running = $9, n_awaiting_auth = $10, n_awaiting_input = $11, \
     n_completed = $12, n_failed = $13, n_cancelled = $14, stop_mode = $15, stop_reason = $16, \
     stop_requested_at = $17, updated_at = $18 WHERE id = $1",
);
/// Only when it moves: SQLite writes every index anew whose condition names a column that is set, to whatever value.
const WRITE_END: Sql = Sql::both("UPDATE tasks SET finished_at = $2 WHERE id = $1");

const APPEND_CHANGE: Sql = Sql::each(
    "INSERT INTO changes (topic, kind, revision, at) VALUES ($1, $2, $3, $4)",
    "INSERT INTO changes (topic, kind, revision, at, mark) VALUES ($1, $2, $3, $4, $5)",
);

/// Locked tasks, by ascending id.
#[derive(Default)]
pub struct Ledger {
    entries: BTreeMap<TaskId, Entry>,
}

struct Entry {
    task: Task,
    /// The weightiest change so far; `None`: nothing visible happened.
    change: Option<ChangeKind>,
    /// Whether any of the changes is worth a model's turn, whichever is recorded.
    is_news: bool,
    /// What is written down so far.
    finished_at: Option<Timestamp>,
    status: TaskStatus,
}

impl Ledger {
    /// Locks these tasks in ascending order of id. Absent ones are simply not there.
    pub async fn lock(tx: &mut Tx<'_>, ids: impl IntoIterator<Item = TaskId>) -> Result<Self, StoreError> {
        let mut ids: Vec<TaskId> = ids.into_iter().collect();
        ids.sort();
        ids.dedup();
        if ids.is_empty() {
            return Ok(Self::default());
        }
        let list: Vec<&str> = ids.iter().map(TaskId::as_str).collect();
        Self::of_locked(&tx.rows_of(&LOCK, &list, params![]).await?)
    }

    /// Of rows that a statement has locked in ascending order of id.
    pub fn of_locked(rows: &[Row]) -> Result<Self, StoreError> {
        let mut entries = BTreeMap::new();
        for row in rows {
            let task = rows::task(row)?;
            let (finished_at, status) = (task.finished_at, task.status);
            entries.insert(task.id.clone(), Entry { task, change: None, is_news: false, finished_at, status });
        }
        Ok(Self { entries })
    }

    /// Locks tasks that appeared while the first locks were awaited; returns whether there were any. They come out of
    /// order, so PostgreSQL may have to try the transaction again.
    pub async fn lock_also(
        &mut self,
        tx: &mut Tx<'_>,
        ids: impl IntoIterator<Item = TaskId>,
    ) -> Result<bool, StoreError> {
        let missing: Vec<TaskId> = ids.into_iter().filter(|id| !self.entries.contains_key(id)).collect();
        let more = Self::lock(tx, missing).await?;
        let any = !more.entries.is_empty();
        self.entries.extend(more.entries);
        Ok(any)
    }

    pub fn task(&self, id: &TaskId) -> Option<&Task> {
        self.entries.get(id).map(|entry| &entry.task)
    }

    pub fn existing(&self, id: &TaskId) -> Result<&Task, StoreError> {
        self.task(id).ok_or_else(|| StoreError::NotFound { what: "task", id: id.to_string() })
    }

    pub fn tasks(&self) -> impl Iterator<Item = &Task> {
        self.entries.values().map(|entry| &entry.task)
    }

    /// Edits a task and notes what kind of change it was.
    pub fn change(&mut self, id: &TaskId, kind: ChangeKind, edit: impl FnOnce(&mut Task)) {
        if let Some(entry) = self.entries.get_mut(id) {
            edit(&mut entry.task);
            entry.change = entry.change.max(Some(kind));
            entry.is_news |= kind.is_worth_a_turn();
        }
    }

    /// A job of the task went from one state to another.
    pub fn moved(&mut self, id: Option<&TaskId>, from: JobState, to: JobState) {
        let Some(id) = id else { return };
        let kind = match to {
            JobState::Queued => ChangeKind::JobQueued,
            JobState::Running => ChangeKind::JobStarted,
            JobState::AwaitingAuth | JobState::AwaitingInput => ChangeKind::JobParked,
            JobState::Completed | JobState::Failed | JobState::Cancelled => ChangeKind::JobFinished,
        };
        self.change(id, kind, |task| {
            task.counts.moved(from, to);
            if kind == ChangeKind::JobParked {
                // The revision this transaction will give the task.
                task.attention_revision = task.revision + 1;
            }
        });
    }

    /// Writes every changed task back, with its new revision, status and change record.
    pub async fn write(mut self, tx: &mut Tx<'_>, now: Timestamp) -> Result<Vec<Task>, StoreError> {
        for entry in self.entries.values_mut() {
            let Some(kind) = entry.change else { continue };
            let kind = advance(&mut entry.task, kind, entry.is_news, now)?;
            write_one(tx, &entry.task, kind, now).await?;
            if entry.task.finished_at != entry.finished_at {
                let end = params![&entry.task.id, entry.task.finished_at].to_vec();
                tx.post(&WRITE_END, &[end]).await?;
            }
            if let Some(event) = NoticeEvent::of_end(entry.status, &entry.task) {
                let key = format!("{event}:{}", entry.task.revision);
                notices::add(tx, &entry.task, event, &key, now).await?;
            }
        }
        for entry in self.entries.values() {
            let task = &entry.task;
            if task.is_awaited && task.status.is_over() && !entry.status.is_over() {
                dependencies::release(tx, &task.id, now).await?;
            }
        }
        Ok(self.entries.into_values().map(|entry| entry.task).collect())
    }
}

/// Gives the task its next revision and the status its jobs make of it.
fn advance(task: &mut Task, kind: ChangeKind, is_news: bool, now: Timestamp) -> Result<ChangeKind, StoreError> {
    task.revision += 1;
    task.updated_at = now;
    let mut kind = kind;
    if let Some(mut status) = status_from_jobs(task.kind, task.status, task.stop, &task.counts) {
        if status == TaskStatus::Finished && task.ends_when_done() {
            task.stop = Some(Stop { mode: StopMode::Graceful, reason: StopReason::Completed, requested_at: now });
            status = TaskStatus::Completed;
        }
        check_transition(task.status, status)?;
        task.status = status;
        if status.is_terminal() {
            task.held_by = None;
        }
        if status.is_worth_a_turn() {
            kind = kind.max(ChangeKind::TaskStatus);
        }
    }
    if task.status.is_terminal() && task.finished_at.is_none() {
        task.finished_at = Some(now);
    }
    if is_news || (kind == ChangeKind::TaskStatus && task.status.is_worth_a_turn()) {
        task.finished_revision = task.revision;
    }
    Ok(kind)
}

async fn write_one(tx: &mut Tx<'_>, task: &Task, kind: ChangeKind, now: Timestamp) -> Result<(), StoreError> {
    let counts = &task.counts;
    tx.post(
        &WRITE,
        &[params![
            &task.id,
            task.status.as_str(),
            task.status_message.as_ref(),
            task.held_by.as_ref(),
            task.revision,
            task.finished_revision,
            task.attention_revision,
            counts.queued,
            counts.running,
            counts.awaiting_auth,
            counts.awaiting_input,
            counts.completed,
            counts.failed,
            counts.cancelled,
            task.stop.map(|stop| stop.mode.as_str()),
            task.stop.map(|stop| stop.reason.as_str()),
            task.stop.map(|stop| stop.requested_at),
            task.updated_at,
        ]
        .to_vec()],
    )
    .await?;
    append_change(tx, Topic::task(&task.id), kind, task.revision, now).await
}

/// Records a change and has its listeners woken after the commit.
pub async fn append_change(
    tx: &mut Tx<'_>,
    topic: Topic,
    kind: ChangeKind,
    revision: i64,
    now: Timestamp,
) -> Result<(), StoreError> {
    let mark = tx.leave_mark();
    tx.post(&APPEND_CHANGE, &[params![topic.as_str(), kind.as_str(), revision, now, mark].to_vec()]).await?;
    tx.publish(topic);
    Ok(())
}

/// What a task that takes no more work answers. `None`: it does take work.
pub fn closed(task: &Task) -> Option<StoreError> {
    use matsu_core::error_code::ErrorCode;
    let (code, why) = match task.status {
        _ if task.stop.is_some() => (ErrorCode::TaskStopped, "was stopped"),
        status if status.is_terminal() => (ErrorCode::TaskStopped, "has ended"),
        TaskStatus::Blocked => (ErrorCode::TaskBlocked, "is blocked; a person must resume it"),
        TaskStatus::Paused => (ErrorCode::TaskPaused, "is paused; resume it first"),
        _ => return None,
    };
    Some(StoreError::Closed { code, message: format!("task {} {why}", task.id) })
}
