//! Notices to people: their channels, the outbox, and the codes of answers.
//!
//! Most notices are written by the transition that ends a task or asks a question.

use async_trait::async_trait;

use crate::clock::Timestamp;
use crate::id::{NodeId, NoticeId, TaskId};
use crate::notify::{AnswerCode, ChannelRow, ChannelState, CodeUse, NoticeEvent, NoticeOutcome, NoticeRow};

use super::StoreError;

#[async_trait]
pub trait NotifyStore {
    /// From now on ends and questions make notices for these channels. Returns the reply topic of each, in order: the
    /// first one that was stored.
    async fn put_channels(&self, channels: &[ChannelRow], now: Timestamp) -> Result<Vec<String>, StoreError>;

    /// Writes the notices of an event that is no end and no question. The same key makes none again.
    async fn add_notice(&self, task: &TaskId, event: NoticeEvent, key: &str, now: Timestamp) -> Result<(), StoreError>;

    /// Notices of these channels that are due, oldest first, at most `rows_max` of each. They are not due again before
    /// `again_at`, so that one node sends each of them, and a node that dies meanwhile loses none.
    async fn take_notices(
        &self,
        channels: &[String],
        now: Timestamp,
        again_at: Timestamp,
        rows_max: u32,
    ) -> Result<Vec<NoticeRow>, StoreError>;

    /// Notes what came of notices of one channel.
    async fn settle_notices(
        &self,
        channel: &str,
        ids: &[NoticeId],
        outcome: NoticeOutcome,
        now: Timestamp,
    ) -> Result<(), StoreError>;

    /// When the next notice of these channels is due.
    async fn next_notice_at(&self, channels: &[String]) -> Result<Option<Timestamp>, StoreError>;

    /// Channels with notices that wait, by name.
    async fn channel_states(&self) -> Result<Vec<ChannelState>, StoreError>;

    async fn put_codes(&self, codes: &[AnswerCode], now: Timestamp) -> Result<(), StoreError>;

    /// Uses up a code of this channel that was made after `made_after`.
    async fn use_code(
        &self,
        channel: &str,
        hash: &str,
        made_after: Timestamp,
        now: Timestamp,
    ) -> Result<CodeUse, StoreError>;

    /// Makes this node the one that reads the answers of a channel, if no other is until now. Returns where to read on;
    /// `None`: another node reads them.
    async fn lease_replies(
        &self,
        channel: &str,
        node: &NodeId,
        until: Timestamp,
        now: Timestamp,
    ) -> Result<Option<Option<String>>, StoreError>;

    /// How far the answers of a channel were read.
    async fn set_reply_position(&self, channel: &str, position: &str) -> Result<(), StoreError>;

    /// Removes notices, codes and channels that were not used after this, at most `rows_max` each.
    async fn sweep_notices(&self, unused_since: Timestamp, rows_max: u32) -> Result<u64, StoreError>;
}
