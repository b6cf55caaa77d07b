//! How a chat in the terminal begins: a new one, one that is named, or one that was not closed.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use matsu_core::id::ChatId;
use matsu_core::ports::store::ListTranscripts;
use matsu_core::principal::Principal;
use matsu_core::transcript::{ChatPlace, Transcript};
use matsu_runtime::models::chat::{OpenChat, OpenChats};

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
    pub open_chat: OpenChat,
    _lock: ServeLock,
}

/// Where the locks of open chats lie.
#[derive(Clone)]
pub struct Locks(pub PathBuf);

impl Locks {
    fn take(&self, id: &ChatId) -> Result<Option<ServeLock>> {
        ServeLock::try_take(&self.0.join(format!("{id}.lock")))
    }

    pub fn hold(&self, open_chat: OpenChat) -> Result<Held> {
        match self.take(open_chat.id())? {
            Some(lock) => Ok(Held { open_chat, _lock: lock }),
            None => bail!("this chat is open in another terminal"),
        }
    }

    /// The file is not needed once the chat is closed.
    pub fn forget(&self, id: &ChatId) {
        let _ = std::fs::remove_file(self.0.join(format!("{id}.lock")));
    }
}

pub async fn open(open_chats: &OpenChats, locks: &Locks, input: &Input, opening: &Opening) -> Result<Held> {
    let owner = Principal::local_user();
    if let Some(wanted) = &opening.chat {
        return locks.hold(load(open_chats, wanted).await?);
    }
    if let Some(left) = left_behind(open_chats, locks).await? {
        let question = format!("A chat of {} was not closed. Continue it? [Y/n] ", left.updated_at);
        let yes = match (input.is_terminal, input.is_terminal.then(|| question.clone())) {
            (true, Some(question)) => match input.line(&question).await {
                Line::Text(text) => !matches!(text.trim().to_lowercase().as_str(), "n" | "no"),
                Line::Interrupted | Line::End => false,
            },
            _ => {
                eprintln!(
                    "matsu: a chat of {} was not closed; continue it: matsu chat --chat {}",
                    left.updated_at, left.chat.id
                );
                false
            }
        };
        if yes {
            return locks.hold(open_chats.enter(&owner, &left.chat.id).await?);
        }
    }
    locks.hold(open_chats.open(&owner, &[], ChatPlace::Terminal).await?)
}

/// The newest chat that a terminal left open and that no process holds any more.
async fn left_behind(open_chats: &OpenChats, locks: &Locks) -> Result<Option<Transcript>> {
    for transcript in open_chats.store.run(ListTranscripts(Principal::local_user())).await? {
        let open = transcript.place == ChatPlace::Terminal && !transcript.is_ended() && transcript.name.is_none();
        if open && transcript.chat.last_seq > 0 && locks.take(&transcript.chat.id)?.is_some() {
            return Ok(Some(transcript));
        }
    }
    Ok(None)
}

/// A chat by its id or its name.
pub async fn load(open_chats: &OpenChats, wanted: &str) -> Result<OpenChat> {
    let owner = Principal::local_user();
    let named = open_chats.store.run(ListTranscripts(owner.clone())).await?;
    let found = named
        .iter()
        .find(|transcript| transcript.chat.id.as_str() == wanted || transcript.name.as_deref() == Some(wanted));
    let found = found.with_context(|| format!("there is no chat {wanted:?}; /history list shows them"))?;
    let mut open_chat = open_chats.enter(&owner, &found.chat.id).await?;
    if open_chat.transcript.is_ended() {
        open_chat.reopen().await?;
    }
    Ok(open_chat)
}
