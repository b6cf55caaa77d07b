//! The record of changes, and what grows old with it.

use matsu_core::change::{Change, ChangeCursor, ChangeKind, Topic};
use matsu_core::clock::Timestamp;
use matsu_core::ports::store::{ChangeBatch, StoreError};

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
/// Changes lie in the order of their age, so the walk to the first young one is as long as what is pruned. The newest
/// stays, whatever its age.
const PRUNE_CHANGES: Sql = Sql::each(
    "DELETE FROM changes WHERE seq < coalesce((SELECT seq FROM changes WHERE at >= $1 ORDER BY seq LIMIT 1), \
     (SELECT max(seq) FROM changes))",
    "DELETE FROM changes WHERE xid < coalesce((SELECT xid FROM changes WHERE at >= $1 ORDER BY xid, seq LIMIT 1), \
     (SELECT max(xid) FROM changes))",
);
const PRUNE_KEYS: Sql = Sql::both("DELETE FROM idempotency WHERE created_at < $1");
const PRUNE_RATES: Sql = Sql::both("DELETE FROM rates WHERE next_at < $1");

fn cursor(c: &mut Columns<'_>) -> Result<ChangeCursor, StoreError> {
    Ok(ChangeCursor { transaction: c.int()?, row: c.int()? })
}

pub struct ChangesSince {
    pub cursor: ChangeCursor,
    pub rows_max: u32,
}

impl Transition for ChangesSince {
    type Output = ChangeBatch;

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

pub struct CursorNow;

impl Transition for CursorNow {
    type Output = ChangeCursor;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<ChangeCursor, StoreError> {
        let row = tx.row(&NOW, params![]).await?;
        cursor(&mut row.ok_or_else(|| crate::sql::internal("no cursor"))?.columns())
    }
}

pub struct Prune {
    pub changes_before: Timestamp,
    pub keys_before: Timestamp,
}

impl Transition for Prune {
    type Output = u64;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<u64, StoreError> {
        let changes = tx.run(&PRUNE_CHANGES, params![self.changes_before]).await?;
        let keys = tx.run(&PRUNE_KEYS, params![self.keys_before]).await?;
        let rates = tx.run(&PRUNE_RATES, params![self.changes_before]).await?;
        Ok(changes + keys + rates)
    }
}
