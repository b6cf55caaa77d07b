//! Transcripts of chats with models. Numbers are given under the chat's lock, as messages have them.

use matsu_core::change::ChangeKind;
use matsu_core::chat::{ChatKind, ChatState, NewChat};
use matsu_core::error_code::ErrorCode;
use matsu_core::history::Entry;
use matsu_core::id::{ChatId, ProjectId, RunId};
use matsu_core::ports::store::{
    AppendTranscript, Change, ChatContent, Describe, DescribeTranscript, ListTranscripts, OpenChat, OpenTranscript,
    ReadChatContent, ReadEntries, ReadTranscript, SaveDraft, StoreError,
};
use matsu_core::principal::Principal;
use matsu_core::transcript::{ChatPlace, Draft, StoredEntry, Transcript};

use crate::sql::{Row, Sql, Transition, Tx, params};
use crate::transitions::chats::chat::{announce, closed, lock};
use crate::transitions::chats::session_rows::{self, chat_columns};

macro_rules! columns {
    () => {
        concat!(
            chat_columns!(),
            ", t.owner, t.name, t.system_prompt, t.place, t.updated_at, t.run_id FROM transcripts t \
             JOIN chats ON chats.id = t.chat_id"
        )
    };
}

const INSERT: Sql =
    Sql::both("INSERT INTO transcripts (chat_id, owner, place, updated_at, run_id) VALUES ($1, $2, $3, $4, $5)");
const ONE: Sql = Sql::both(concat!("SELECT ", columns!(), " WHERE t.chat_id = $1"));
const OF_OWNER: Sql =
    Sql::both(concat!("SELECT ", columns!(), " WHERE t.owner = $1 ORDER BY t.updated_at DESC, t.chat_id LIMIT 200"));
const ENTRIES: Sql =
    Sql::both("SELECT seq, entry_json FROM transcript_entries WHERE chat_id = $1 AND seq > $2 ORDER BY seq LIMIT $3");
const APPEND: Sql = Sql::both("INSERT INTO transcript_entries (chat_id, seq, entry_json) VALUES ($1, $2, $3)");
const COUNT: Sql = Sql::both("UPDATE chats SET last_seq = $2, last_message_at = $3 WHERE id = $1");
const TOUCH: Sql = Sql::both("UPDATE transcripts SET updated_at = $2 WHERE chat_id = $1");
const SAVE: Sql = Sql::both(
    "INSERT INTO transcript_drafts (chat_id, model, entries_json, updated_at) VALUES ($1, $2, $3, $4) \
     ON CONFLICT (chat_id, model) DO UPDATE SET entries_json = excluded.entries_json, \
     updated_at = excluded.updated_at",
);
const DRAFTS: Sql = Sql::both("SELECT model, entries_json FROM transcript_drafts WHERE chat_id = $1 ORDER BY model");
const FORGET: Sql = Sql::both("DELETE FROM transcript_drafts WHERE chat_id = $1 AND model = $2");
const TAKEN: Sql = Sql::both("SELECT chat_id FROM transcripts WHERE owner = $1 AND name = $2 AND chat_id <> $3");
const UNNAME: Sql = Sql::both("UPDATE transcripts SET name = NULL WHERE owner = $1 AND name = $2 AND chat_id <> $3");
const NAME: Sql = Sql::both("UPDATE transcripts SET name = $2 WHERE chat_id = $1");
const PROMPT: Sql = Sql::both("UPDATE transcripts SET system_prompt = $2 WHERE chat_id = $1");
const END: Sql = Sql::both("UPDATE chats SET state = 'ended', ended_at = $2 WHERE id = $1 AND state = 'open'");
const REOPEN: Sql = Sql::both("UPDATE chats SET state = 'open', ended_at = NULL WHERE id = $1 AND state = 'ended'");

fn broken(what: &str) -> StoreError {
    StoreError::Unavailable(format!("the stored {what} cannot be read"))
}

fn json<T: serde::Serialize>(value: &T) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|_| StoreError::Unavailable("an entry cannot be written".to_owned()))
}

fn transcript(row: &Row) -> Result<Transcript, StoreError> {
    let mut c = row.columns();
    Ok(Transcript {
        chat: session_rows::chat(&mut c)?,
        owner: Principal::from_text(c.text()?),
        name: c.opt_text()?,
        system_prompt: c.opt_text()?,
        place: ChatPlace::parse(&c.text()?).ok_or_else(|| broken("place"))?,
        updated_at: c.time()?,
        run_id: c.opt_text()?.map(RunId::from_text),
    })
}

async fn read(tx: &mut Tx<'_>, id: &ChatId) -> Result<Transcript, StoreError> {
    let row = tx.row(&ONE, params![id]).await?;
    transcript(&row.ok_or_else(|| StoreError::NotFound { what: "chat", id: id.to_string() })?)
}

impl Transition for OpenTranscript {
    async fn run(&self, tx: &mut Tx<'_>) -> Result<Transcript, StoreError> {
        let new = &self.0;
        let chat = NewChat {
            id: new.chat_id.clone(),
            kind: ChatKind::Models(new.models.clone()),
            project_id: ProjectId::from_text("default"),
            created_at: new.created_at,
        };
        OpenChat(chat).run(tx).await?;
        tx.run(&INSERT, params![&new.chat_id, &new.owner, new.place.as_str(), new.created_at, new.run_id.as_ref()])
            .await?;
        read(tx, &new.chat_id).await
    }
}

impl Transition for ReadTranscript {
    const READS: bool = true;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Transcript, StoreError> {
        read(tx, &self.0).await
    }
}

impl Transition for ListTranscripts {
    const READS: bool = true;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Vec<Transcript>, StoreError> {
        tx.rows(&OF_OWNER, params![&self.0]).await?.iter().map(transcript).collect()
    }
}

async fn entries(tx: &mut Tx<'_>, id: &ChatId, after: i64, rows_max: u32) -> Result<Vec<StoredEntry>, StoreError> {
    let entry = |row: &Row| {
        let mut c = row.columns();
        let seq = c.int()?;
        let entry = serde_json::from_str(&c.text()?).map_err(|_| broken("entry"))?;
        Ok(StoredEntry { seq, entry })
    };
    tx.rows(&ENTRIES, params![id, after, rows_max]).await?.iter().map(entry).collect()
}

async fn drafts(tx: &mut Tx<'_>, id: &ChatId) -> Result<Vec<Draft>, StoreError> {
    let draft = |row: &Row| {
        let mut c = row.columns();
        let model = c.text()?;
        let entries: Vec<Entry> = serde_json::from_str(&c.text()?).map_err(|_| broken("draft"))?;
        Ok(Draft { model, entries })
    };
    tx.rows(&DRAFTS, params![id]).await?.iter().map(draft).collect()
}

impl Transition for ReadEntries {
    const READS: bool = true;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Vec<StoredEntry>, StoreError> {
        entries(tx, &self.id, self.after_seq, self.rows_max).await
    }
}

impl Transition for ReadChatContent {
    const READS: bool = true;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<ChatContent, StoreError> {
        let transcript = read(tx, &self.id).await?;
        let entries = entries(tx, &self.id, self.after_seq, u32::MAX).await?;
        Ok(ChatContent { transcript, entries, drafts: drafts(tx, &self.id).await? })
    }
}

impl Transition for AppendTranscript {
    async fn run(&self, tx: &mut Tx<'_>) -> Result<i64, StoreError> {
        let request = &self.0;
        let mut chat = lock(tx, &request.chat_id).await?;
        // An answer that was under way when the chat ended is still its own.
        if chat.state == ChatState::Ended && request.finishes.is_none() {
            return Err(closed(&chat.id));
        }
        for entry in &request.entries {
            chat.last_seq += 1;
            let entry = json(entry)?;
            tx.run(&APPEND, params![&chat.id, chat.last_seq, &entry]).await?;
        }
        if let Some(model) = &request.finishes {
            tx.run(&FORGET, params![&chat.id, model]).await?;
        }
        tx.run(&COUNT, params![&chat.id, chat.last_seq, request.now]).await?;
        tx.run(&TOUCH, params![&chat.id, request.now]).await?;
        announce(tx, &chat, ChangeKind::Message, request.now).await?;
        Ok(chat.last_seq)
    }
}

impl Transition for SaveDraft {
    async fn run(&self, tx: &mut Tx<'_>) -> Result<(), StoreError> {
        let entries = json(&self.draft.entries)?;
        tx.run(&SAVE, params![&self.id, &self.draft.model, &entries, self.now]).await?;
        let chat = crate::transitions::chats::chat::read(tx, &self.id).await?;
        announce(tx, &chat, ChangeKind::Message, self.now).await
    }
}

impl Transition for DescribeTranscript {
    async fn run(&self, tx: &mut Tx<'_>) -> Result<Transcript, StoreError> {
        let Describe { chat_id: id, change, now } = &self.0;
        let chat = lock(tx, id).await?;
        let before = read(tx, id).await?;
        match change {
            Change::Name(name) | Change::TakeName(name) => {
                if matches!(change, Change::TakeName(_)) {
                    tx.run(&UNNAME, params![&before.owner, name, id]).await?;
                } else if tx.row(&TAKEN, params![&before.owner, name, id]).await?.is_some() {
                    let message = format!("there is a chat named {name:?}");
                    return Err(StoreError::Refused { code: ErrorCode::InvalidParams, message });
                }
                tx.run(&NAME, params![id, name]).await?;
            }
            Change::SystemPrompt(prompt) => {
                tx.run(&PROMPT, params![id, prompt.as_ref()]).await?;
            }
            Change::Ended => {
                tx.run(&END, params![id, *now]).await?;
            }
            Change::Reopened => {
                tx.run(&REOPEN, params![id]).await?;
            }
        }
        tx.run(&TOUCH, params![id, *now]).await?;
        announce(tx, &chat, ChangeKind::ChatState, *now).await?;
        read(tx, id).await
    }
}
