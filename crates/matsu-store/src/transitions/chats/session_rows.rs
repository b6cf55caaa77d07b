//! Sessions, chats, messages and notifications as rows: their columns in order, and how they are read.

use matsu_core::chat::{Chat, ChatKind, ChatState, Message, Sender};
use matsu_core::id::{AgentId, ChatId, JobId, MessageId, NotificationId, ProjectId, RunId, SessionId, TaskId};
use matsu_core::notification::{Cause, Notification, NotificationAction, NotificationKind};
use matsu_core::ports::store::StoreError;
use matsu_core::principal::Principal;
use matsu_core::session::{EndReason, Purpose, Session, SessionState};

use crate::sql::{Columns, Row};

macro_rules! session_columns {
    () => {
        "sessions.seq, sessions.id, sessions.owner, sessions.agent_id, sessions.project_id, sessions.purpose, \
         sessions.task_id, sessions.chat_id, sessions.job_id, sessions.run_id, sessions.mode, sessions.grants, \
         sessions.state, sessions.end_reason, sessions.created_at, sessions.last_seen_at, sessions.expires_at, sessions.ended_at"
    };
}

macro_rules! chat_columns {
    () => {
        "chats.seq, chats.id, chats.agent_id, chats.project_id, chats.models_json, chats.state, chats.last_seq, \
         chats.acked_seq, chats.handed_seq, chats.last_person_seq, chats.last_reply_seq, chats.connecting_since, \
         chats.last_message_at, chats.created_at, chats.ended_at"
    };
}

macro_rules! message_columns {
    () => {
        "chat_id, seq, id, sender, sender_id, content, reply_to, created_at"
    };
}

macro_rules! notification_columns {
    () => {
        "seq, id, agent_id, project_id, session_id, kind, action, cause, task_id, text, instruction, times, \
         created_at, expires_at, delivered_at, acknowledged_at, voided_at"
    };
}

/// Not acknowledged and still meant, spelled as in the partial indexes so that both planners recognise it.
macro_rules! unread {
    () => {
        "acknowledged_at IS NULL AND voided_at IS NULL"
    };
}
pub(crate) use {chat_columns, message_columns, notification_columns, session_columns, unread};

/// Reads a row that begins with `session_columns!()`.
pub fn session(c: &mut Columns<'_>) -> Result<Session, StoreError> {
    Ok(Session {
        seq: c.int()?,
        id: SessionId::from_text(c.text()?),
        owner: Principal::from_text(c.text()?),
        agent_id: AgentId::from_text(c.text()?),
        project_id: ProjectId::from_text(c.text()?),
        purpose: c.word(Purpose::parse)?,
        task_id: c.opt_text()?.map(TaskId::from_text),
        chat_id: c.opt_text()?.map(ChatId::from_text),
        job_id: c.opt_text()?.map(JobId::from_text),
        run_id: c.opt_text()?.map(RunId::from_text),
        mode: c.opt_text()?,
        grants: c.opt_text()?,
        state: c.word(SessionState::parse)?,
        end_reason: c.opt_word(EndReason::parse)?,
        created_at: c.time()?,
        last_seen_at: c.time()?,
        expires_at: c.time()?,
        ended_at: c.opt_time()?,
    })
}

/// Reads a row that begins with `chat_columns!()`.
pub fn chat(c: &mut Columns<'_>) -> Result<Chat, StoreError> {
    let (seq, id, agent) = (c.int()?, ChatId::from_text(c.text()?), c.opt_text()?.map(AgentId::from_text));
    let (project_id, models) = (ProjectId::from_text(c.text()?), c.opt_text()?);
    let kind = match agent {
        Some(agent) => ChatKind::Agent(agent),
        None => ChatKind::Models(models.and_then(|models| serde_json::from_str(&models).ok()).unwrap_or_default()),
    };
    Ok(Chat {
        seq,
        id,
        kind,
        project_id,
        state: c.word(ChatState::parse)?,
        last_seq: c.int()?,
        acked_seq: c.int()?,
        handed_seq: c.int()?,
        last_person_seq: c.int()?,
        last_reply_seq: c.int()?,
        connecting_since: c.opt_time()?,
        last_message_at: c.time()?,
        created_at: c.time()?,
        ended_at: c.opt_time()?,
    })
}

/// Reads a row of `message_columns!()`.
pub fn message(row: &Row) -> Result<Message, StoreError> {
    let mut c = row.columns();
    Ok(Message {
        chat_id: ChatId::from_text(c.text()?),
        seq: c.int()?,
        id: MessageId::from_text(c.text()?),
        sender: c.word(Sender::parse)?,
        sender_id: c.text()?,
        content: c.text()?,
        reply_to: c.opt_text()?.map(MessageId::from_text),
        created_at: c.time()?,
    })
}

/// Reads a row of `notification_columns!()`.
pub fn notification(row: &Row) -> Result<Notification, StoreError> {
    let mut c = row.columns();
    Ok(Notification {
        seq: c.int()?,
        id: NotificationId::from_text(c.text()?),
        agent_id: AgentId::from_text(c.text()?),
        project_id: ProjectId::from_text(c.text()?),
        session_id: c.opt_text()?.map(SessionId::from_text),
        kind: c.word(NotificationKind::parse)?,
        action: c.word(NotificationAction::parse)?,
        cause: c.word(Cause::parse)?,
        task_id: c.opt_text()?.map(TaskId::from_text),
        text: c.opt_text()?,
        instruction: c.opt_text()?,
        times: c.int()?,
        created_at: c.time()?,
        expires_at: c.time()?,
        delivered_at: c.opt_time()?,
        acknowledged_at: c.opt_time()?,
        voided_at: c.opt_time()?,
    })
}
