//! Removing evidence: a task's own, and what no task reaches any more.

use matsu_core::change::ChangeKind;
use matsu_core::limits::ORPHANS_LISTED_MAX;
use matsu_core::ports::store::{ClearOrphans, ClearTask, Cleared, Orphaned, Removal, StoreError};

use crate::sql::{Sql, Transition, Tx, params};
use crate::transitions::ledger::Ledger;

const CLEAR_EDGES: Sql = Sql::both("DELETE FROM edges WHERE claim_id IN (SELECT id FROM claims WHERE task_id = $1)");
const CLEAR_CLAIMS: Sql = Sql::both("DELETE FROM claims WHERE task_id = $1");
const CLEAR_HITS: Sql = Sql::both("DELETE FROM hits WHERE task_id = $1");
const CLEAR_SEARCHES: Sql = Sql::both("DELETE FROM searches WHERE task_id = $1");
const CLEAR_REACH: Sql = Sql::both("DELETE FROM task_pages WHERE task_id = $1");
/// A checkpoint names rows that are removed now.
const CLEAR_CHECKPOINTS: Sql =
    Sql::both("UPDATE jobs SET checkpoint_json = NULL WHERE task_id = $1 AND checkpoint_json IS NOT NULL");

macro_rules! loose_edges {
    () => {
        "NOT EXISTS (SELECT 1 FROM claims c WHERE c.id = edges.claim_id) \
         OR NOT EXISTS (SELECT 1 FROM fragments f WHERE f.id = edges.fragment_id)"
    };
}
/// No claim stands in it, no edge leads to it, and no task reaches its page as it is.
macro_rules! loose_fragments {
    () => {
        "NOT EXISTS (SELECT 1 FROM claims c WHERE c.fragment_id = fragments.id) \
         AND NOT EXISTS (SELECT 1 FROM edges e JOIN claims c ON c.id = e.claim_id WHERE e.fragment_id = fragments.id) \
         AND NOT EXISTS (SELECT 1 FROM task_pages t JOIN pages p ON p.id = t.page_id WHERE \
         t.page_id = fragments.page_id AND p.content_hash = fragments.content_hash)"
    };
}
const COUNT_EDGES: Sql = Sql::both(concat!("SELECT count(*) FROM edges WHERE ", loose_edges!()));
const COUNT_FRAGMENTS: Sql = Sql::both(concat!("SELECT count(*) FROM fragments WHERE ", loose_fragments!()));
const DROP_EDGES: Sql = Sql::both(concat!("DELETE FROM edges WHERE ", loose_edges!()));
const DROP_FRAGMENTS: Sql = Sql::both(concat!("DELETE FROM fragments WHERE ", loose_fragments!()));
/// A page is removed with the last of its fragments that a claim or an edge needs. When fragments are only counted,
/// they are still in the table.
macro_rules! loose_pages {
    () => {
        "NOT EXISTS (SELECT 1 FROM task_pages t WHERE t.page_id = pages.id) \
         AND NOT EXISTS (SELECT 1 FROM fragments f WHERE f.page_id = pages.id AND (\
         EXISTS (SELECT 1 FROM claims c WHERE c.fragment_id = f.id) \
         OR EXISTS (SELECT 1 FROM edges e JOIN claims c ON c.id = e.claim_id WHERE e.fragment_id = f.id)))"
    };
}
const COUNT_PAGES: Sql = Sql::both(concat!("SELECT count(*) FROM pages WHERE ", loose_pages!()));
const LIST_EDGES: Sql = Sql::both(concat!("SELECT id FROM edges WHERE ", loose_edges!(), " ORDER BY id LIMIT $1"));
const LIST_FRAGMENTS: Sql =
    Sql::both(concat!("SELECT id FROM fragments WHERE ", loose_fragments!(), " ORDER BY id LIMIT $1"));
const LIST_PAGES: Sql = Sql::both(concat!("SELECT url FROM pages WHERE ", loose_pages!(), " ORDER BY url LIMIT $1"));
const DROP_PAGES: Sql = Sql::both(
    "DELETE FROM pages WHERE NOT EXISTS (SELECT 1 FROM task_pages t WHERE t.page_id = pages.id) \
     AND NOT EXISTS (SELECT 1 FROM fragments f WHERE f.page_id = pages.id)",
);

impl Transition for ClearTask {
    async fn run(&self, tx: &mut Tx<'_>) -> Result<Cleared, StoreError> {
        let mut ledger = Ledger::lock(tx, [self.task_id.clone()]).await?;
        ledger.existing(&self.task_id)?;
        let task = params![&self.task_id];
        let cleared = Cleared {
            edges: tx.run(&CLEAR_EDGES, task).await?,
            claims: tx.run(&CLEAR_CLAIMS, task).await?,
            hits: tx.run(&CLEAR_HITS, task).await?,
            ..Cleared::default()
        };
        tx.run(&CLEAR_SEARCHES, task).await?;
        tx.run(&CLEAR_REACH, task).await?;
        tx.run(&CLEAR_CHECKPOINTS, task).await?;
        ledger.change(&self.task_id, ChangeKind::Progress, |_| {});
        ledger.write(tx, self.now).await?;
        Ok(cleared)
    }
}

impl Transition for ClearOrphans {
    async fn run(&self, tx: &mut Tx<'_>) -> Result<Cleared, StoreError> {
        // Before anything goes: what a dry run lists is what is removed.
        let listed = Orphaned {
            edges: list(tx, &LIST_EDGES).await?,
            fragments: list(tx, &LIST_FRAGMENTS).await?,
            pages: list(tx, &LIST_PAGES).await?,
        };
        let cleared = match self.0 {
            Removal::DryRun => Cleared {
                edges: count(tx, &COUNT_EDGES).await?,
                fragments: count(tx, &COUNT_FRAGMENTS).await?,
                pages: count(tx, &COUNT_PAGES).await?,
                ..Cleared::default()
            },
            // From the leaves to the root: what an edge held is free once the edge is gone.
            Removal::Remove => Cleared {
                edges: tx.run(&DROP_EDGES, params![]).await?,
                fragments: tx.run(&DROP_FRAGMENTS, params![]).await?,
                pages: tx.run(&DROP_PAGES, params![]).await?,
                ..Cleared::default()
            },
        };
        Ok(Cleared { listed, ..cleared })
    }
}

async fn list(tx: &mut Tx<'_>, sql: &Sql) -> Result<Vec<String>, StoreError> {
    let rows = tx.rows(sql, params![ORPHANS_LISTED_MAX]).await?;
    rows.iter().map(|row| row.columns().text()).collect()
}

async fn count(tx: &mut Tx<'_>, sql: &Sql) -> Result<u64, StoreError> {
    let row = tx.row(sql, params![]).await?;
    u64::try_from(row.map_or(Ok(0), |row| row.only_int())?).map_err(crate::sql::internal)
}
