//! Chats that runs open: which run one belongs to, and how a person's answer to a run's question reaches a call that
//! waits in it. The run itself approves of nothing.

use std::sync::{Arc, Weak};

use matsu_core::ports::store::StoreError;
use matsu_core::run::Answer;
use matsu_core::transcript::Transcript;

use super::live::{Approval, Inner, LiveChats};
use crate::agents::RunHandle;
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
            let chat = runtime.store().transcript(&id).await?;
            if chat.owner == run.owner && runtime.is_chat_of(run, &chat).await? {
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

impl Runtime {
    /// Sets where runs have their chats. Only the first call counts.
    pub fn host_chats_of_runs(&self, chats: WeakChats) {
        let _ = self.chats_of_runs().set(chats);
    }

    /// Whether a run opened this chat; or an earlier run of the same agent did, and this one goes on with it.
    ///
    /// # Errors
    /// As the store's.
    pub async fn is_chat_of(&self, run: &RunHandle, chat: &Transcript) -> Result<bool, StoreError> {
        let Some(opened_by) = &chat.run_id else { return Ok(false) };
        if *opened_by == run.run_id {
            return Ok(true);
        }
        if run.resumes.as_deref() != Some(chat.chat_id.as_str()) {
            return Ok(false);
        }
        let earlier = self.store().session_of_run(opened_by).await?;
        Ok(earlier.is_none_or(|earlier| earlier.owner == run.owner && earlier.agent_id == run.agent_id))
    }

    /// A person has answered what a run asked.
    pub(crate) async fn decide_in_chats(&self, run: &RunHandle, answer: &Answer) {
        let chats = self.chats_of_runs().get().and_then(|chats| chats.0.upgrade());
        let Some(chats) = chats.map(|inner| LiveChats { inner }) else { return };
        if let Err(error) = chats.decide_for(self, run, answer).await {
            tracing::warn!(%error, run = %run.run_id, "a person's answer did not reach the call it is about");
        }
    }
}
