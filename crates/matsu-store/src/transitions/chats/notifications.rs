//! Notifications: sent by people, given to sessions, acknowledged, forgotten.

use matsu_core::error_code::ErrorCode;
use matsu_core::id::{NotificationId, SessionId, TaskId};
use matsu_core::notification::{Cause, Notification, NotificationAction};
use matsu_core::page::Page;
use matsu_core::ports::store::{
    AcknowledgeGiven, Give, InsertNotice, ListNotifications, Marking, PendingInterrupt, PendingInterrupts, StoreError,
    SweepNotifications, TakeBackNotifications, UnreadResult, UnreadResults,
};
use matsu_core::task::started_in;

use super::interrupts::{self, NewNotification};
use super::session_rows::{self, notification_columns, session_columns, unread};
use crate::sql::{Sql, Transition, Tx, params};
use crate::transitions::paging::page;

/// Locked, as for every interrupt: the session's writes come before this or after it.
const SESSION: Sql = Sql::each(
    concat!("SELECT ", session_columns!(), " FROM sessions WHERE id = $1"),
    concat!("SELECT ", session_columns!(), " FROM sessions WHERE id = $1 FOR UPDATE"),
);
const BY_ID: Sql = Sql::both(concat!("SELECT ", notification_columns!(), " FROM notifications WHERE id = $1"));
const UNREAD: Sql = Sql::both(concat!(
    "SELECT ",
    notification_columns!(),
    " FROM notifications WHERE session_id = $1 AND expires_at > $2 AND ",
    unread!(),
    " ORDER BY created_at DESC, seq DESC LIMIT $3"
));
const MARK_GIVEN: Sql = Sql::each(
    "UPDATE notifications SET delivered_at = $2 WHERE id = $1",
    "UPDATE notifications SET delivered_at = $2 WHERE id = ANY($1)",
);
const TAKE_BACK: Sql = Sql::each(
    "UPDATE notifications SET delivered_at = NULL WHERE id = $1 AND session_id = $2 AND acknowledged_at IS NULL",
    "UPDATE notifications SET delivered_at = NULL WHERE id = ANY($1) AND session_id = $2 AND acknowledged_at IS NULL",
);
const ACKNOWLEDGE: Sql = Sql::each(
    concat!("UPDATE notifications SET acknowledged_at = $2 WHERE id = $1 AND session_id = $3 AND ", unread!()),
    concat!("UPDATE notifications SET acknowledged_at = $2 WHERE id = ANY($1) AND session_id = $3 AND ", unread!()),
);
const ACKNOWLEDGE_GIVEN: Sql = Sql::both(concat!(
    "UPDATE notifications SET acknowledged_at = $2 WHERE session_id = $1 AND delivered_at IS NOT NULL AND ",
    unread!()
));
const PENDING: Sql = Sql::both(concat!(
    "SELECT notifications.id, session_id, action FROM notifications \
     JOIN sessions ON sessions.id = notifications.session_id \
     WHERE kind = 'interrupt' AND sessions.state = 'active' AND sessions.expires_at > $1 AND ",
    unread!(),
    " ORDER BY notifications.created_at LIMIT 1000"
));
const LIST: Sql = Sql::both(concat!(
    "SELECT ",
    notification_columns!(),
    " FROM notifications WHERE (CAST($1 AS TEXT) IS NULL OR session_id = $1) \
     AND (CAST($4 AS TEXT) IS NULL OR session_id IN (SELECT id FROM sessions WHERE owner = $4)) AND seq < coalesce(CAST($2 AS BIGINT), 9223372036854775807) ORDER BY seq DESC LIMIT $3"
));
const FORGET_UNREAD: Sql = Sql::both(
    "DELETE FROM notifications WHERE seq IN (SELECT seq FROM notifications WHERE acknowledged_at IS NULL \
     AND expires_at <= $1 LIMIT $2)",
);
const FORGET_READ: Sql = Sql::both(
    "DELETE FROM notifications WHERE seq IN (SELECT seq FROM notifications WHERE created_at < $1 \
     AND acknowledged_at IS NOT NULL AND acknowledged_at < $1 ORDER BY created_at LIMIT $2)",
);
const UNREAD_RESULTS: Sql = Sql::both(
    "SELECT id, finished_revision, config_json, seq FROM tasks WHERE owner = $1 AND kind = 'agent' \
     AND status IN ('completed', 'failed') AND first_read_at IS NULL UNION ALL \
     SELECT id, attention_revision, config_json, seq FROM tasks WHERE owner = $1 AND kind = 'agent' \
     AND finished_at IS NULL AND status = 'input_required' ORDER BY 4 DESC LIMIT $2",
);

impl Transition for InsertNotice {
    async fn run(&self, tx: &mut Tx<'_>) -> Result<Notification, StoreError> {
        let new = &self.0;
        let row = tx.row(&SESSION, params![&new.session_id]).await?;
        let row = row.ok_or_else(|| StoreError::NotFound { what: "session", id: new.session_id.to_string() })?;
        let session = session_rows::session(&mut row.columns())?;
        if !session.is_live(new.now) {
            return Err(StoreError::Closed {
                code: ErrorCode::SessionEnded,
                message: format!("session {} has ended", session.id),
            });
        }
        let notification = NewNotification {
            session: &session,
            kind: new.kind,
            action: new.action,
            cause: Cause::Notice,
            task_id: session.task_id.as_ref(),
            text: Some(&new.text),
            instruction: new.instruction.as_deref(),
            now: new.now,
        };
        let id = interrupts::insert(tx, &notification).await?;
        let row = tx.row(&BY_ID, params![&id]).await?;
        session_rows::notification(&row.ok_or_else(|| crate::sql::internal("an inserted notification is gone"))?)
    }
}

impl Transition for Give {
    async fn run(&self, tx: &mut Tx<'_>) -> Result<Vec<Notification>, StoreError> {
        let acknowledged: Vec<&str> = self.ack_ids.iter().map(NotificationId::as_str).collect();
        tx.run_of(&ACKNOWLEDGE, &acknowledged, params![self.now, &self.session_id]).await?;
        let rows = tx.rows(&UNREAD, params![&self.session_id, self.now, self.rows_max]).await?;
        let given = rows.iter().map(session_rows::notification).collect::<Result<Vec<_>, _>>()?;
        if self.marking == Marking::Given {
            let ids: Vec<&str> = given.iter().map(|notification| notification.id.as_str()).collect();
            tx.run_of(&MARK_GIVEN, &ids, params![self.now]).await?;
        }
        Ok(given)
    }
}

impl Transition for AcknowledgeGiven {
    async fn run(&self, tx: &mut Tx<'_>) -> Result<u64, StoreError> {
        tx.run(&ACKNOWLEDGE_GIVEN, params![&self.session, self.now]).await
    }
}

impl Transition for TakeBackNotifications {
    async fn run(&self, tx: &mut Tx<'_>) -> Result<(), StoreError> {
        let ids: Vec<&str> = self.ids.iter().map(NotificationId::as_str).collect();
        tx.run_of(&TAKE_BACK, &ids, params![&self.session]).await
    }
}

impl Transition for PendingInterrupts {
    const READS: bool = true;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Vec<PendingInterrupt>, StoreError> {
        let rows = tx.rows(&PENDING, params![self.now]).await?;
        rows.iter()
            .map(|row| {
                let mut c = row.columns();
                Ok(PendingInterrupt {
                    id: NotificationId::from_text(c.text()?),
                    session_id: SessionId::from_text(c.text()?),
                    action: c.word(NotificationAction::parse)?,
                })
            })
            .collect()
    }
}

impl Transition for ListNotifications {
    const READS: bool = true;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Page<Notification>, StoreError> {
        let values = params![self.session.as_ref(), self.page.after, self.page.limit() + 1, self.owner.as_ref()];
        let rows = tx.rows(&LIST, values).await?;
        let found = rows.iter().map(session_rows::notification).collect::<Result<Vec<_>, _>>()?;
        Ok(page(found, &self.page, |notification| notification.seq))
    }
}

impl Transition for SweepNotifications {
    async fn run(&self, tx: &mut Tx<'_>) -> Result<u64, StoreError> {
        let unread = tx.run(&FORGET_UNREAD, params![self.now, self.rows_max]).await?;
        let read = tx.run(&FORGET_READ, params![self.read_before, self.rows_max]).await?;
        Ok(unread + read)
    }
}

impl Transition for UnreadResults {
    const READS: bool = true;

    fn is_quick(&self) -> bool {
        true
    }

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Vec<UnreadResult>, StoreError> {
        let rows = tx.rows(&UNREAD_RESULTS, params![&self.0, self.1]).await?;
        let read = |row: &crate::sql::Row| {
            let mut columns = row.columns();
            Ok(UnreadResult {
                task_id: TaskId::from_text(columns.text()?),
                revision: columns.int()?,
                started_in: started_in(&columns.text()?),
            })
        };
        rows.iter().map(read).collect()
    }
}
