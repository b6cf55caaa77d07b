//! The same faults for transcripts.

use async_trait::async_trait;
use matsu_core::clock::Timestamp;
use matsu_core::id::ChatId;
use matsu_core::ports::store::{AppendEntries, Describe, StoreError, TranscriptStore};
use matsu_core::principal::Principal;
use matsu_core::transcript::{Draft, NewTranscript, StoredEntry, Transcript};

use super::FaultyStore;

#[async_trait]
impl TranscriptStore for FaultyStore {
    async fn open_transcript(&self, new: NewTranscript) -> Result<Transcript, StoreError> {
        self.pass("open_transcript", self.inner.open_transcript(new)).await
    }

    async fn transcript(&self, id: &ChatId) -> Result<Transcript, StoreError> {
        self.pass("transcript", self.inner.transcript(id)).await
    }

    async fn transcripts(&self, owner: &Principal) -> Result<Vec<Transcript>, StoreError> {
        self.pass("transcripts", self.inner.transcripts(owner)).await
    }

    async fn entries(&self, id: &ChatId, after_seq: i64, rows_max: u32) -> Result<Vec<StoredEntry>, StoreError> {
        self.pass("entries", self.inner.entries(id, after_seq, rows_max)).await
    }

    async fn append_entries(&self, request: AppendEntries) -> Result<i64, StoreError> {
        self.pass("append_entries", self.inner.append_entries(request)).await
    }

    async fn save_draft(&self, id: &ChatId, draft: Draft, now: Timestamp) -> Result<(), StoreError> {
        self.pass("save_draft", self.inner.save_draft(id, draft, now)).await
    }

    async fn drafts(&self, id: &ChatId) -> Result<Vec<Draft>, StoreError> {
        self.pass("drafts", self.inner.drafts(id)).await
    }

    async fn describe_transcript(&self, request: Describe) -> Result<Transcript, StoreError> {
        self.pass("describe_transcript", self.inner.describe_transcript(request)).await
    }
}
