//! Chats: open, read, end, and agents that were called and never came.

use matsu_core::change::{ChangeKind, Topic};
use matsu_core::chat::{Chat, ChatState, NewMessage, Sender};
use matsu_core::clock::Timestamp;
use matsu_core::error_code::ErrorCode;
use matsu_core::id::{ChatId, MessageId};
use matsu_core::page::Page;
use matsu_core::ports::store::{
    ChatsKnownTo, EndChat, GiveUpOnAgents, ListChats, OpenChat, OpenedChat, ReadChat, ReadChatFor, StoreError,
};
use matsu_core::project::ProjectStatus;
use matsu_core::session::{EndReason, SessionState};

use super::directory::{read_agent, read_project};
use super::messages::append;
use super::session_rows::{self, chat_columns};
use crate::sql::{Row, Sql, Transition, Tx, params};
use crate::transitions::ledger::append_change;
use crate::transitions::paging::page;

const CHAT: Sql = Sql::both(concat!("SELECT ", chat_columns!(), " FROM chats WHERE id = $1"));
const LOCK: Sql = Sql::each(
    concat!("SELECT ", chat_columns!(), " FROM chats WHERE id = $1"),
    concat!("SELECT ", chat_columns!(), " FROM chats WHERE id = $1 FOR UPDATE"),
);
const OPEN_OF: Sql = Sql::both(concat!(
    "SELECT ",
    chat_columns!(),
    " FROM chats WHERE agent_id = $1 AND project_id = $2 AND state = 'open'"
));
/// Only a chat with models has an owner, and a transcript that names it; those with named agents are for admins.
macro_rules! known_to {
    ($viewer:literal, $is_admin:literal) => {
        concat!(
            "NOT EXISTS (SELECT 1 FROM transcripts t WHERE t.chat_id = chats.id AND t.owner <> ",
            $viewer,
            ") AND (CAST(",
            $is_admin,
            " AS BIGINT) = 1 OR chats.agent_id IS NULL)"
        )
    };
}
const VISIBLE: Sql =
    Sql::both(concat!("SELECT ", chat_columns!(), " FROM chats WHERE id = $1 AND ", known_to!("$2", "$3")));
const CHATS: Sql = Sql::both(concat!(
    "SELECT ",
    chat_columns!(),
    " FROM chats WHERE seq < coalesce(CAST($1 AS BIGINT), 9223372036854775807) AND ",
    known_to!("$3", "$4"),
    " ORDER BY seq DESC LIMIT $2"
));
const KNOWN: Sql = Sql::each(
    concat!("SELECT id FROM chats WHERE id = $1 AND ", known_to!("$2", "$3")),
    concat!("SELECT id FROM chats WHERE id = ANY($1) AND ", known_to!("$2", "$3")),
);
/// Two callers that open at the same time: the second finds the first one's.
const INSERT: Sql = Sql::both(
    "INSERT INTO chats (id, agent_id, project_id, models_json, state, last_seq, acked_seq, handed_seq, \
     last_person_seq, last_reply_seq, connecting_since, last_message_at, created_at) \
     VALUES ($1, $2, $3, $4, 'open', 0, 0, 0, 0, 0, $5, $6, $6) ON CONFLICT DO NOTHING",
);
const END: Sql = Sql::both(
    "UPDATE chats SET state = 'ended', ended_at = $2, connecting_since = NULL WHERE id = $1 AND state = 'open'",
);
const TELL_SESSION: Sql =
    Sql::both("UPDATE sessions SET state = $2, end_reason = $3 WHERE chat_id = $1 AND state = 'active'");
const CALLED_IN_VAIN: Sql = Sql::both(
    "SELECT id FROM chats WHERE connecting_since IS NOT NULL AND connecting_since < $1 AND job_id IS NULL ORDER BY id LIMIT 100",
);
const CALLED_NO_MORE: Sql = Sql::both("UPDATE chats SET connecting_since = NULL WHERE id = $1");

fn not_found(id: &ChatId) -> StoreError {
    StoreError::NotFound { what: "chat", id: id.to_string() }
}

fn one(row: Option<Row>, id: &ChatId) -> Result<Chat, StoreError> {
    session_rows::chat(&mut row.ok_or_else(|| not_found(id))?.columns())
}

/// The chat, locked until the transaction ends.
pub async fn lock(tx: &mut Tx<'_>, id: &ChatId) -> Result<Chat, StoreError> {
    one(tx.row(&LOCK, params![id]).await?, id)
}

pub async fn read(tx: &mut Tx<'_>, id: &ChatId) -> Result<Chat, StoreError> {
    one(tx.row(&CHAT, params![id]).await?, id)
}

/// The error for a message to an ended chat.
pub fn closed(id: &ChatId) -> StoreError {
    StoreError::Closed { code: ErrorCode::ChatEnded, message: format!("chat {id} has ended; open a new one") }
}

/// Wakes the subscribers of the chat and those of its agent.
pub async fn announce(tx: &mut Tx<'_>, chat: &Chat, kind: ChangeKind, now: Timestamp) -> Result<(), StoreError> {
    append_change(tx, Topic::chat(&chat.id), kind, chat.last_seq, now).await?;
    if let Some(agent) = chat.kind.agent() {
        tx.publish(Topic::agent(agent, &chat.project_id));
    }
    Ok(())
}

impl Transition for OpenChat {
    async fn run(&self, tx: &mut Tx<'_>) -> Result<OpenedChat, StoreError> {
        let new = &self.0;
        let project = read_project(tx, &new.project_id).await?;
        if project.status == ProjectStatus::Paused {
            let message = format!("project {} is paused", project.id);
            return Err(StoreError::Closed { code: ErrorCode::TaskPaused, message });
        }
        // One that can be started is called by the first message.
        let called_at = match new.kind.agent() {
            Some(agent) if read_agent(tx, agent).await?.definition.is_none() => Some(new.created_at),
            _ => None,
        };
        let models = new.kind.models().map(serde_json::to_string).transpose();
        let models = models.map_err(|_| StoreError::Unavailable("names of models cannot be written".to_owned()))?;
        let values = params![&new.id, new.kind.agent(), &new.project_id, models.as_ref(), called_at, new.created_at];
        let existed = tx.run(&INSERT, values).await? == 0;
        if existed {
            let row = tx.row(&OPEN_OF, params![new.kind.agent(), &new.project_id]).await?;
            let row = row.ok_or_else(|| StoreError::Unavailable("the open chat has just ended".to_owned()))?;
            return Ok(OpenedChat { chat: session_rows::chat(&mut row.columns())?, existed });
        }
        let chat = read(tx, &new.id).await?;
        announce(tx, &chat, ChangeKind::ChatState, new.created_at).await?;
        Ok(OpenedChat { chat, existed })
    }
}

impl Transition for ReadChat {
    const READS: bool = true;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Chat, StoreError> {
        read(tx, &self.0).await
    }
}

impl Transition for ReadChatFor {
    const READS: bool = true;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Chat, StoreError> {
        let viewer = params![&self.id, &self.viewer.principal, i64::from(self.viewer.is_admin)];
        one(tx.row(&VISIBLE, viewer).await?, &self.id)
    }
}

impl Transition for ListChats {
    const READS: bool = true;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Page<Chat>, StoreError> {
        let rows = tx
            .rows(
                &CHATS,
                params![
                    self.page.after,
                    self.page.limit() + 1,
                    &self.viewer.principal,
                    i64::from(self.viewer.is_admin)
                ],
            )
            .await?;
        let chats = rows.iter().map(|row| session_rows::chat(&mut row.columns())).collect::<Result<Vec<_>, _>>()?;
        Ok(page(chats, &self.page, |chat| chat.seq))
    }
}

impl Transition for ChatsKnownTo {
    const READS: bool = true;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Vec<ChatId>, StoreError> {
        let ids: Vec<&str> = self.ids.iter().map(ChatId::as_str).collect();
        let rows = tx.rows_of(&KNOWN, &ids, params![&self.viewer.principal, i64::from(self.viewer.is_admin)]).await?;
        rows.iter().map(|row| row.only_text().map(ChatId::from_text)).collect()
    }
}

impl Transition for EndChat {
    async fn run(&self, tx: &mut Tx<'_>) -> Result<Chat, StoreError> {
        let chat = lock(tx, &self.id).await?;
        if chat.state == ChatState::Ended {
            return Ok(chat);
        }
        tx.run(&END, params![&self.id, self.now]).await?;
        let (state, reason) = (SessionState::Ending, EndReason::ClosedByPerson);
        tx.run(&TELL_SESSION, params![&self.id, state.as_str(), reason.as_str()]).await?;
        announce(tx, &chat, ChangeKind::ChatState, self.now).await?;
        read(tx, &self.id).await
    }
}

impl Transition for GiveUpOnAgents {
    async fn run(&self, tx: &mut Tx<'_>) -> Result<Vec<ChatId>, StoreError> {
        let mut given_up = Vec::new();
        for row in tx.rows(&CALLED_IN_VAIN, params![self.called_before]).await? {
            let id = ChatId::from_text(row.only_text()?);
            let chat = lock(tx, &id).await?;
            // Another node may have done it, or the agent may have connected, before we had the lock.
            if chat.state == ChatState::Ended || chat.connecting_since.is_none_or(|since| since >= self.called_before) {
                continue;
            }
            tx.run(&CALLED_NO_MORE, params![&id]).await?;
            let line = NewMessage {
                id: MessageId::mint(self.now),
                chat_id: id.clone(),
                sender: Sender::System,
                sender_id: "matsu".to_owned(),
                content: self.line.clone(),
                reply_to: None,
                created_at: self.now,
            };
            append(tx, &chat, &line).await?;
            given_up.push(id);
        }
        Ok(given_up)
    }
}
