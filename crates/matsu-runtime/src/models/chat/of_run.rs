//! Chats that runs open: which run one belongs to, and how a person's answer to a run's question reaches a call that
//! waits in it. The run itself approves of nothing.

use std::sync::{Arc, Weak};

use async_trait::async_trait;

use matsu_core::id::ChatId;
use matsu_core::ports::store::{ReadTranscript, SessionOfRun, StoreError};
use matsu_core::run::Answer;
use matsu_core::transcript::Transcript;

use super::live::{Approval, Inner, LiveChats};
use crate::agents::{AnswerListener, RunHandle};
use crate::runtime::Runtime;

/// The chats of this process, without keeping them alive.
pub struct WeakChats(Weak<Inner>);

impl LiveChats {
    #[must_use]
    pub fn downgrade(&self) -> WeakChats {
        WeakChats(Arc::downgrade(&self.inner))
    }

    /// A person has answered what this run asked. Where that is about a call in a chat of the run, it is decided.
    async fn decide_for(&self, runtime: &Runtime, run: &RunHandle, answer: &Answer) -> Result<(), StoreError> {
        let word = answer.option.as_deref().or(answer.text.as_deref()).unwrap_or_default();
        let allow = word.trim().eq_ignore_ascii_case("allow");
        for id in self.asked_for(&answer.id) {
            let chat = runtime.store().run(ReadTranscript(id.clone())).await?;
            if chat.owner == run.owner && is_chat_of(runtime, run, &chat).await? {
                let approval =
                    Approval { call_id: answer.id.clone(), model: None, allow, always: false, remember: false };
                if let Err(error) = self.decide(&id, approval) {
                    tracing::info!(chat = %id, %error, "an answer came for a call that no longer waits");
                }
            }
        }
        Ok(())
    }
}

/// As [`is_chat_of`], for a chat that may not be there.
///
/// # Errors
/// As the store's.
pub async fn is_own_chat(runtime: &Runtime, run: &RunHandle, chat: &ChatId) -> Result<bool, StoreError> {
    let Ok(chat) = runtime.store().run(ReadTranscript(chat.clone())).await else { return Ok(false) };
    is_chat_of(runtime, run, &chat).await
}

/// Whether a run opened this chat; or an earlier run of the same agent did, and this one goes on with it.
///
/// # Errors
/// As the store's.
async fn is_chat_of(runtime: &Runtime, run: &RunHandle, chat: &Transcript) -> Result<bool, StoreError> {
    let Some(opened_by) = &chat.run_id else { return Ok(false) };
    if *opened_by == run.run_id {
        return Ok(true);
    }
    if run.resumes.as_deref() != Some(chat.chat.id.as_str()) {
        return Ok(false);
    }
    let earlier = runtime.store().run(SessionOfRun(opened_by.clone())).await?;
    Ok(earlier.is_none_or(|earlier| earlier.owner == run.owner && earlier.agent_id == run.agent_id))
}

#[async_trait]
impl AnswerListener for WeakChats {
    async fn answered(&self, runtime: &Runtime, run: &RunHandle, answer: &Answer) {
        let Some(chats) = self.0.upgrade().map(|inner| LiveChats { inner }) else { return };
        if let Err(error) = chats.decide_for(runtime, run, answer).await {
            tracing::warn!(%error, run = %run.run_id, "a person's answer could not be delivered to its tool call");
        }
    }
}
