//! Transcripts of chats with models: only appended to. A draft is replaced until its answer is appended.

use async_trait::async_trait;

use crate::clock::Timestamp;
use crate::history::Entry;
use crate::id::ChatId;
use crate::principal::Principal;
use crate::transcript::{Draft, NewTranscript, StoredEntry, Transcript};

use super::StoreError;

#[async_trait]
pub trait TranscriptStore {
    async fn open_transcript(&self, new: NewTranscript) -> Result<Transcript, StoreError>;

    async fn transcript(&self, id: &ChatId) -> Result<Transcript, StoreError>;

    /// The owner's, the last changed first; bounded.
    async fn transcripts(&self, owner: &Principal) -> Result<Vec<Transcript>, StoreError>;

    /// Entries after that number, oldest first.
    async fn entries(&self, id: &ChatId, after_seq: i64, rows_max: u32) -> Result<Vec<StoredEntry>, StoreError>;

    /// Appends under the chat's next numbers, and forgets the draft that these entries finish. Returns the last
    /// number. An ended chat is `Closed`.
    async fn append_entries(&self, request: AppendEntries) -> Result<i64, StoreError>;

    /// Replaces a model's draft.
    async fn save_draft(&self, id: &ChatId, draft: Draft, now: Timestamp) -> Result<(), StoreError>;

    /// By model.
    async fn drafts(&self, id: &ChatId) -> Result<Vec<Draft>, StoreError>;

    async fn describe_transcript(&self, request: Describe) -> Result<Transcript, StoreError>;
}

#[derive(Clone, Debug)]
pub struct AppendEntries {
    pub chat_id: ChatId,
    pub entries: Vec<Entry>,
    /// The model whose draft is finished by this.
    pub finishes: Option<String>,
    pub now: Timestamp,
}

/// What is to be changed about a transcript.
#[derive(Clone, Debug)]
pub struct Describe {
    pub chat_id: ChatId,
    pub change: Change,
    pub now: Timestamp,
}

#[derive(Clone, Debug)]
pub enum Change {
    /// Another chat of that name keeps it, and this is `Refused`.
    Name(String),
    /// Another chat of that name loses it.
    TakeName(String),
    SystemPrompt(Option<String>),
    Ended,
    Reopened,
}
