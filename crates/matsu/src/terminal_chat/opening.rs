//! How a chat in the terminal begins: a new one, one that is named, or one that was not closed.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use matsu_core::id::ChatId;
use matsu_core::principal::Principal;
use matsu_core::transcript::{ChatPlace, Transcript};
use matsu_runtime::chat::{Room, Rooms};

use super::input::{Input, Line};
use crate::daemon::lock::ServeLock;

/// What the person wants to begin with.
#[derive(Clone, Debug, Default)]
pub struct Opening {
    /// By id or by name.
    pub chat: Option<String>,
}

/// A chat is open in one process at a time; the lock goes with the process.
pub struct Held {
    pub room: Room,
    _lock: ServeLock,
}

/// Where the locks of open chats lie.
#[derive(Clone)]
pub struct Locks(pub PathBuf);

impl Locks {
    fn take(&self, id: &ChatId) -> Result<Option<ServeLock>> {
        ServeLock::try_take(&self.0.join(format!("{id}.lock")))
    }

    pub fn hold(&self, room: Room) -> Result<Held> {
        match self.take(room.id())? {
            Some(lock) => Ok(Held { room, _lock: lock }),
            None => bail!("this chat is open in another terminal"),
        }
    }

    /// Nobody needs the file once the chat is closed.
    pub fn forget(&self, id: &ChatId) {
        let _ = std::fs::remove_file(self.0.join(format!("{id}.lock")));
    }
}

pub async fn open(rooms: &Rooms, locks: &Locks, input: &Input, opening: &Opening) -> Result<Held> {
    let owner = Principal::local_user();
    if let Some(wanted) = &opening.chat {
        return locks.hold(load(rooms, wanted).await?);
    }
    if let Some(left) = left_behind(rooms, locks).await? {
        let question = format!("A chat of {} was not closed. Go on with it? [Y/n] ", left.updated_at);
        let yes = match (input.is_terminal, input.is_terminal.then(|| question.clone())) {
            (true, Some(question)) => match input.line(&question).await {
                Line::Text(text) => !matches!(text.trim().to_lowercase().as_str(), "n" | "no"),
                Line::Interrupted | Line::End => false,
            },
            _ => {
                eprintln!(
                    "matsu: a chat of {} was not closed; go on with it: matsu chat --chat {}",
                    left.updated_at, left.chat_id
                );
                false
            }
        };
        if yes {
            return locks.hold(rooms.enter(&owner, &left.chat_id).await?);
        }
    }
    locks.hold(rooms.open(&owner, &[], ChatPlace::Terminal).await?)
}

/// The newest chat that a terminal left open and that nobody holds any more.
async fn left_behind(rooms: &Rooms, locks: &Locks) -> Result<Option<Transcript>> {
    for transcript in rooms.store.transcripts(&Principal::local_user()).await? {
        let open = transcript.place == ChatPlace::Terminal && !transcript.ended && transcript.name.is_none();
        if open && transcript.last_seq > 0 && locks.take(&transcript.chat_id)?.is_some() {
            return Ok(Some(transcript));
        }
    }
    Ok(None)
}

/// A chat by its id or its name.
pub async fn load(rooms: &Rooms, wanted: &str) -> Result<Room> {
    let owner = Principal::local_user();
    let named = rooms.store.transcripts(&owner).await?;
    let found = named
        .iter()
        .find(|transcript| transcript.chat_id.as_str() == wanted || transcript.name.as_deref() == Some(wanted));
    let found = found.with_context(|| format!("there is no chat {wanted:?}; /history list shows them"))?;
    let mut room = rooms.enter(&owner, &found.chat_id).await?;
    if room.transcript.ended {
        room.reopen().await?;
    }
    Ok(room)
}
