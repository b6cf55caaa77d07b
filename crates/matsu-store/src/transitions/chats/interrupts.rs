//! How notifications come into being inside other transitions: an order to stop is committed together with the status
//! that gives the order, for the one session that works on the task.

use matsu_core::change::{ChangeKind, Topic};
use matsu_core::clock::Timestamp;
use matsu_core::id::{NotificationId, SessionId, TaskId};
use matsu_core::limits::{NOTIFICATION_KEPT_UNREAD, NOTIFICATION_TEXT_CHARS_MAX};
use matsu_core::notification::{Cause, NotificationAction, NotificationKind};
use matsu_core::ports::store::StoreError;
use matsu_core::session::Session;

use super::session_rows::{self, session_columns, unread};
use crate::sql::{Sql, Tx, params};
use crate::transitions::ledger::append_change;

/// The lock is what makes order between an interrupt and the writes of its session: those share it (`guard.rs`).
const WORKING_ON: Sql = Sql::each(
    concat!(
        "SELECT ",
        session_columns!(),
        " FROM sessions WHERE task_id = $1 AND state = 'active' AND expires_at > $2 ORDER BY id"
    ),
    concat!(
        "SELECT ",
        session_columns!(),
        " FROM sessions WHERE task_id = $1 AND state = 'active' AND expires_at > $2 ORDER BY id FOR UPDATE"
    ),
);
const INSERT: Sql = Sql::both(
    "INSERT INTO notifications (id, agent_id, project_id, session_id, kind, action, cause, task_id, text, instruction, \
     times, created_at, expires_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 1, $11, $12)",
);
const ADD_TO: Sql = Sql::both(concat!(
    "UPDATE notifications SET times = times + 1, text = coalesce(text, '') || CAST($4 AS TEXT) || $3 \
     WHERE session_id = $1 AND cause = $2 AND delivered_at IS NULL AND length(text) <= $5 AND ",
    unread!()
));
const VOID: Sql = Sql::both(concat!(
    "UPDATE notifications SET voided_at = $2 WHERE task_id = $1 AND kind = 'interrupt' AND ",
    unread!()
));

pub struct NewNotification<'a> {
    pub session: &'a Session,
    pub kind: NotificationKind,
    pub action: NotificationAction,
    pub cause: Cause,
    pub task_id: Option<&'a TaskId>,
    pub text: Option<&'a str>,
    pub instruction: Option<&'a str>,
    pub now: Timestamp,
}

/// Writes a notification down and wakes its session.
pub async fn insert(tx: &mut Tx<'_>, new: &NewNotification<'_>) -> Result<NotificationId, StoreError> {
    let id = NotificationId::mint(new.now);
    let session = new.session;
    let values = params![
        &id,
        &session.agent_id,
        &session.project_id,
        &session.id,
        new.kind.as_str(),
        new.action.as_str(),
        new.cause.as_str(),
        new.task_id,
        new.text,
        new.instruction,
        new.now,
        new.now.plus(NOTIFICATION_KEPT_UNREAD),
    ];
    tx.run(&INSERT, values).await?;
    announce(tx, session, new.now).await?;
    Ok(id)
}

async fn announce(tx: &mut Tx<'_>, session: &Session, now: Timestamp) -> Result<(), StoreError> {
    let topic = Topic::agent(&session.agent_id, &session.project_id);
    append_change(tx, topic, ChangeKind::Notification, 0, now).await
}

/// Between the words of one message and those of the next.
const BETWEEN: &str = "\n\n";

/// As [`insert`], but one that its session has not been given yet takes this one in, whole and behind its own words.
pub async fn coalesce(tx: &mut Tx<'_>, new: &NewNotification<'_>) -> Result<(), StoreError> {
    let bound = i64::try_from(NOTIFICATION_TEXT_CHARS_MAX).unwrap_or(i64::MAX);
    if tx.run(&ADD_TO, params![&new.session.id, new.cause.as_str(), new.text, BETWEEN, bound]).await? == 0 {
        insert(tx, new).await?;
        return Ok(());
    }
    announce(tx, new.session, new.now).await
}

/// The status of a task orders its session to stop. An older, unacknowledged order is replaced, so there is exactly
/// one. The session that gave the order itself gets none.
pub async fn raise(
    tx: &mut Tx<'_>,
    task: &TaskId,
    cause: Cause,
    given_by: Option<&SessionId>,
    now: Timestamp,
) -> Result<(), StoreError> {
    void(tx, task, now).await?;
    notify_sessions(tx, task, cause, given_by, now).await
}

/// Inserts a notification for each other session that works on the task.
async fn notify_sessions(
    tx: &mut Tx<'_>,
    task: &TaskId,
    cause: Cause,
    given_by: Option<&SessionId>,
    now: Timestamp,
) -> Result<(), StoreError> {
    let (kind, action) = cause.meaning();
    for row in tx.rows(&WORKING_ON, params![task, now]).await? {
        let session = session_rows::session(&mut row.columns())?;
        if given_by == Some(&session.id) {
            continue;
        }
        let (task_id, text, instruction) = (Some(task), None, None);
        insert(tx, &NewNotification { session: &session, kind, action, cause, task_id, text, instruction, now })
            .await?;
    }
    Ok(())
}

/// What was ordered no longer holds. Returns whether anything was.
pub async fn void(tx: &mut Tx<'_>, task: &TaskId, now: Timestamp) -> Result<bool, StoreError> {
    Ok(tx.run(&VOID, params![task, now]).await? > 0)
}

/// The task goes on. A session that has not received the stop needs no notification; one that has gets one.
pub async fn resume(tx: &mut Tx<'_>, task: &TaskId, now: Timestamp) -> Result<(), StoreError> {
    if void(tx, task, now).await? { Ok(()) } else { notify_sessions(tx, task, Cause::TaskResumed, None, now).await }
}
