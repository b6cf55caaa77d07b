//! Transcripts of chats with models: only appended to. A draft is replaced until its answer is appended.

use crate::clock::Timestamp;
use crate::history::Entry;
use crate::id::ChatId;
use crate::principal::Principal;
use crate::transcript::{Draft, NewTranscript, StoredEntry, Transcript};

use super::request;

#[derive(Clone, Debug)]
pub struct OpenTranscript(pub NewTranscript);
request!(OpenTranscript => Transcript);

#[derive(Clone, Debug)]
pub struct ReadTranscript(pub ChatId);
request!(ReadTranscript => Transcript);

/// The owner's, the last changed first; bounded.
#[derive(Clone, Debug)]
pub struct ListTranscripts(pub Principal);
request!(ListTranscripts => Vec<Transcript>);

/// The transcript, its entries after that number, oldest first, and its drafts, by model: all of one moment.
#[derive(Clone, Debug)]
pub struct ReadChatContent {
    pub id: ChatId,
    pub after_seq: i64,
}
request!(ReadChatContent => ChatContent);

/// Entries after that number, oldest first.
#[derive(Clone, Debug)]
pub struct ReadEntries {
    pub id: ChatId,
    pub after_seq: i64,
    pub rows_max: u32,
}
request!(ReadEntries => Vec<StoredEntry>);

/// Appends under the chat's next numbers, and forgets the draft that these entries finish. Returns the last
/// number. An ended chat is `Closed`.
#[derive(Clone, Debug)]
pub struct AppendTranscript(pub AppendEntries);
request!(AppendTranscript => i64);

/// Replaces a model's draft.
#[derive(Clone, Debug)]
pub struct SaveDraft {
    pub id: ChatId,
    pub draft: Draft,
    pub now: Timestamp,
}
request!(SaveDraft => ());

#[derive(Clone, Debug)]
pub struct DescribeTranscript(pub Describe);
request!(DescribeTranscript => Transcript);

#[derive(Clone, Debug)]
pub struct ChatContent {
    pub transcript: Transcript,
    pub entries: Vec<StoredEntry>,
    pub drafts: Vec<Draft>,
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
