//! Sessions: begin, live on, end.
//!
//! Lock order: the agent (by a transition that begins a session of it), tasks, chats, sessions.

use matsu_core::change::{ChangeKind, Topic};
use matsu_core::clock::Timestamp;
use matsu_core::error_code::ErrorCode;
use matsu_core::id::{AgentId, ChatId, ProjectId, SessionId, TaskId};
use matsu_core::ports::store::{EndSession, NewSession, StoreError, SweepSessions, TouchSession, WantedFor};
use matsu_core::project::ProjectStatus;
use matsu_core::session::purpose::{Candidate, Held};
use matsu_core::session::{EndReason, Opening, Purpose, Session, SessionState, choose_opening};
use matsu_core::task::TaskStatus;

use super::chat;
use super::directory::{read_agent, read_project};
use super::session_rows::{self, session_columns};
use super::turns;
use crate::sql::{Row, Sql, Transition, Tx, params};
use crate::transitions::held;
use crate::transitions::ledger::{Ledger, append_change, closed};

const SESSION: Sql = Sql::both(concat!("SELECT ", session_columns!(), " FROM sessions WHERE id = $1"));
const LOCK_AGENT: Sql =
    Sql::each("SELECT seq FROM agents WHERE id = $1", "SELECT seq FROM agents WHERE id = $1 FOR UPDATE");
/// Tasks without a job: those without a session first, then in the order they were given.
const OPEN_TASK: Sql = Sql::both(
    "SELECT tasks.id, sessions.id FROM tasks LEFT JOIN sessions \
     ON sessions.task_id = tasks.id AND sessions.state = 'active' AND sessions.expires_at > $3 \
     WHERE assignee = $1 AND tasks.project_id = $2 AND finished_at IS NULL AND kind = 'agent' \
     AND status IN ('queued', 'running') AND stop_mode IS NULL \
     AND NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.task_id = tasks.id) \
     ORDER BY (sessions.id IS NOT NULL), tasks.seq LIMIT 1",
);
const OPEN_CHAT: Sql = Sql::both(
    "SELECT chats.id, sessions.id FROM chats LEFT JOIN sessions \
     ON sessions.chat_id = chats.id AND sessions.state = 'active' AND sessions.expires_at > $3 \
     WHERE chats.agent_id = $1 AND chats.project_id = $2 AND chats.state = 'open' LIMIT 1",
);
const ACTIVE_OF_TASK: Sql = Sql::both(
    "SELECT id FROM sessions WHERE task_id = $1 AND state = 'active' \
     AND (CAST($2 AS TEXT) IS NULL OR job_id IS NULL OR job_id = $2)",
);
const ACTIVE_OF_CHAT: Sql = Sql::both("SELECT id FROM sessions WHERE chat_id = $1 AND state = 'active'");
const INSERT: Sql = Sql::both(
    "INSERT INTO sessions (id, token_hash, owner, agent_id, project_id, purpose, task_id, chat_id, job_id, mode, \
     grants, state, created_at, last_seen_at, expires_at, run_id) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, 'active', $12, $12, $13, $14)",
);
const CAME: Sql = Sql::both("UPDATE chats SET connecting_since = NULL WHERE id = $1");
const TOUCH: Sql = Sql::both(
    "UPDATE sessions SET last_seen_at = $2, expires_at = CASE WHEN expires_at < $3 THEN $3 ELSE expires_at END \
     WHERE id = $1 AND state <> 'ended' AND expires_at > $2",
);
const TELL: Sql = Sql::both("UPDATE sessions SET state = 'ending', end_reason = $2 WHERE id = $1 AND state = 'active'");
const END: Sql = Sql::both(
    "UPDATE sessions SET state = 'ended', end_reason = coalesce(end_reason, $2), ended_at = $3 \
     WHERE id = $1 AND state <> 'ended'",
);
const OTHERS_AT_WORK: Sql = Sql::both(
    "SELECT 1 FROM sessions WHERE task_id = $1 AND id <> $2 AND state = 'active' AND expires_at > $3 LIMIT 1",
);
const EXPIRED: Sql =
    Sql::both("SELECT id FROM sessions WHERE state <> 'ended' AND expires_at <= $1 ORDER BY expires_at LIMIT $2");
/// Sessions of jobs that no node holds: the process that ran them ended before it could end them.
const LEFT_BEHIND: Sql = Sql::both(concat!(
    "SELECT id FROM sessions WHERE state <> 'ended' AND job_id IS NOT NULL AND NOT EXISTS \
     (SELECT 1 FROM jobs WHERE jobs.id = sessions.job_id AND jobs.owner_node IS NOT NULL AND ",
    held!(),
    ") ORDER BY expires_at LIMIT $1"
));
const FORGET: Sql = Sql::both(
    "DELETE FROM sessions WHERE id IN (SELECT id FROM sessions WHERE ended_at IS NOT NULL AND ended_at < $1 \
     ORDER BY ended_at LIMIT $2)",
);

pub async fn read_session(tx: &mut Tx<'_>, id: &SessionId) -> Result<Session, StoreError> {
    let row = tx.row(&SESSION, params![id]).await?;
    let row = row.ok_or_else(|| StoreError::NotFound { what: "session", id: id.to_string() })?;
    session_rows::session(&mut row.columns())
}

pub async fn announce(tx: &mut Tx<'_>, agent: &AgentId, project: &ProjectId, now: Timestamp) -> Result<(), StoreError> {
    append_change(tx, Topic::agent(agent, project), ChangeKind::Session, 0, now).await
}

impl Transition for NewSession {
    async fn run(&self, tx: &mut Tx<'_>) -> Result<Session, StoreError> {
        // One at a time for each agent: two processes of it that come together must not take the same thing.
        tx.row(&LOCK_AGENT, params![&self.agent_id]).await?;
        // A run without a named agent is in no directory, and a pause of a project does not apply to it.
        if !self.agent_id.is_program() {
            read_agent(tx, &self.agent_id).await?;
            if read_project(tx, &self.project_id).await?.status == ProjectStatus::Paused {
                return Err(nothing(format!("project {} is paused", self.project_id)));
            }
        }
        match opening(tx, self).await? {
            Opening::Task { id, takes_over } => begin_task(tx, self, &id, takes_over.as_ref()).await?,
            Opening::Chat { id, takes_over } => begin_chat(tx, self, &id, takes_over.as_ref()).await?,
        }
        announce(tx, &self.agent_id, &self.project_id, self.now).await?;
        read_session(tx, &self.id).await
    }
}

fn nothing(message: String) -> StoreError {
    StoreError::Refused { code: ErrorCode::NothingToDo, message }
}

async fn opening(tx: &mut Tx<'_>, new: &NewSession) -> Result<Opening, StoreError> {
    match &new.wanted {
        WantedFor::Task(id) => {
            // Several runs may work on one task, each with a session of its own.
            let held = tx.row(&ACTIVE_OF_TASK, params![id, new.job_id.as_ref()]).await?;
            let takes_over = held.map(|row| row.only_text().map(SessionId::from_text)).transpose()?;
            Ok(Opening::Task { id: id.clone(), takes_over })
        }
        WantedFor::Chat(id) => {
            let held = tx.row(&ACTIVE_OF_CHAT, params![id]).await?;
            let takes_over = held.map(|row| row.only_text().map(SessionId::from_text)).transpose()?;
            Ok(Opening::Chat { id: id.clone(), takes_over })
        }
        WantedFor::WhateverIsOpen => {
            let who = params![&new.agent_id, &new.project_id, new.now];
            let task = tx.row(&OPEN_TASK, who).await?.map(|row| new.candidate(&row, TaskId::from_text)).transpose()?;
            let chat = tx.row(&OPEN_CHAT, who).await?.map(|row| new.candidate(&row, ChatId::from_text)).transpose()?;
            choose_opening(task.as_ref(), chat.as_ref()).ok_or_else(|| {
                nothing(format!("no task and no open chat waits for {} in {}", new.agent_id, new.project_id))
            })
        }
    }
}

trait Candidates {
    fn candidate<T>(&self, row: &Row, id: impl Fn(String) -> T) -> Result<Candidate<T>, StoreError>;
}

impl Candidates for NewSession {
    fn candidate<T>(&self, row: &Row, id: impl Fn(String) -> T) -> Result<Candidate<T>, StoreError> {
        let mut c = row.columns();
        let what = id(c.text()?);
        let by = c.opt_text()?.map(SessionId::from_text);
        Ok(Candidate { what, held: by.map(|by| Held { listens: self.listening.contains(&by), by }) })
    }
}

async fn begin_task(
    tx: &mut Tx<'_>,
    new: &NewSession,
    task_id: &TaskId,
    takes_over: Option<&SessionId>,
) -> Result<(), StoreError> {
    let mut ledger = Ledger::lock(tx, [task_id.clone()]).await?;
    let task = ledger.existing(task_id)?;
    // It may have been stopped or held back between the look and the lock.
    if let Some(refusal) = closed(task) {
        return Err(nothing(refusal.to_string()));
    }
    if task.is_carried_by_session() && task.status == TaskStatus::Queued {
        ledger.change(task_id, ChangeKind::TaskStatus, |task| task.status = TaskStatus::Running);
    }
    ledger.write(tx, new.now).await?;
    end_taken_over(tx, takes_over, new.now).await?;
    insert(tx, new, Purpose::Task, Some(task_id), None).await
}

async fn begin_chat(
    tx: &mut Tx<'_>,
    new: &NewSession,
    chat_id: &ChatId,
    takes_over: Option<&SessionId>,
) -> Result<(), StoreError> {
    let chat = chat::lock(tx, chat_id).await?;
    if chat.ended_at.is_some() {
        return Err(nothing(format!("chat {chat_id} has ended")));
    }
    end_taken_over(tx, takes_over, new.now).await?;
    tx.run(&CAME, params![chat_id]).await?;
    insert(tx, new, Purpose::Chat, None, Some(chat_id)).await?;
    chat::announce(tx, &chat, ChangeKind::ChatState, new.now).await
}

async fn end_taken_over(tx: &mut Tx<'_>, id: Option<&SessionId>, now: Timestamp) -> Result<(), StoreError> {
    if let Some(id) = id {
        tx.run(&END, params![id, EndReason::TakenOver.as_str(), now]).await?;
    }
    Ok(())
}

async fn insert(
    tx: &mut Tx<'_>,
    new: &NewSession,
    purpose: Purpose,
    task_id: Option<&TaskId>,
    chat_id: Option<&ChatId>,
) -> Result<(), StoreError> {
    // One that has expired may not have been swept yet, and would stand in the way of the index.
    if let Some(chat) = chat_id {
        for row in tx.rows(&ACTIVE_OF_CHAT, params![chat]).await? {
            let id = SessionId::from_text(row.only_text()?);
            tx.run(&END, params![&id, EndReason::Expired.as_str(), new.now]).await?;
        }
    }
    let values = params![
        &new.id,
        &new.token_hash,
        &new.owner,
        &new.agent_id,
        &new.project_id,
        purpose.as_str(),
        task_id,
        chat_id,
        new.job_id.as_ref(),
        new.mode.as_ref(),
        new.grants.as_ref(),
        new.now,
        new.expires_at,
        new.run_id.as_ref(),
    ];
    tx.run(&INSERT, values).await.map(drop)
}

impl Transition for TouchSession {
    async fn run(&self, tx: &mut Tx<'_>) -> Result<(), StoreError> {
        tx.run(&TOUCH, params![&self.id, self.now, self.expires_at]).await.map(drop)
    }
}

impl Transition for EndSession {
    async fn run(&self, tx: &mut Tx<'_>) -> Result<Session, StoreError> {
        let session = read_session(tx, &self.id).await?;
        let mut ledger = Ledger::lock(tx, session.task_id.clone()).await?;
        let chat = match &session.chat_id {
            Some(chat) => Some(chat::lock(tx, chat).await?),
            None => None,
        };
        let moved = match self.to {
            SessionState::Active => 0,
            SessionState::Ending => tx.run(&TELL, params![&self.id, self.reason.as_str()]).await?,
            SessionState::Ended => tx.run(&END, params![&self.id, self.reason.as_str(), self.now]).await?,
        };
        if moved > 0 {
            leave_task(tx, &mut ledger, &session, self.now).await?;
            announce(tx, &session.agent_id, &session.project_id, self.now).await?;
            if let Some(chat) = &chat {
                // What the session left unread is for the next one.
                turns::call_if_needed(tx, &chat.id, self.now).await?;
                chat::announce(tx, chat, ChangeKind::ChatState, self.now).await?;
            }
        }
        ledger.write(tx, self.now).await?;
        read_session(tx, &self.id).await
    }
}

/// A task that only this session carried waits for the next one: a task is not `running` while no session works on it.
pub async fn leave_task(
    tx: &mut Tx<'_>,
    ledger: &mut Ledger,
    session: &Session,
    now: Timestamp,
) -> Result<(), StoreError> {
    let Some(task) = session.task_id.as_ref().and_then(|id| ledger.task(id)) else { return Ok(()) };
    if !task.is_carried_by_session() || task.status != TaskStatus::Running {
        return Ok(());
    }
    let id = task.id.clone();
    if tx.row(&OTHERS_AT_WORK, params![&id, &session.id, now]).await?.is_none() {
        ledger.change(&id, ChangeKind::TaskStatus, |task| task.status = TaskStatus::Queued);
    }
    Ok(())
}

impl Transition for SweepSessions {
    async fn run(&self, tx: &mut Tx<'_>) -> Result<Vec<SessionId>, StoreError> {
        let mut ended = Vec::new();
        let over = [
            (tx.rows(&LEFT_BEHIND, params![self.rows_max]).await?, EndReason::ProcessEnded),
            (tx.rows(&EXPIRED, params![self.now, self.rows_max]).await?, EndReason::Expired),
        ];
        for (rows, reason) in over {
            for row in rows {
                let id = SessionId::from_text(row.only_text()?);
                EndSession { id: id.clone(), to: SessionState::Ended, reason, now: self.now }.run(tx).await?;
                ended.push(id);
            }
        }
        tx.run(&FORGET, params![self.ended_before, self.rows_max]).await?;
        Ok(ended)
    }
}
