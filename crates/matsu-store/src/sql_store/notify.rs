//! The port of notices to people on top of the transitions.

use async_trait::async_trait;
use matsu_core::clock::Timestamp;
use matsu_core::id::{NodeId, NoticeId, TaskId};
use matsu_core::notify::{AnswerCode, ChannelRow, ChannelState, CodeUse, NoticeEvent, NoticeOutcome, NoticeRow};
use matsu_core::ports::store::{NotifyStore, StoreError};

use super::SqlStore;
use crate::transitions::answer_codes::{LeaseReplies, PutCodes, SetReplyPosition, UseCode};
use crate::transitions::notify::{
    AddNotice, ChannelStates, NextNoticeAt, PutChannels, SettleNotices, SweepNotices, TakeNotices,
};

#[async_trait]
impl NotifyStore for SqlStore {
    async fn put_channels(&self, channels: &[ChannelRow], now: Timestamp) -> Result<Vec<String>, StoreError> {
        self.write(PutChannels { channels: channels.to_vec(), now }).await
    }

    async fn add_notice(&self, task: &TaskId, event: NoticeEvent, key: &str, now: Timestamp) -> Result<(), StoreError> {
        self.write(AddNotice { task: task.clone(), event, key: key.to_owned(), now }).await
    }

    async fn take_notices(
        &self,
        channels: &[String],
        now: Timestamp,
        again_at: Timestamp,
        rows_max: u32,
    ) -> Result<Vec<NoticeRow>, StoreError> {
        self.write(TakeNotices { channels: channels.to_vec(), now, again_at, rows_max }).await
    }

    async fn settle_notices(
        &self,
        channel: &str,
        ids: &[NoticeId],
        outcome: NoticeOutcome,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.write(SettleNotices { channel: channel.to_owned(), ids: ids.to_vec(), outcome, now }).await
    }

    async fn next_notice_at(&self, channels: &[String]) -> Result<Option<Timestamp>, StoreError> {
        self.read(NextNoticeAt(channels.to_vec())).await
    }

    async fn channel_states(&self) -> Result<Vec<ChannelState>, StoreError> {
        self.read(ChannelStates).await
    }

    async fn put_codes(&self, codes: &[AnswerCode], now: Timestamp) -> Result<(), StoreError> {
        self.write(PutCodes { codes: codes.to_vec(), now }).await
    }

    async fn use_code(
        &self,
        channel: &str,
        hash: &str,
        made_after: Timestamp,
        now: Timestamp,
    ) -> Result<CodeUse, StoreError> {
        self.write(UseCode { channel: channel.to_owned(), hash: hash.to_owned(), made_after, now }).await
    }

    async fn lease_replies(
        &self,
        channel: &str,
        node: &NodeId,
        until: Timestamp,
        now: Timestamp,
    ) -> Result<Option<Option<String>>, StoreError> {
        self.write(LeaseReplies { channel: channel.to_owned(), node: node.clone(), until, now }).await
    }

    async fn set_reply_position(&self, channel: &str, position: &str) -> Result<(), StoreError> {
        self.write(SetReplyPosition { channel: channel.to_owned(), position: position.to_owned() }).await
    }

    async fn sweep_notices(&self, unused_since: Timestamp, rows_max: u32) -> Result<u64, StoreError> {
        self.write(SweepNotices { unused_since, rows_max }).await
    }
}
