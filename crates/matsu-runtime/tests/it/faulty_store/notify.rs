//! The same faults for notices to people.

use async_trait::async_trait;
use matsu_core::clock::Timestamp;
use matsu_core::id::{NodeId, NoticeId, TaskId};
use matsu_core::notify::{AnswerCode, ChannelRow, ChannelState, CodeUse, NoticeEvent, NoticeOutcome, NoticeRow};
use matsu_core::ports::store::{NotifyStore, StoreError};

use super::FaultyStore;

#[async_trait]
impl NotifyStore for FaultyStore {
    async fn put_channels(&self, channels: &[ChannelRow], now: Timestamp) -> Result<Vec<String>, StoreError> {
        self.pass("put_channels", self.inner.put_channels(channels, now)).await
    }

    async fn add_notice(&self, task: &TaskId, event: NoticeEvent, key: &str, now: Timestamp) -> Result<(), StoreError> {
        self.pass("add_notice", self.inner.add_notice(task, event, key, now)).await
    }

    async fn take_notices(
        &self,
        channels: &[String],
        now: Timestamp,
        again_at: Timestamp,
        rows_max: u32,
    ) -> Result<Vec<NoticeRow>, StoreError> {
        self.pass("take_notices", self.inner.take_notices(channels, now, again_at, rows_max)).await
    }

    async fn settle_notices(
        &self,
        channel: &str,
        ids: &[NoticeId],
        outcome: NoticeOutcome,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.pass("settle_notices", self.inner.settle_notices(channel, ids, outcome, now)).await
    }

    async fn next_notice_at(&self, channels: &[String]) -> Result<Option<Timestamp>, StoreError> {
        self.pass("next_notice_at", self.inner.next_notice_at(channels)).await
    }

    async fn channel_states(&self) -> Result<Vec<ChannelState>, StoreError> {
        self.pass("channel_states", self.inner.channel_states()).await
    }

    async fn put_codes(&self, codes: &[AnswerCode], now: Timestamp) -> Result<(), StoreError> {
        self.pass("put_codes", self.inner.put_codes(codes, now)).await
    }

    async fn use_code(
        &self,
        channel: &str,
        hash: &str,
        made_after: Timestamp,
        now: Timestamp,
    ) -> Result<CodeUse, StoreError> {
        self.pass("use_code", self.inner.use_code(channel, hash, made_after, now)).await
    }

    async fn lease_replies(
        &self,
        channel: &str,
        node: &NodeId,
        until: Timestamp,
        now: Timestamp,
    ) -> Result<Option<Option<String>>, StoreError> {
        self.pass("lease_replies", self.inner.lease_replies(channel, node, until, now)).await
    }

    async fn set_reply_position(&self, channel: &str, position: &str) -> Result<(), StoreError> {
        self.pass("set_reply_position", self.inner.set_reply_position(channel, position)).await
    }

    async fn sweep_notices(&self, unused_since: Timestamp, rows_max: u32) -> Result<u64, StoreError> {
        self.pass("sweep_notices", self.inner.sweep_notices(unused_since, rows_max)).await
    }
}
