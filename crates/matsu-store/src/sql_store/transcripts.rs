//! The transcript port on top of the transitions.

use async_trait::async_trait;
use matsu_core::clock::Timestamp;
use matsu_core::id::ChatId;
use matsu_core::ports::store::{AppendEntries, Describe, StoreError, TranscriptStore};
use matsu_core::principal::Principal;
use matsu_core::transcript::{Draft, NewTranscript, StoredEntry, Transcript};

use super::SqlStore;
use crate::transitions::transcripts::{
    Append, DescribeTranscript, ListTranscripts, OpenTranscript, ReadDrafts, ReadEntries, ReadTranscript, SaveDraft,
};

#[async_trait]
impl TranscriptStore for SqlStore {
    async fn open_transcript(&self, new: NewTranscript) -> Result<Transcript, StoreError> {
        self.write(OpenTranscript(new)).await
    }

    async fn transcript(&self, id: &ChatId) -> Result<Transcript, StoreError> {
        self.read(ReadTranscript(id.clone())).await
    }

    async fn transcripts(&self, owner: &Principal) -> Result<Vec<Transcript>, StoreError> {
        self.read(ListTranscripts(owner.clone())).await
    }

    async fn entries(&self, id: &ChatId, after_seq: i64, rows_max: u32) -> Result<Vec<StoredEntry>, StoreError> {
        self.read(ReadEntries { id: id.clone(), after_seq, rows_max }).await
    }

    async fn append_entries(&self, request: AppendEntries) -> Result<i64, StoreError> {
        self.write(Append(request)).await
    }

    async fn save_draft(&self, id: &ChatId, draft: Draft, now: Timestamp) -> Result<(), StoreError> {
        self.write(SaveDraft { id: id.clone(), draft, now }).await
    }

    async fn drafts(&self, id: &ChatId) -> Result<Vec<Draft>, StoreError> {
        self.read(ReadDrafts(id.clone())).await
    }

    async fn describe_transcript(&self, request: Describe) -> Result<Transcript, StoreError> {
        self.write(DescribeTranscript(request)).await
    }
}
