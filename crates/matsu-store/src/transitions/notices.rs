//! Notices to people are written beside the change that they report.

use matsu_core::change::Topic;
use matsu_core::clock::Timestamp;
use matsu_core::id::NoticeId;
use matsu_core::limits::NOTICE_QUIET;
use matsu_core::notify::NoticeEvent;
use matsu_core::ports::store::StoreError;
use matsu_core::task::Task;

use crate::sql::{Sql, Tx, params};

/// One row for each channel of the owner that wants the event.
const ADD: Sql = Sql::both(
    "INSERT INTO outbox (id, channel, event, task_id, key, due_at, created_at) \
     SELECT CAST($1 AS TEXT) || '.' || name, name, CAST($2 AS TEXT), CAST($3 AS TEXT), CAST($4 AS TEXT), \
     CAST($5 AS BIGINT), CAST($6 AS BIGINT) FROM notify_channels WHERE owner = $7 AND events LIKE $8 \
     ON CONFLICT (channel, task_id, key) DO NOTHING",
);

/// Writes the notices of an event, in the transaction that makes the event.
pub async fn add(
    tx: &mut Tx<'_>,
    task: &Task,
    event: NoticeEvent,
    key: &str,
    now: Timestamp,
) -> Result<(), StoreError> {
    let (id, wanted) = (NoticeId::mint(now), format!("%,{event},%"));
    let due_at = now.plus(NOTICE_QUIET);
    let row = params![&id, event.as_str(), &task.id, key, due_at, now, &task.owner, &wanted].to_vec();
    tx.post(&ADD, &[row]).await?;
    tx.publish(Topic::outbox());
    Ok(())
}
