//! A new task with its first jobs, at most once per idempotency key.

use matsu_core::change::{ChangeKind, Topic};
use matsu_core::clock::Timestamp;
use matsu_core::id::{AgentId, JobId, ProjectId, TaskId};
use matsu_core::limits::{CHILDREN_MAX, DEPTH_MAX};
use matsu_core::ports::store::{InsertedTask, StoreError};
use matsu_core::task::{IdempotencyKey, JobCounts, NewTask, Task, TaskKind, TaskStatus};

use crate::sql::{QUICK_MAX, Row, Sql, Transition, Tx, params};
use crate::transitions::dependencies;
use crate::transitions::jobs::insert_jobs;
use crate::transitions::ledger::{Ledger, append_change, closed};

const KNOWN_KEY: Sql = Sql::both(
    "SELECT body_hash, task_id, created_at FROM idempotency WHERE principal = $1 AND tool = $2 AND name = $3",
);
const BURIED: Sql = Sql::both("SELECT status, expired_at FROM tombstones WHERE id = $1");
const REMEMBER_KEY: Sql = Sql::both(
    "INSERT INTO idempotency (principal, tool, name, body_hash, task_id, created_at) \
     VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (principal, tool, name) DO NOTHING",
);
const FORGET_KEY: Sql =
    Sql::both("DELETE FROM idempotency WHERE principal = $1 AND tool = $2 AND name = $3 AND task_id = $4");
/// Those of a merge are not counted: it starts one check for each change, and is bounded by its own list.
const CHILDREN: Sql = Sql::both(
    "SELECT count(*) FROM tasks WHERE parent_id = $1 \
     AND NOT EXISTS (SELECT 1 FROM jobs WHERE task_id = $1 AND kind = 'merge')",
);
const INSERT: Sql = Sql::both(
    "INSERT INTO tasks (id, kind, owner, project_id, title, status, revision, finished_revision, \
     attention_revision, config_json, assignee, parent_id, depth, n_queued, n_running, n_awaiting_auth, \
     n_awaiting_input, n_completed, n_failed, n_cancelled, created_at, updated_at) \
     VALUES ($1, $2, $3, $4, $5, $6, 1, 0, 0, $7, $8, $9, $10, $11, 0, 0, 0, 0, 0, 0, $12, $12) RETURNING seq",
);
const INSERT_BUDGET: Sql = Sql::both("INSERT INTO budgets (task_id, unit, amount_max, used) VALUES ($1, $2, $3, $4)");
/// Later jobs of the task carry a later time.
const FIRST_JOBS_OF: Sql = Sql::both("SELECT id FROM jobs WHERE task_id = $1 AND queued_at = $2 ORDER BY seq");

impl Transition for NewTask {
    fn is_quick(&self) -> bool {
        self.jobs.len() <= QUICK_MAX
    }

    async fn run(&self, tx: &mut Tx<'_>) -> Result<InsertedTask, StoreError> {
        if let Some(key) = &self.idempotency
            && let Some(existing) = claim_key(tx, key, self).await?
        {
            return Ok(existing);
        }
        let waits = dependencies::insert(tx, self).await?;
        let depth = match &self.parent_id {
            None => 0,
            Some(parent) => depth_below(tx, parent).await?,
        };
        let queued = i64::try_from(self.jobs.len()).unwrap_or(i64::MAX);
        let row = tx
            .row(
                &INSERT,
                params![
                    &self.id,
                    self.kind.as_str(),
                    &self.owner,
                    self.project_id.as_ref(),
                    &self.title,
                    self.initial_status().as_str(),
                    &self.config_json,
                    self.assignee.as_ref(),
                    self.parent_id.as_ref(),
                    depth,
                    queued,
                    self.created_at,
                ],
            )
            .await?;
        let seq = row.ok_or_else(|| crate::sql::internal("an inserted task has no number"))?.only_int()?;
        for line in &self.budget {
            tx.run(&INSERT_BUDGET, params![&self.id, line.unit.as_str(), line.limit, line.used]).await?;
        }
        insert_jobs(tx, Some(&self.id), &self.jobs, self.created_at).await?;
        if waits {
            dependencies::hold_jobs(tx, &self.id).await?;
        }
        append_change(tx, Topic::task(&self.id), ChangeKind::TaskCreated, 1, self.created_at).await?;
        if let (Some(agent), Some(project)) = (&self.assignee, &self.project_id) {
            // The agent that it is assigned to may be waiting for work.
            let (agent, project) = (AgentId::from_text(agent.clone()), ProjectId::from_text(project.clone()));
            tx.publish(Topic::agent(&agent, &project));
        }
        let job_ids = self.jobs.iter().map(|job| job.id.clone()).collect();
        Ok(InsertedTask { task: self.stored(seq, depth, queued), job_ids, existed: false })
    }
}

/// The content of a fresh row, without reading it back.
trait Stored {
    fn initial_status(&self) -> TaskStatus;
    fn stored(&self, seq: i64, depth: u32, queued: i64) -> Task;
}

impl Stored for NewTask {
    fn initial_status(&self) -> TaskStatus {
        match self.kind {
            // A wait has no jobs: it is under way from its first moment.
            TaskKind::Wait => TaskStatus::Running,
            TaskKind::Research | TaskKind::Agent => TaskStatus::Queued,
        }
    }

    fn stored(&self, seq: i64, depth: u32, queued: i64) -> Task {
        Task {
            id: self.id.clone(),
            kind: self.kind,
            owner: self.owner.clone(),
            project_id: self.project_id.clone(),
            title: self.title.clone(),
            status: self.initial_status(),
            status_message: None,
            held_by: None,
            revision: 1,
            finished_revision: 0,
            attention_revision: 0,
            config_json: self.config_json.clone(),
            assignee: self.assignee.clone(),
            parent_id: self.parent_id.clone(),
            depth,
            counts: JobCounts { queued, ..JobCounts::default() },
            stop: None,
            created_at: self.created_at,
            updated_at: self.created_at,
            finished_at: None,
            first_read_at: None,
            reviews: Vec::new(),
            is_awaited: false,
            seq,
        }
    }
}

/// `Some`: the key was used before, and this is what it made.
async fn claim_key(tx: &mut Tx<'_>, key: &IdempotencyKey, new: &NewTask) -> Result<Option<InsertedTask>, StoreError> {
    loop {
        // Insert first and look afterwards: of two calls at the same time the second waits here for the first's
        // commit.
        let remember = params![&key.principal, &key.tool, &key.key, &key.body_hash, &new.id, new.created_at];
        if tx.run(&REMEMBER_KEY, remember).await? > 0 {
            return Ok(None);
        }
        let row = tx.row(&KNOWN_KEY, params![&key.principal, &key.tool, &key.key]).await?;
        // Pruned in this very moment: it is free again.
        let Some(row) = row else { continue };
        let mut columns = row.columns();
        if columns.text()? != key.body_hash {
            return Err(StoreError::Conflict(key.key.clone()));
        }
        let id = TaskId::from_text(columns.text()?);
        let first_used_at = columns.time()?;
        let ledger = Ledger::lock(tx, [id.clone()]).await?;
        if let Some(task) = ledger.task(&id).cloned() {
            let rows = tx.rows(&FIRST_JOBS_OF, params![&id, task.created_at]).await?;
            let job_ids = rows.iter().map(|row| row.only_text().map(JobId::from_text)).collect::<Result<_, _>>()?;
            return Ok(Some(InsertedTask { task, job_ids, existed: true }));
        }
        // It has expired before its key: the work was done once, and is not done again because the task was removed.
        if let Some(row) = tx.row(&BURIED, params![&id]).await? {
            let task = remembered(&row, id, new, first_used_at)?;
            return Ok(Some(InsertedTask { task, job_ids: Vec::new(), existed: true }));
        }
        // Nothing is left of it: the key means nothing any more. Another call may see the same; one of them is first.
        tx.run(&FORGET_KEY, params![&key.principal, &key.tool, &key.key, &id]).await?;
    }
}

/// An expired task as far as it is known: the body is the same as then, and the tombstone has the end.
fn remembered(row: &Row, id: TaskId, new: &NewTask, created_at: Timestamp) -> Result<Task, StoreError> {
    let mut c = row.columns();
    let (status, expired_at) = (c.word(TaskStatus::parse)?, c.time()?);
    Ok(Task {
        id,
        status,
        finished_revision: 1,
        created_at,
        updated_at: expired_at,
        finished_at: Some(expired_at),
        first_read_at: Some(expired_at),
        reviews: Vec::new(),
        ..new.stored(0, 0, 0)
    })
}

/// One level below the parent, if the parent may have another child.
async fn depth_below(tx: &mut Tx<'_>, parent: &TaskId) -> Result<u32, StoreError> {
    let ledger = Ledger::lock(tx, [parent.clone()]).await?;
    let task = ledger.existing(parent)?;
    if let Some(refusal) = closed(task) {
        return Err(refusal);
    }
    if task.depth + 1 > DEPTH_MAX {
        return Err(StoreError::LimitExceeded(format!("tasks may start tasks at most {DEPTH_MAX} deep")));
    }
    let row = tx.row(&CHILDREN, params![parent]).await?;
    if row.map_or(Ok(0), |row| row.only_int())? >= i64::from(CHILDREN_MAX) {
        return Err(StoreError::LimitExceeded(format!("a task may start at most {CHILDREN_MAX} tasks")));
    }
    Ok(task.depth + 1)
}
