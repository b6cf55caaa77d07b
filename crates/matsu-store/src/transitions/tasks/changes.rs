//! The record of changes, and what grows old with it.

use matsu_core::change::{Change, ChangeCursor, ChangeKind, Topic};
use matsu_core::ports::store::{ChangeBatch, ChangesSince, PruneRule, Pruned, ReadChangeCursor, Request, StoreError};

use crate::sql::{Columns, Sql, Transition, Tx, params};

/// SQLite has one writer, so a greater number was committed later. On PostgreSQL transactions commit out of order:
/// rows are read only up to the oldest transaction that may still commit, in the order of transactions.
const SINCE: Sql = Sql::each(
    "SELECT 0, seq, topic, kind, revision, at FROM changes WHERE $1 >= 0 AND seq > $2 ORDER BY seq LIMIT $3",
    "SELECT xid, seq, topic, kind, revision, at FROM changes WHERE (xid, seq) > ($1, $2) \
     AND xid < pg_snapshot_xmin(pg_current_snapshot())::text::bigint ORDER BY xid, seq LIMIT $3",
);
const NOW: Sql = Sql::each(
    "SELECT 0, coalesce(max(seq), 0) FROM changes",
    "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint - 1, 9223372036854775807::bigint",
);
/// Changes lie in the order of their age, so the oldest are the first. The newest stays, whatever its age.
const PRUNE_CHANGES: Sql = Sql::each(
    "DELETE FROM changes WHERE seq IN (SELECT seq FROM (SELECT seq, at FROM changes ORDER BY seq LIMIT $2) \
     WHERE at < $1) AND seq < (SELECT max(seq) FROM changes)",
    "DELETE FROM changes WHERE (xid, seq) IN (SELECT xid, seq FROM (SELECT xid, seq, at FROM changes \
     ORDER BY xid, seq LIMIT $2) AS oldest WHERE at < $1) AND xid < (SELECT max(xid) FROM changes)",
);
const PRUNE_KEYS: Sql = Sql::both(
    "DELETE FROM idempotency WHERE (principal, tool, name) IN (SELECT principal, tool, name FROM idempotency \
     WHERE created_at < $1 ORDER BY created_at LIMIT $2)",
);
const PRUNE_RATES: Sql =
    Sql::both("DELETE FROM rates WHERE name IN (SELECT name FROM rates WHERE next_at < $1 LIMIT $2)");
const PRUNE_SYSTEM_OUTPUT: Sql = Sql::both(
    "DELETE FROM run_output WHERE job_id IN (SELECT id FROM jobs WHERE task_id IS NULL AND finished_at IS NOT NULL \
     AND finished_at < $1 ORDER BY finished_at LIMIT $2)",
);
const PRUNE_SYSTEM_JOBS: Sql = Sql::both(
    "DELETE FROM jobs WHERE seq IN (SELECT seq FROM jobs WHERE task_id IS NULL AND finished_at IS NOT NULL \
     AND finished_at < $1 ORDER BY finished_at LIMIT $2)",
);
const PRUNE_TOKENS: Sql = Sql::both(
    "DELETE FROM tokens WHERE seq IN (SELECT seq FROM tokens WHERE revoked_at IS NOT NULL AND revoked_at < $1 \
     ORDER BY revoked_at LIMIT $2)",
);

fn cursor(c: &mut Columns<'_>) -> Result<ChangeCursor, StoreError> {
    Ok(ChangeCursor { transaction: c.int()?, row: c.int()? })
}

impl Transition for ChangesSince {
    const READS: bool = true;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<ChangeBatch, StoreError> {
        let rows = tx.rows(&SINCE, params![self.cursor.transaction, self.cursor.row, self.rows_max]).await?;
        let mut batch = ChangeBatch { changes: Vec::with_capacity(rows.len()), cursor: self.cursor };
        for row in &rows {
            let mut c = row.columns();
            batch.cursor = cursor(&mut c)?;
            batch.changes.push(Change {
                cursor: batch.cursor,
                topic: Topic::from_text(c.text()?),
                kind: c.word(ChangeKind::parse)?,
                revision: c.int()?,
                at: c.time()?,
            });
        }
        Ok(batch)
    }
}

impl Transition for ReadChangeCursor {
    const READS: bool = true;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<ChangeCursor, StoreError> {
        let row = tx.row(&NOW, params![]).await?;
        cursor(&mut row.ok_or_else(|| crate::sql::internal("no cursor"))?.columns())
    }
}

pub struct Prune {
    pub rule: PruneRule,
    pub rows_max: u32,
}

impl Request for Prune {
    type Output = Pruned;
}

impl Transition for Prune {
    async fn run(&self, tx: &mut Tx<'_>) -> Result<Pruned, StoreError> {
        let rule = &self.rule;
        let mut pruned = Pruned { rows: 0, has_more: false };
        for (sql, before) in [
            (&PRUNE_CHANGES, rule.changes_before),
            (&PRUNE_KEYS, rule.keys_before),
            (&PRUNE_RATES, rule.changes_before),
            // Before the jobs it belongs to.
            (&PRUNE_SYSTEM_OUTPUT, rule.system_jobs_before),
            (&PRUNE_SYSTEM_JOBS, rule.system_jobs_before),
            (&PRUNE_TOKENS, rule.revoked_before),
        ] {
            let rows = tx.run(sql, params![before, self.rows_max]).await?;
            pruned.rows += rows;
            pruned.has_more |= rows >= u64::from(self.rows_max);
        }
        Ok(pruned)
    }
}
