//! Finished tasks that grew old, and the memory of them.

use matsu_core::change::{ChangeKind, Topic};
use matsu_core::id::TaskId;
use matsu_core::limits::{SESSIONS_KEPT, SPENT_KEPT};
use matsu_core::ports::store::{ExpireTasks, Expired, MarkRead, StopTask, StoreError, TakeBackRead};
use matsu_core::task::{StopMode, StopReason};

use crate::sql::{Sql, Transition, Tx, params};
use crate::transitions::ledger::{Ledger, append_change};

/// Two looks instead of one with an alternative: each walks an index and stops at the first that is too young.
const LONG_READ: Sql = Sql::both(
    "SELECT id FROM tasks WHERE first_read_at IS NOT NULL AND kind = 'wait' AND first_read_at < $1 \
     ORDER BY first_read_at LIMIT $2",
);
const LONG_FINISHED: Sql = Sql::both(
    "SELECT id FROM tasks WHERE finished_at IS NOT NULL AND kind <> 'research' AND finished_at < $1 \
     ORDER BY finished_at LIMIT $2",
);
const OLD_WAITS: Sql = Sql::both(
    "SELECT id FROM tasks WHERE kind = 'wait' AND finished_at IS NULL AND created_at < $1 ORDER BY created_at LIMIT $2",
);
const BURY: Sql = Sql::both(
    "INSERT INTO tombstones (id, owner, status, expired_at) VALUES ($1, $2, $3, $4) ON CONFLICT (id) DO NOTHING",
);
const DELETE_OUTPUT: Sql = Sql::both("DELETE FROM run_output WHERE job_id IN (SELECT id FROM jobs WHERE task_id = $1)");
const DELETE_ANSWERS: Sql =
    Sql::both("DELETE FROM run_answers WHERE job_id IN (SELECT id FROM jobs WHERE task_id = $1)");
const FORGET_SESSIONS: Sql = Sql::both("DELETE FROM agent_sessions WHERE updated_at < $1");
const FORGET_SPENT: Sql = Sql::both("DELETE FROM spent WHERE at < $1");
const DELETE_JOBS: Sql = Sql::both("DELETE FROM jobs WHERE task_id = $1");
const DELETE_BUDGETS: Sql = Sql::both("DELETE FROM budgets WHERE task_id = $1");
const DELETE_DEPENDENCIES: Sql = Sql::both("DELETE FROM task_dependencies WHERE task_id = $1");
const DELETE_TASK: Sql = Sql::both("DELETE FROM tasks WHERE id = $1");
const FORGET: Sql = Sql::both(
    "DELETE FROM tombstones WHERE id IN \
     (SELECT id FROM tombstones WHERE expired_at < $1 ORDER BY expired_at LIMIT $2)",
);
const MARK_READ: Sql = Sql::each(
    "UPDATE tasks SET first_read_at = $2 WHERE id = $1 \
     AND first_read_at IS NULL AND finished_at IS NOT NULL",
    // In the order in which everybody locks tasks.
    "UPDATE tasks SET first_read_at = $2 WHERE id IN (SELECT id FROM tasks WHERE id = ANY($1) \
     AND first_read_at IS NULL AND finished_at IS NOT NULL ORDER BY id FOR UPDATE)",
);

const TAKE_BACK_READ: Sql = Sql::each(
    "UPDATE tasks SET first_read_at = NULL WHERE id = $1 AND first_read_at = $2",
    "UPDATE tasks SET first_read_at = NULL WHERE id IN (SELECT id FROM tasks WHERE id = ANY($1) \
     AND first_read_at = $2 ORDER BY id FOR UPDATE)",
);

impl Transition for ExpireTasks {
    async fn run(&self, tx: &mut Tx<'_>) -> Result<Expired, StoreError> {
        let rule = &self.rule;
        for row in tx.rows(&OLD_WAITS, params![rule.waits_before, self.rows_max]).await? {
            let task_id = TaskId::from_text(row.only_text()?);
            let (mode, reason, now) = (StopMode::Immediate, StopReason::Completed, rule.now);
            StopTask { task_id, mode, reason, now }.run(tx).await?;
        }
        let mut rows = tx.rows(&LONG_READ, params![rule.waits_read_before, self.rows_max]).await?;
        rows.extend(tx.rows(&LONG_FINISHED, params![rule.finished_before, self.rows_max]).await?);
        let ids = rows.iter().map(|row| row.only_text().map(TaskId::from_text)).collect::<Result<Vec<_>, _>>()?;
        let ledger = Ledger::lock(tx, ids).await?;
        let mut expired = Expired::default();
        for task in ledger.tasks() {
            tx.run(&BURY, params![&task.id, &task.owner, task.status.as_str(), rule.now]).await?;
            tx.run(&DELETE_OUTPUT, params![&task.id]).await?;
            tx.run(&DELETE_ANSWERS, params![&task.id]).await?;
            tx.run(&DELETE_JOBS, params![&task.id]).await?;
            tx.run(&DELETE_BUDGETS, params![&task.id]).await?;
            tx.run(&DELETE_DEPENDENCIES, params![&task.id]).await?;
            tx.run(&DELETE_TASK, params![&task.id]).await?;
            let revision = task.revision + 1;
            append_change(tx, Topic::task(&task.id), ChangeKind::TaskExpired, revision, rule.now).await?;
            expired.tasks.push(task.id.clone());
        }
        tx.run(&FORGET_SESSIONS, params![rule.now.minus(SESSIONS_KEPT)]).await?;
        tx.run(&FORGET_SPENT, params![rule.now.minus(SPENT_KEPT)]).await?;
        expired.tombstones = tx.run(&FORGET, params![rule.tombstones_before, self.rows_max]).await?;
        Ok(expired)
    }
}

impl Transition for MarkRead {
    fn is_quick(&self) -> bool {
        true
    }

    async fn run(&self, tx: &mut Tx<'_>) -> Result<(), StoreError> {
        let ids: Vec<&str> = self.ids.iter().map(TaskId::as_str).collect();
        tx.run_of(&MARK_READ, &ids, params![self.now]).await?;
        Ok(())
    }
}

impl Transition for TakeBackRead {
    fn is_quick(&self) -> bool {
        true
    }

    async fn run(&self, tx: &mut Tx<'_>) -> Result<(), StoreError> {
        let ids: Vec<&str> = self.ids.iter().map(TaskId::as_str).collect();
        tx.run_of(&TAKE_BACK_READ, &ids, params![self.read_at]).await?;
        Ok(())
    }
}
