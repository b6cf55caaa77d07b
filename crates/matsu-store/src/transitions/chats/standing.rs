//! Reads of sessions: which one calls and what it has not received, what it does next, which ones are connected.

use matsu_core::id::TaskId;
use matsu_core::page::Page;
use matsu_core::ports::store::{
    ListSessions, ReadReport, ReadSession, ReadSessionView, ReadStanding, SessionKey, SessionOfRun, Standing,
    StoreError,
};
use matsu_core::session::{AgentReport, Purpose, Session, SessionView, Unread};

use super::chat;
use super::session_rows::{self, session_columns, unread};
use super::sessions::read_session;
use crate::sql::{Columns, Sql, Transition, Tx, internal, params};
use crate::transitions::paging::page;
use crate::transitions::rows::{self, task_columns};

macro_rules! standing {
    ($key:literal) => {
        concat!(
            "SELECT ",
            session_columns!(),
            ", (SELECT count(*) FROM notifications n WHERE n.session_id = sessions.id AND n.kind = 'interrupt' \
             AND n.expires_at > $2 AND ",
            unread!(),
            "), (SELECT count(*) FROM notifications n WHERE n.session_id = sessions.id AND n.kind <> 'interrupt' \
             AND n.expires_at > $2 AND ",
            unread!(),
            "), (SELECT count(*) FROM notifications n WHERE n.session_id = sessions.id AND n.delivered_at IS NOT NULL \
             AND ",
            unread!(),
            ") FROM sessions WHERE sessions.",
            $key,
            " = $1"
        )
    };
}
const BY_TOKEN: Sql = Sql::both(standing!("token_hash"));
const BY_ID: Sql = Sql::both(standing!("id"));
const REPORT: Sql = Sql::both("SELECT report_json FROM sessions WHERE id = $1");
const TASK: Sql = Sql::both(concat!("SELECT ", task_columns!(), " FROM tasks WHERE id = $1"));
const PENDING: Sql = Sql::both("SELECT count(*) FROM messages WHERE chat_id = $1 AND seq > $2 AND sender = 'person'");
const TASK_WAITING: Sql = Sql::both(
    "SELECT id FROM tasks WHERE assignee = $1 AND project_id = $2 AND finished_at IS NULL AND kind = 'agent' \
     AND status = 'queued' AND stop_mode IS NULL AND NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.task_id = tasks.id) \
     ORDER BY seq LIMIT 1",
);
const LIST: Sql = Sql::both(concat!(
    "SELECT ",
    session_columns!(),
    " FROM sessions WHERE (CAST($1 AS TEXT) IS NULL OR agent_id = $1) AND (CAST($2 AS TEXT) IS NULL OR project_id = $2) \
     AND (CAST($3 AS TEXT) IS NULL OR state = $3) AND (CAST($6 AS TEXT) IS NULL OR owner = $6) AND seq < coalesce(CAST($4 AS BIGINT), 9223372036854775807) \
     ORDER BY seq DESC LIMIT $5"
));
const OF_RUN: Sql =
    Sql::both(concat!("SELECT ", session_columns!(), " FROM sessions WHERE run_id = $1 ORDER BY seq DESC LIMIT 1"));

fn standing(c: &mut Columns<'_>) -> Result<Standing, StoreError> {
    let session = session_rows::session(c)?;
    let unread = Unread { interrupts: c.int()?, others: c.int()?, delivered: c.int()? };
    Ok(Standing { session, unread })
}

impl Transition for ReadStanding {
    const READS: bool = true;

    fn is_quick(&self) -> bool {
        true
    }

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Option<Standing>, StoreError> {
        let row = match &self.key {
            SessionKey::TokenHash(hash) => tx.row(&BY_TOKEN, params![hash, self.now]).await?,
            SessionKey::Id(id) => tx.row(&BY_ID, params![id, self.now]).await?,
        };
        row.map(|row| standing(&mut row.columns())).transpose()
    }
}

impl Transition for ReadSession {
    const READS: bool = true;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Session, StoreError> {
        read_session(tx, &self.0).await
    }
}

impl Transition for ReadReport {
    const READS: bool = true;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Option<AgentReport>, StoreError> {
        let row = tx.row(&REPORT, params![&self.0]).await?;
        let text = row.map(|row| row.columns().opt_text()).transpose()?.flatten();
        text.map(|text| serde_json::from_str(&text).map_err(internal)).transpose()
    }
}

impl Transition for ReadSessionView {
    const READS: bool = true;

    fn is_quick(&self) -> bool {
        true
    }

    async fn run(&self, tx: &mut Tx<'_>) -> Result<SessionView, StoreError> {
        let row = tx.row(&BY_ID, params![&self.id, self.now]).await?;
        let row = row.ok_or_else(|| StoreError::NotFound { what: "session", id: self.id.to_string() })?;
        let Standing { session, unread } = standing(&mut row.columns())?;
        let task = match &session.task_id {
            Some(id) => tx.row(&TASK, params![id]).await?.as_ref().map(rows::task).transpose()?,
            None => None,
        };
        let chat = match &session.chat_id {
            Some(id) => Some(chat::read(tx, id).await?),
            None => None,
        };
        let pending = match &chat {
            Some(chat) => {
                let after = self.after_seq.unwrap_or(chat.acked_seq);
                // No query where the marks already show that there is nothing.
                if chat.last_person_seq <= after {
                    0
                } else {
                    tx.row(&PENDING, params![&chat.id, after]).await?.map_or(Ok(0), |row| row.only_int())?
                }
            }
            None => 0,
        };
        let task_waiting = match session.purpose {
            Purpose::Chat => tx.row(&TASK_WAITING, params![&session.agent_id, &session.project_id]).await?,
            Purpose::Task => None,
        };
        let task_waiting = task_waiting.map(|row| row.only_text().map(TaskId::from_text)).transpose()?;
        Ok(SessionView { session, unread, task, chat, pending, task_waiting })
    }
}

impl Transition for SessionOfRun {
    const READS: bool = true;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Option<Session>, StoreError> {
        tx.row(&OF_RUN, params![&self.0]).await?.map(|row| session_rows::session(&mut row.columns())).transpose()
    }
}

impl Transition for ListSessions {
    const READS: bool = true;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Page<Session>, StoreError> {
        let filter = &self.filter;
        let values = params![
            filter.agent_id.as_ref(),
            filter.project_id.as_ref(),
            filter.state.map(|state| state.as_str()),
            self.page.after,
            self.page.limit() + 1,
            filter.owner.as_ref()
        ];
        let rows = tx.rows(&LIST, values).await?;
        let sessions =
            rows.iter().map(|row| session_rows::session(&mut row.columns())).collect::<Result<Vec<_>, _>>()?;
        Ok(page(sessions, &self.page, |session| session.seq))
    }
}
