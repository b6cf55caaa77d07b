//! Messages: stored, handed out, acknowledged.
//!
//! A number is given under the chat's lock, so numbers grow by one in the order of commits, and a mark at n can never
//! hide n + 1.

use matsu_core::change::ChangeKind;
use matsu_core::chat::{Chat, ChatState, Message, NewMessage, Sender};
use matsu_core::error_code::ErrorCode;
use matsu_core::id::{ChatId, MessageId};
use matsu_core::notification::Cause;
use matsu_core::ports::store::{
    AcknowledgeMessages, InsertMessage, ListMessages, PostMessage, StoreError, TakeBackMessages, TakeMessages, Taken,
    TakenMessage,
};
use matsu_core::session::{Session, SessionState};

use super::chat::{announce, closed, lock};
use super::interrupts::{self, NewNotification};
use super::session_rows::{self, message_columns, session_columns};
use super::sessions::read_session;
use super::turns;
use crate::sql::{Sql, Transition, Tx, params};

const INSERT: Sql = Sql::both(
    "INSERT INTO messages (chat_id, seq, id, sender, sender_id, content, reply_to, created_at) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
);
const COUNT: Sql = Sql::both(
    "UPDATE chats SET last_seq = $2, last_person_seq = $3, last_reply_seq = $4, last_message_at = $5 WHERE id = $1",
);
const CALL_AGENT: Sql = Sql::both(
    "UPDATE chats SET connecting_since = coalesce(connecting_since, $2) WHERE id = $1 AND agent_id IS NOT NULL \
     AND NOT EXISTS (SELECT 1 FROM sessions WHERE chat_id = $1 AND state = 'active' AND expires_at > $2)",
);
const BUSY: Sql = Sql::both(concat!(
    "SELECT ",
    session_columns!(),
    " FROM sessions WHERE agent_id = $1 AND project_id = $2 AND state = 'active' AND purpose = 'task' \
     AND expires_at > $3"
));
const AFTER: Sql = Sql::both(concat!(
    "SELECT ",
    message_columns!(),
    " FROM messages WHERE chat_id = $1 AND seq > $2 ORDER BY seq LIMIT $3"
));
const LAST: Sql = Sql::both(concat!(
    "SELECT ",
    message_columns!(),
    " FROM messages WHERE chat_id = $1 AND seq < coalesce(CAST($2 AS BIGINT), 9223372036854775807) \
     ORDER BY seq DESC LIMIT $3"
));
const FOR_AGENT: Sql = Sql::both(concat!(
    "SELECT ",
    message_columns!(),
    " FROM messages WHERE chat_id = $1 AND seq > $2 AND sender = 'person' ORDER BY seq LIMIT $3"
));
const SEQ_OF: Sql = Sql::both("SELECT seq FROM messages WHERE id = $1 AND chat_id = $2");
const ACKNOWLEDGE: Sql = Sql::both("UPDATE chats SET acked_seq = $2 WHERE id = $1 AND acked_seq < $2");
const HAND_OUT: Sql = Sql::both("UPDATE chats SET handed_seq = $2 WHERE id = $1 AND handed_seq < $2");
const HANDED: Sql = Sql::both("SELECT handed_seq, handed_to FROM sessions WHERE id = $1");
const NOTE_HANDED: Sql = Sql::both("UPDATE sessions SET handed_seq = $2, handed_to = $3 WHERE id = $1");
const TAKE_BACK: Sql =
    Sql::both("UPDATE sessions SET handed_seq = NULL, handed_to = NULL WHERE id = $1 AND handed_to = $2");
const OPEN_CHAT_OF: Sql = Sql::both("SELECT id FROM chats WHERE agent_id = $1 AND project_id = $2 AND state = 'open'");

/// Gives a message the next number of a locked chat.
pub async fn append(tx: &mut Tx<'_>, chat: &Chat, new: &NewMessage) -> Result<Message, StoreError> {
    let seq = chat.last_seq + 1;
    let values = params![
        &chat.id,
        seq,
        &new.id,
        new.sender.as_str(),
        &new.sender_id,
        &new.content,
        new.reply_to.as_ref(),
        new.created_at
    ];
    tx.run(&INSERT, values).await?;
    let from_person = new.sender == Sender::Person;
    let person_seq = if from_person { seq } else { chat.last_person_seq };
    let reply_seq = if from_person { chat.last_reply_seq } else { seq };
    tx.run(&COUNT, params![&chat.id, seq, person_seq, reply_seq, new.created_at]).await?;
    let counted = Chat { last_seq: seq, ..chat.clone() };
    announce(tx, &counted, ChangeKind::Message, new.created_at).await?;
    Ok(Message {
        id: new.id.clone(),
        chat_id: chat.id.clone(),
        seq,
        sender: new.sender,
        sender_id: new.sender_id.clone(),
        content: new.content.clone(),
        reply_to: new.reply_to.clone(),
        created_at: new.created_at,
    })
}

impl Transition for InsertMessage {
    async fn run(&self, tx: &mut Tx<'_>) -> Result<Message, StoreError> {
        let new = &self.0;
        let chat = lock(tx, &new.chat_id).await?;
        if chat.state == ChatState::Ended {
            return Err(closed(&chat.id));
        }
        if let Some(answered) = &new.reply_to {
            seq_of(tx, &chat, answered).await?;
        }
        let message = append(tx, &chat, new).await?;
        if new.sender == Sender::Person {
            if !turns::call_if_needed(tx, &chat.id, new.created_at).await? {
                tx.run(&CALL_AGENT, params![&chat.id, new.created_at]).await?;
            }
            notify_busy_agent(tx, &chat, new).await?;
        }
        Ok(message)
    }
}

/// A session that works on a task gets it with its next call.
async fn notify_busy_agent(tx: &mut Tx<'_>, chat: &Chat, new: &NewMessage) -> Result<(), StoreError> {
    let Some(agent) = chat.kind.agent() else { return Ok(()) };
    for row in tx.rows(&BUSY, params![agent, &chat.project_id, new.created_at]).await? {
        let session = session_rows::session(&mut row.columns())?;
        let (kind, action) = Cause::PersonWrote.meaning();
        let notification = NewNotification {
            session: &session,
            kind,
            action,
            cause: Cause::PersonWrote,
            task_id: session.task_id.as_ref(),
            text: Some(&new.content),
            instruction: None,
            now: new.created_at,
        };
        interrupts::coalesce(tx, &notification).await?;
    }
    Ok(())
}

async fn seq_of(tx: &mut Tx<'_>, chat: &Chat, id: &MessageId) -> Result<i64, StoreError> {
    match tx.row(&SEQ_OF, params![id, &chat.id]).await? {
        Some(row) => row.only_int(),
        None => Err(StoreError::NotFound { what: "message", id: id.to_string() }),
    }
}

impl Transition for ListMessages {
    const READS: bool = true;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Vec<Message>, StoreError> {
        let filter = &self.0;
        let rows = match filter.after_seq {
            Some(after) => tx.rows(&AFTER, params![&filter.chat_id, after, filter.rows_max]).await?,
            None => {
                let mut rows = tx.rows(&LAST, params![&filter.chat_id, filter.before_seq, filter.rows_max]).await?;
                rows.reverse();
                rows
            }
        };
        rows.iter().map(session_rows::message).collect()
    }
}

impl Transition for PostMessage {
    async fn run(&self, tx: &mut Tx<'_>) -> Result<Message, StoreError> {
        let session = read_session(tx, &self.session_id).await?;
        let chat_id = chat_of(tx, &session).await?;
        let chat = lock(tx, &chat_id).await?;
        if chat.state == ChatState::Ended || session.state == SessionState::Ended {
            return Err(closed(&chat.id));
        }
        let has_read = match &self.reply_to {
            Some(answered) => seq_of(tx, &chat, answered).await?,
            None => handed_over(tx, &session, &self.connection).await?,
        };
        tx.run(&ACKNOWLEDGE, params![&chat.id, has_read]).await?;
        let new = NewMessage {
            id: self.id.clone(),
            chat_id: chat.id.clone(),
            sender: Sender::Agent,
            sender_id: session.agent_id.to_string(),
            content: self.content.clone(),
            reply_to: self.reply_to.clone(),
            created_at: self.now,
        };
        append(tx, &chat, &new).await
    }
}

/// A session that works on a task writes in the open chat of its agent, if there is one.
async fn chat_of(tx: &mut Tx<'_>, session: &Session) -> Result<ChatId, StoreError> {
    if let Some(own) = &session.chat_id {
        return Ok(own.clone());
    }
    match tx.row(&OPEN_CHAT_OF, params![&session.agent_id, &session.project_id]).await? {
        Some(row) => row.only_text().map(ChatId::from_text),
        None => Err(StoreError::Closed {
            code: ErrorCode::ChatEnded,
            message: "no chat with this agent is open; a person opens one".to_owned(),
        }),
    }
}

/// Up to where this very connection was handed messages: what went out over another may never have arrived.
async fn handed_over(tx: &mut Tx<'_>, session: &Session, connection: &str) -> Result<i64, StoreError> {
    let Some(row) = tx.row(&HANDED, params![&session.id]).await? else { return Ok(0) };
    let mut c = row.columns();
    let (seq, to) = (c.opt_int()?, c.opt_text()?);
    Ok(if to.as_deref() == Some(connection) { seq.unwrap_or(0) } else { 0 })
}

impl Transition for AcknowledgeMessages {
    async fn run(&self, tx: &mut Tx<'_>) -> Result<(), StoreError> {
        let chat = lock(tx, &self.chat_id).await?;
        check_seq(&chat, self.upto_seq)?;
        tx.run(&ACKNOWLEDGE, params![&chat.id, self.upto_seq]).await.map(drop)
    }
}

fn check_seq(chat: &Chat, seq: i64) -> Result<(), StoreError> {
    if seq <= chat.last_seq {
        return Ok(());
    }
    Err(StoreError::Refused {
        code: ErrorCode::InvalidParams,
        message: format!("after_seq must be at most {}, the chat's last seq, got {seq}", chat.last_seq),
    })
}

/// The messages of persons after this number, in order.
pub async fn pending(tx: &mut Tx<'_>, chat: &Chat, after: i64, rows_max: u32) -> Result<Vec<Message>, StoreError> {
    tx.rows(&FOR_AGENT, params![&chat.id, after, rows_max]).await?.iter().map(session_rows::message).collect()
}

impl Transition for TakeMessages {
    async fn run(&self, tx: &mut Tx<'_>) -> Result<Taken, StoreError> {
        let chat = lock(tx, &self.chat_id).await?;
        if chat.state == ChatState::Ended {
            return Ok(Taken::default());
        }
        let after = self.after_seq.unwrap_or(chat.acked_seq);
        check_seq(&chat, after)?;
        tx.run(&ACKNOWLEDGE, params![&chat.id, after]).await?;
        let mut found = pending(tx, &chat, after, self.rows_max + 1).await?;
        let more = found.len() > self.rows_max as usize;
        found.truncate(self.rows_max as usize);
        let take = |message: Message| TakenMessage { redelivered: message.seq <= chat.handed_seq, message };
        let messages: Vec<TakenMessage> = found.into_iter().map(take).collect();
        if let Some(last) = messages.last() {
            tx.run(&HAND_OUT, params![&chat.id, last.message.seq]).await?;
            tx.run(&NOTE_HANDED, params![&self.session_id, last.message.seq, &self.handed_to]).await?;
        }
        Ok(Taken { messages, more })
    }
}

impl Transition for TakeBackMessages {
    async fn run(&self, tx: &mut Tx<'_>) -> Result<(), StoreError> {
        tx.run(&TAKE_BACK, params![&self.session, &self.handed_to]).await.map(drop)
    }
}
