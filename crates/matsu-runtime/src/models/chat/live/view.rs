//! A chat with models as a reader sees it: what is stored, and after it the answers under way.

use matsu_core::id::ChatId;
use matsu_core::ports::store::ChatContent;
use matsu_core::principal::Principal;
use matsu_core::transcript::{Draft, StoredEntry};

use super::LiveChats;
use super::chat::{LiveChat, Spoken};
use crate::chats::ChatView;
use crate::chats::shown::ShownState;
use crate::models::chat::open_chats::ChatError;

/// The chat, and what only the process knows that asks the models.
pub struct LiveView {
    /// Its messages are those after the number that was asked for.
    pub view: ChatView,
    pub notices: Vec<String>,
    /// The models that have answered the last line, and how that ended; as far as this process did it.
    pub spoken: Vec<Spoken>,
    pub answering: bool,
}

impl LiveChats {
    /// The chat after a number, with the answers under way.
    ///
    /// # Errors
    /// There is none, it belongs to another principal, or the store.
    pub async fn view(&self, owner: &Principal, id: &ChatId, after: i64) -> Result<LiveView, ChatError> {
        loop {
            let (rounds, posted_seq) = self.with(id, |chat| (chat.rounds, chat.posted_seq));
            // From the line that is being answered, to see whose answer is stored already.
            let content = self.open_chats().content(owner, id, after.min(posted_seq)).await?;
            let view = self.with(id, |chat| {
                // Else an answer may have gone from here after the store was read, and would be in neither.
                (chat.rounds == rounds).then(|| combine(chat, content, after))
            });
            if let Some(view) = view {
                return Ok(view);
            }
        }
    }
}

fn combine(chat: &LiveChat, content: ChatContent, after: i64) -> LiveView {
    let ChatContent { transcript, entries: stored, drafts: left } = content;
    let is_stored = |draft: &Draft| {
        let of_model = |entry: &StoredEntry| entry.entry.model.as_deref() == Some(draft.model.as_str());
        stored.iter().any(|entry| entry.seq > chat.posted_seq && of_model(entry))
    };
    let (drafts, state) = if chat.is_taken {
        let mut drafts = chat.open_answers.drafts();
        drafts.retain(|draft| !is_stored(draft));
        (drafts, ShownState::Running)
    } else {
        // What a crash cut off is shown as far as it came; it becomes part of the chat with the next line.
        (left, ShownState::Failed)
    };
    let mut view = ChatView::of_entries(transcript.chat, &stored, after, drafts, state);
    let settled_seq = view.settled_seq;
    for message in view.messages.iter_mut().filter(|message| message.seq > settled_seq) {
        let model = message.model.clone();
        for tool in &mut message.tools {
            tool.asked = tool.result.is_none() && chat.approvals.waits(model.as_deref(), &tool.id);
        }
    }
    LiveView { view, notices: chat.notices.clone(), spoken: chat.spoken.clone(), answering: chat.is_taken }
}
