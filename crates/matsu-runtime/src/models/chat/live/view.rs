//! A chat as a reader sees it: what is stored, and after it the answers under way.

use matsu_core::id::ChatId;
use matsu_core::ports::store::{ReadDrafts, ReadEntries};
use matsu_core::principal::Principal;
use matsu_core::transcript::{Draft, StoredEntry, Transcript};

use super::LiveChats;
use super::chat::{LiveChat, Spoken};
use crate::models::chat::open_chats::ChatError;
use crate::models::chat::shown::{ShownMessage, ShownState, shown};

pub struct View {
    pub transcript: Transcript,
    /// What is after the number that was asked for.
    pub messages: Vec<ShownMessage>,
    /// Up to here nothing changes any more.
    pub settled_seq: i64,
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
    pub async fn view(&self, owner: &Principal, id: &ChatId, after: i64) -> Result<View, ChatError> {
        loop {
            let transcript = self.open_chats().look_into(owner, id).await?.transcript;
            let (rounds, posted_seq) = self.with(id, |chat| (chat.rounds, chat.posted_seq));
            // From the line that is being answered, to see whose answer is stored already.
            let stored = self
                .open_chats()
                .store
                .run(ReadEntries { id: id.clone(), after_seq: after.min(posted_seq), rows_max: u32::MAX })
                .await?;
            // What a crash cut off is shown as far as it came; it becomes part of the chat with the next line.
            let drafts = self.open_chats().store.run(ReadDrafts(id.clone())).await?;
            let view = self.with(id, |chat| {
                // Else an answer may have gone from here after the store was read, and would be in neither.
                (chat.rounds == rounds).then(|| combine(chat, transcript, stored, drafts, after))
            });
            if let Some(view) = view {
                return Ok(view);
            }
        }
    }
}

fn combine(chat: &LiveChat, transcript: Transcript, stored: Vec<StoredEntry>, drafts: Vec<Draft>, after: i64) -> View {
    let settled_seq = stored.last().map_or(after, |last| last.seq);
    let spoke = |model: &str| {
        let of_model = |entry: &StoredEntry| entry.entry.model.as_deref() == Some(model);
        stored.iter().any(|entry| entry.seq > chat.posted_seq && of_model(entry))
    };
    let under_way: Vec<_> = if chat.is_taken {
        let open = chat.open_answers.iter().filter(|open_answer| !spoke(open_answer.model()));
        open.flat_map(|open_answer| open_answer.entries().iter().cloned()).collect()
    } else {
        drafts.into_iter().flat_map(|draft| draft.entries).collect()
    };
    let under_way = under_way.into_iter().zip(settled_seq + 1..).map(|(entry, seq)| StoredEntry { seq, entry });
    let under_way: Vec<StoredEntry> = under_way.collect();
    // What is left of an answer that is not under way any more was cut off, as by the end of the server.
    let state = if chat.is_taken { ShownState::Running } else { ShownState::Failed };
    let mut later = shown(&under_way, state);
    for message in &mut later {
        let model = message.model.clone();
        for tool in &mut message.tools {
            tool.asked = tool.result.is_none() && chat.approvals.waits(model.as_deref(), &tool.id);
        }
    }
    let stored: Vec<StoredEntry> = stored.into_iter().filter(|entry| entry.seq > after).collect();
    let mut messages = shown(&stored, ShownState::Complete);
    messages.extend(later);
    View {
        transcript,
        messages,
        settled_seq,
        notices: chat.notices.clone(),
        spoken: chat.spoken.clone(),
        answering: chat.is_taken,
    }
}
