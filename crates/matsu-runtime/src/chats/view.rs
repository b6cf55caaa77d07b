//! A chat as a reader sees it. Chats with agents and chats with models are shown by the same view.

use matsu_core::chat::{Chat, Message};
use matsu_core::ports::store::{ListMessages, MessageFilter, StoreError};
use matsu_core::transcript::{Draft, StoredEntry};

use super::Chats;
use super::shown::{ShownMessage, ShownState, shown};

/// Which messages are wanted: those after one number, or the last ones before another.
#[derive(Clone, Copy, Debug)]
pub struct MessageRange {
    pub after: Option<i64>,
    pub before: Option<i64>,
    pub rows_max: u32,
}

#[derive(Debug)]
pub struct ChatView {
    pub chat: Chat,
    /// Oldest first: what is stored, and behind it the answers that are being written.
    pub messages: Vec<ShownMessage>,
    /// Up to this number nothing changes any more.
    pub settled_seq: i64,
}

impl ChatView {
    /// A chat with an agent: these messages of it.
    #[must_use]
    pub fn of_messages(chat: Chat, messages: &[Message]) -> Self {
        let settled_seq = messages.last().map_or(chat.last_seq, |last| last.seq);
        Self { chat, messages: messages.iter().map(ShownMessage::from).collect(), settled_seq }
    }

    /// A chat with models: what is stored, as far as it is after a number, and what the models have answered so far.
    #[must_use]
    pub fn of_entries(chat: Chat, stored: &[StoredEntry], after: i64, drafts: Vec<Draft>, state: ShownState) -> Self {
        let settled_seq = stored.last().map_or(after, |last| last.seq);
        let stored = &stored[stored.partition_point(|entry| entry.seq <= after)..];
        let drafted = drafts.into_iter().flat_map(|draft| draft.entries).zip(settled_seq + 1..);
        let drafted: Vec<StoredEntry> = drafted.map(|(entry, seq)| StoredEntry { seq, entry }).collect();
        let mut messages = shown(stored, ShownState::Complete);
        messages.extend(shown(&drafted, state));
        Self { chat, messages, settled_seq }
    }

    /// The messages of a range, and the number after which there are more of them.
    #[must_use]
    pub fn part(self, range: &MessageRange) -> (Vec<ShownMessage>, Option<i64>) {
        let rows_max = range.rows_max as usize;
        let mut messages = self.messages;
        if let Some(after) = range.after {
            messages.retain(|message| message.seq > after);
            let has_more = messages.len() > rows_max;
            messages.truncate(rows_max);
            let next = messages.last().filter(|_| has_more).map(|last| last.seq);
            return (messages, next);
        }
        messages.retain(|message| range.before.is_none_or(|before| message.seq < before));
        (messages.split_off(messages.len().saturating_sub(rows_max)), None)
    }
}

impl Chats<'_> {
    /// A chat with an agent. One message more than the range allows is read, which shows whether there are more.
    ///
    /// # Errors
    /// As the store's.
    pub async fn view(self, chat: Chat, range: &MessageRange) -> Result<ChatView, StoreError> {
        let filter = MessageFilter {
            chat_id: chat.id.clone(),
            after_seq: range.after,
            before_seq: range.before,
            rows_max: range.rows_max + 1,
        };
        let messages = self.runtime.store().run(ListMessages(filter)).await?;
        Ok(ChatView::of_messages(chat, &messages))
    }
}
