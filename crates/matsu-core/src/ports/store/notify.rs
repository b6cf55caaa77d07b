//! Notices to people: their channels, the outbox, and the codes of answers.
//!
//! Most notices are written by the transition that ends a task or asks a question.

use crate::clock::Timestamp;
use crate::id::{NodeId, NoticeId, TaskId};
use crate::notify::{AnswerCode, ChannelRow, ChannelState, CodeUse, NoticeEvent, NoticeOutcome, NoticeRow};

use super::request;

/// From now on ends and questions make notices for these channels. Returns the reply topic of each, in order: the
/// first one that was stored.
#[derive(Clone, Debug)]
pub struct PutChannels {
    pub channels: Vec<ChannelRow>,
    pub now: Timestamp,
}
request!(PutChannels => Vec<String>);

/// Writes the notices of an event that is no end and no question. The same key makes none again.
#[derive(Clone, Debug)]
pub struct AddNotice {
    pub task: TaskId,
    pub event: NoticeEvent,
    pub key: String,
    pub now: Timestamp,
}
request!(AddNotice => ());

/// Notices of these channels that are due, oldest first, at most `rows_max` of each. They are not due again before
/// `again_at`, so that one node sends each of them, and a node that dies meanwhile loses none.
#[derive(Clone, Debug)]
pub struct TakeNotices {
    pub channels: Vec<String>,
    pub now: Timestamp,
    pub again_at: Timestamp,
    pub rows_max: u32,
}
request!(TakeNotices => Vec<NoticeRow>);

/// From now on these notices are one message with this id, however often it is tried.
#[derive(Clone, Debug)]
pub struct BundleNotices {
    pub ids: Vec<NoticeId>,
    pub bundle: String,
}
request!(BundleNotices => ());

/// Notes what came of notices of one channel.
#[derive(Clone, Debug)]
pub struct SettleNotices {
    pub channel: String,
    pub ids: Vec<NoticeId>,
    pub outcome: NoticeOutcome,
    pub now: Timestamp,
}
request!(SettleNotices => ());

/// When the next notice of these channels is due.
#[derive(Clone, Debug)]
pub struct NextNoticeAt(pub Vec<String>);
request!(NextNoticeAt => Option<Timestamp>);

/// Notes what a message of a channel came to that is no notice: `None`, it arrived.
#[derive(Clone, Debug)]
pub struct NoteChannel {
    pub channel: String,
    pub error: Option<String>,
}
request!(NoteChannel => ());

/// Channels with notices that wait or whose last message did not arrive, by name.
#[derive(Clone, Debug)]
pub struct ChannelStates;
request!(ChannelStates => Vec<ChannelState>);

#[derive(Clone, Debug)]
pub struct PutCodes {
    pub codes: Vec<AnswerCode>,
    pub now: Timestamp,
}
request!(PutCodes => ());

/// Uses up a code of this channel that was made after `made_after`.
#[derive(Clone, Debug)]
pub struct UseCode {
    pub channel: String,
    pub hash: String,
    pub made_after: Timestamp,
    pub now: Timestamp,
}
request!(UseCode => CodeUse);

/// Makes this node the one that reads the answers of a channel, if no other is until now. Returns where to read on;
/// `None`: another node reads them.
#[derive(Clone, Debug)]
pub struct LeaseReplies {
    pub channel: String,
    pub node: NodeId,
    pub until: Timestamp,
    pub now: Timestamp,
}
request!(LeaseReplies => Option<Option<String>>);

/// How far the answers of a channel were read.
#[derive(Clone, Debug)]
pub struct SetReplyPosition {
    pub channel: String,
    pub position: String,
}
request!(SetReplyPosition => ());

/// Removes notices, codes and channels that were not used after this, at most `rows_max` each.
#[derive(Clone, Debug)]
pub struct SweepNotices {
    pub unused_since: Timestamp,
    pub rows_max: u32,
}
request!(SweepNotices => u64);
