//! The auth queue: reading it, settling its items, and putting back the searches that waited for them.

use std::collections::BTreeMap;

use matsu_core::change::Topic;
use matsu_core::clock::Timestamp;
use matsu_core::id::{AuthItemId, JobId, TaskId};
use matsu_core::job::Priority;
use matsu_core::ports::store::{
    AuthItemsOf, AuthOutcome, AuthTarget, ExpireAuth, ReadAuthItems, RequeueParked, ResolveAuth, ResolvedAuth,
    StoreError,
};
use matsu_core::principal::Principal;
use matsu_core::research::auth::{AuthItem, AuthStatus, AuthType, Blocked};

use crate::sql::{Row, Sql, Transition, Tx, internal, params};
use crate::transitions::hold::hold;

macro_rules! item_columns {
    () => {
        "i.id, i.owner, i.url, i.domain, i.auth_type, i.priority, i.status, i.created_at, i.expires_at"
    };
}
/// An item that no search waits for any more is not shown to people.
const ITEMS: Sql = Sql::both(concat!(
    "SELECT ",
    item_columns!(),
    " FROM auth_items i WHERE i.owner = $1 AND i.status = 'pending' AND EXISTS (SELECT 1 FROM auth_blocked b \
     JOIN jobs j ON j.id = b.job_id WHERE b.item_id = i.id AND j.finished_at IS NULL AND ($2 = '' OR b.task_id = $2)) \
     AND ($3 = 0 OR i.priority = $3) ORDER BY i.priority, i.seq LIMIT $4"
));
const AUTH_ITEMS_OF: Sql = Sql::both(concat!(
    "SELECT ",
    item_columns!(),
    " FROM auth_items i JOIN auth_blocked b ON b.item_id = i.id WHERE b.job_id = $1 ORDER BY i.seq"
));
const BLOCKED: Sql = Sql::each(
    "SELECT item_id, task_id, job_id FROM auth_blocked WHERE item_id = $1 ORDER BY job_id",
    "SELECT item_id, task_id, job_id FROM auth_blocked WHERE item_id = ANY($1) ORDER BY job_id",
);
const LOCK_ITEM: Sql = Sql::each(
    "SELECT id FROM auth_items WHERE owner = $1 AND status = 'pending' AND ($2 = id OR $3 = domain) ORDER BY id",
    "SELECT id FROM auth_items WHERE owner = $1 AND status = 'pending' AND ($2 = id OR $3 = domain) ORDER BY id \
     FOR UPDATE",
);
const EXPIRED: Sql = Sql::each(
    "SELECT id FROM auth_items WHERE status = 'pending' AND expires_at <= $1 ORDER BY id LIMIT 500",
    "SELECT id FROM auth_items WHERE status = 'pending' AND expires_at <= $1 ORDER BY id LIMIT 500 FOR UPDATE",
);
const SETTLE: Sql = Sql::each(
    "UPDATE auth_items SET status = $2, resolved_at = $3 WHERE id = $1",
    "UPDATE auth_items SET status = $2, resolved_at = $3 WHERE id = ANY($1)",
);
const BLOCKED_BY: Sql = Sql::each(
    "SELECT job_id FROM auth_blocked WHERE item_id = $1",
    "SELECT job_id FROM auth_blocked WHERE item_id = ANY($1)",
);
const PENDING_ITEMS: Sql = Sql::both(
    "SELECT count(*) FROM auth_blocked b JOIN auth_items i ON i.id = b.item_id \
     WHERE b.job_id = $1 AND i.status = 'pending'",
);
macro_rules! forgotten {
    ($index:expr) => {
        concat!(
            "SELECT id FROM jobs WHERE state = 'awaiting_auth'",
            $index,
            " AND NOT EXISTS (SELECT 1 FROM auth_blocked b JOIN auth_items i ON i.id = b.item_id \
             WHERE b.job_id = jobs.id AND i.status = 'pending') LIMIT 500"
        )
    };
}
/// Parked although every item is settled: the login was done in the moment between its last look and its parking.
const FORGOTTEN: Sql =
    Sql::each(forgotten!(""), forgotten!(concat!(" AND hold = ", hold!(Login), " AND finished_at IS NULL")));

fn item(row: &Row) -> Result<AuthItem, StoreError> {
    let mut c = row.columns();
    Ok(AuthItem {
        id: AuthItemId::from_text(c.text()?),
        owner: Principal::from_text(c.text()?),
        url: c.text()?,
        domain: c.text()?,
        auth_type: c.word(AuthType::parse)?,
        priority: Priority::from_rank(c.int()?).ok_or_else(|| internal("an unknown priority"))?,
        status: c.word(AuthStatus::parse)?,
        created_at: c.time()?,
        expires_at: c.time()?,
        blocked: Vec::new(),
    })
}

async fn with_blocked(tx: &mut Tx<'_>, rows: &[Row]) -> Result<Vec<AuthItem>, StoreError> {
    let mut items = rows.iter().map(item).collect::<Result<Vec<_>, _>>()?;
    let ids: Vec<String> = items.iter().map(|item| item.id.to_string()).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    let mut blocked: BTreeMap<String, Vec<Blocked>> = BTreeMap::new();
    for row in tx.rows_of(&BLOCKED, &ids, params![]).await? {
        let mut c = row.columns();
        let id = c.text()?;
        let (task_id, search_id) = (TaskId::from_text(c.text()?), JobId::from_text(c.text()?));
        blocked.entry(id).or_default().push(Blocked { task_id, search_id });
    }
    for item in &mut items {
        item.blocked = blocked.remove(item.id.as_str()).unwrap_or_default();
    }
    Ok(items)
}

impl Transition for ReadAuthItems {
    const READS: bool = true;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Vec<AuthItem>, StoreError> {
        let filter = &self.0;
        let task = filter.task_id.as_ref().map_or("", TaskId::as_str);
        let priority = filter.priority.map_or(0, Priority::rank);
        let rows = tx.rows(&ITEMS, params![&filter.owner, task, priority, filter.rows_max]).await?;
        with_blocked(tx, &rows).await
    }
}

impl Transition for AuthItemsOf {
    const READS: bool = true;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Vec<AuthItem>, StoreError> {
        let rows = tx.rows(&AUTH_ITEMS_OF, params![&self.0]).await?;
        with_blocked(tx, &rows).await
    }
}

impl Transition for ResolveAuth {
    async fn run(&self, tx: &mut Tx<'_>) -> Result<ResolvedAuth, StoreError> {
        let (id, domain) = match &self.target {
            AuthTarget::Item(id) => (id.as_str(), ""),
            AuthTarget::Domain(domain) => ("", domain.as_str()),
        };
        // The items first: a search that meets the same login meanwhile waits here, and then raises a new item.
        let rows = tx.rows(&LOCK_ITEM, params![&self.owner, id, domain]).await?;
        let items = rows.iter().map(Row::only_text).collect::<Result<Vec<_>, _>>()?;
        if items.is_empty() {
            let wanted = if id.is_empty() { domain } else { id };
            return Err(StoreError::NotFound { what: "auth item", id: wanted.to_owned() });
        }
        let status = match self.outcome {
            AuthOutcome::Opened => AuthStatus::Completed,
            AuthOutcome::Skipped => AuthStatus::Skipped,
        };
        let requeued = settle(tx, &items, status, self.now).await?;
        Ok(ResolvedAuth { items: items.into_iter().map(AuthItemId::from_text).collect(), requeued })
    }
}

impl Transition for ExpireAuth {
    async fn run(&self, tx: &mut Tx<'_>) -> Result<u64, StoreError> {
        let rows = tx.rows(&EXPIRED, params![self.0]).await?;
        let items = rows.iter().map(Row::only_text).collect::<Result<Vec<_>, _>>()?;
        if !items.is_empty() {
            settle(tx, &items, AuthStatus::Expired, self.0).await?;
        }
        let rows = tx.rows(&FORGOTTEN, params![]).await?;
        let jobs = rows.iter().map(|row| row.only_text().map(JobId::from_text)).collect::<Result<Vec<_>, _>>()?;
        if !jobs.is_empty() {
            RequeueParked { jobs, now: self.0 }.run(tx).await?;
        }
        u64::try_from(items.len()).map_err(internal)
    }
}

/// Writes the items' end down and puts their searches back: at once where the login is done, else once no other login of
/// theirs is left to be opened.
async fn settle(
    tx: &mut Tx<'_>,
    items: &[String],
    status: AuthStatus,
    now: Timestamp,
) -> Result<Vec<JobId>, StoreError> {
    let ids: Vec<&str> = items.iter().map(String::as_str).collect();
    let blocked = tx.rows_of(&BLOCKED_BY, &ids, params![]).await?;
    let mut jobs = blocked.iter().map(|row| row.only_text().map(JobId::from_text)).collect::<Result<Vec<_>, _>>()?;
    tx.run_of(&SETTLE, &ids, params![status.as_str(), now]).await?;
    jobs.sort();
    jobs.dedup();
    if status != AuthStatus::Completed {
        let mut free = Vec::new();
        for job in jobs {
            let pending = tx.row(&PENDING_ITEMS, params![&job]).await?.map_or(Ok(0), |row| row.only_int())?;
            if pending == 0 {
                free.push(job);
            }
        }
        jobs = free;
    }
    tx.publish(Topic::auth());
    RequeueParked { jobs, now }.run(tx).await
}
