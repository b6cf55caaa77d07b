//! The right to answer in a chat: one has it at a time, and loses it however the answer ends.

use matsu_core::error_code::ErrorCode;
use matsu_core::id::ChatId;
use matsu_core::ports::store::StoreError;
use tokio_util::sync::CancellationToken;

use super::LiveChats;
use crate::models::chat::open_answer::OpenAnswers;

pub struct Taken {
    chats: LiveChats,
    id: ChatId,
}

impl Taken {
    pub fn take(chats: &LiveChats, id: &ChatId) -> Result<Self, StoreError> {
        if chats.answers().is_none() {
            let message = "the server is shutting down; send the message again in a moment".to_owned();
            return Err(StoreError::Refused { code: ErrorCode::ServerRestarted, message });
        }
        let was_taken = chats.with(id, |chat| {
            let was_taken = std::mem::replace(&mut chat.is_taken, true);
            if !was_taken {
                // A stop that comes from now on is meant for this line.
                chat.cancel = CancellationToken::new();
            }
            was_taken
        });
        if was_taken {
            let message = "an answer is under way; wait for it or stop it".to_owned();
            return Err(StoreError::Refused { code: ErrorCode::IllegalTransition, message });
        }
        Ok(Self { chats: chats.clone(), id: id.clone() })
    }

    pub fn chats(&self) -> &LiveChats {
        &self.chats
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.chats.with(&self.id, |chat| {
            chat.is_taken = false;
            chat.rounds += 1;
            chat.open_answers = OpenAnswers::default();
            chat.changed();
        });
    }
}
