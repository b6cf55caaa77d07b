//! Notices to people: sends what the outbox holds, and takes the answers that come back.
//!
//! The transaction that ends a task or asks a question writes its notices. So nothing is missed while no daemon runs,
//! and each notice is sent at least once, by the node that has its lease.

mod answers;
mod message;
mod pace;
pub mod push;
pub mod schedules;
pub mod webhooks;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{join, join_all};
use tokio_util::sync::CancellationToken;

use matsu_core::change::Topic;
use matsu_core::limits::{NOTICE_BUNDLE_MAX, NOTICE_GIVEN_UP_AFTER, NOTICE_LEASE, SAFETY_READ_EVERY};
use matsu_core::notify::{ChannelRow, NoticeEvent, NoticeMessage, NoticeOutcome, NoticeRow};
use matsu_core::ports::notice_channel::NoticeChannel;
use matsu_core::ports::store::{BundleNotices, NextNoticeAt, PutChannels, SettleNotices, StoreError, TakeNotices};
use matsu_core::secret;

use crate::runtime::Runtime;
use crate::tasks::TaskError;
use pace::Pace;

/// As many notices of one channel at once are one message.
const BUNDLED_FROM: usize = 4;

/// Looks are at least this far apart, however many tasks end.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// The store forgets a channel that no daemon names for a week, so it is named again now and then.
const NAMED_EVERY: Duration = Duration::from_secs(3600);

type Channels = [Arc<dyn NoticeChannel>];

/// Sends notices and takes answers until it is cancelled.
pub async fn run(runtime: &Runtime, channels: &Channels, until: &CancellationToken) {
    if channels.is_empty() {
        return;
    }
    let work = async {
        let topics = name_channels(runtime, channels).await;
        let replying = channels.iter().zip(&topics).filter(|(channel, _)| channel.has_replies());
        let answers = join_all(replying.map(|(channel, topic)| answers::run(runtime, channel.as_ref(), topic)));
        join(send_all(runtime, channels, &topics), answers).await;
    };
    let _ended = until.run_until_cancelled(work).await;
}

/// Names the channels to the store, however long it is away. Returns their reply topics.
async fn name_channels(runtime: &Runtime, channels: &Channels) -> Vec<String> {
    let rows: Vec<ChannelRow> = channels.iter().map(|channel| row(channel.as_ref())).collect();
    loop {
        match runtime.store().run(PutChannels { channels: rows.clone(), now: runtime.clock().now() }).await {
            Ok(topics) => return topics,
            Err(error) => tracing::warn!(%error, "the channels of notices could not be stored; trying again"),
        }
        runtime.clock().sleep(SAFETY_READ_EVERY).await;
    }
}

/// Whether the store keeps notices of this event for the channel.
fn is_kept(channel: &dyn NoticeChannel, kept: NoticeEvent) -> bool {
    channel.rules().events.iter().any(|wanted| wanted.kept_as().contains(&kept))
}

fn row(channel: &dyn NoticeChannel) -> ChannelRow {
    ChannelRow {
        name: channel.name().to_owned(),
        owner: channel.rules().owner.clone(),
        events: NoticeEvent::ALL.iter().copied().filter(|kept| is_kept(channel, *kept)).collect(),
        reply_topic: format!("matsu-{}", secret::code()),
    }
}

/// The channels of this process, with what it knows about each.
struct Outbox<'a> {
    channels: &'a Channels,
    topics: &'a [String],
    paces: Vec<Pace>,
}

async fn send_all(runtime: &Runtime, channels: &Channels, topics: &[String]) {
    // Before the first look, so that nothing falls between.
    let subscription = runtime.hub().subscribe(&[Topic::outbox()]);
    let mut outbox = Outbox { channels, topics, paces: vec![Pace::default(); channels.len()] };
    let mut named_at = runtime.clock().instant();
    loop {
        let pause = outbox.step(runtime).await.unwrap_or_else(|error| {
            tracing::debug!(%error, "notices could not be read; trying again");
            SAFETY_READ_EVERY
        });
        if runtime.clock().instant() - named_at > NAMED_EVERY {
            name_channels(runtime, channels).await;
            named_at = runtime.clock().instant();
        }
        runtime.clock().sleep(LOOK_EVERY).await;
        tokio::select! {
            () = subscription.woken() => {}
            () = runtime.clock().sleep(pause) => {}
        }
    }
}

impl Outbox<'_> {
    /// Sends what is due, each channel for itself. Returns how long nothing is due.
    async fn step(&mut self, runtime: &Runtime) -> Result<Duration, TaskError> {
        let instant = runtime.clock().instant();
        let is_free = |at: &usize| self.paces[*at].free_at().is_none_or(|free| free <= instant);
        let free: Vec<usize> = (0..self.channels.len()).filter(is_free).collect();
        let names: Vec<String> = free.iter().map(|at| self.channels[*at].name().to_owned()).collect();
        let now = runtime.clock().now();
        let due = runtime
            .store()
            .run(TakeNotices {
                channels: names.clone(),
                now,
                again_at: now.plus(NOTICE_LEASE),
                rows_max: NOTICE_BUNDLE_MAX,
            })
            .await?;
        let sent = join_all(free.iter().map(|at| {
            let (channel, topic) = (self.channels[*at].as_ref(), self.topics[*at].as_str());
            let own: Vec<&NoticeRow> = due.iter().filter(|notice| notice.channel == channel.name()).collect();
            async move { (*at, send(runtime, channel, topic, &own).await) }
        }));
        for (at, messages) in sent.await {
            self.paces[at].sent(messages, runtime.clock().instant());
        }
        self.pause(runtime).await
    }

    /// Until the next notice is due, or the next channel may send again.
    async fn pause(&self, runtime: &Runtime) -> Result<Duration, TaskError> {
        let instant = runtime.clock().instant();
        let mut pause = SAFETY_READ_EVERY;
        for (channel, pace) in self.channels.iter().zip(&self.paces) {
            let Some(next) = runtime.store().run(NextNoticeAt(vec![channel.name().to_owned()])).await? else {
                continue;
            };
            let free = pace.free_at().map_or(Duration::ZERO, |free| free.saturating_duration_since(instant));
            pause = pause.min(next.since(runtime.clock().now()).max(free));
        }
        Ok(pause)
    }
}

/// Sends what one channel has. Returns how many messages went out.
async fn send(runtime: &Runtime, channel: &dyn NoticeChannel, topic: &str, due: &[&NoticeRow]) -> usize {
    let (mut tried, mut fresh) = (BTreeMap::<&str, Vec<&NoticeRow>>::new(), Vec::new());
    for notice in due {
        match &notice.bundle {
            Some(bundle) => tried.entry(bundle).or_default().push(notice),
            None => fresh.push(*notice),
        }
    }
    let mut count = 0;
    // What was tried as one message is that message again, with its id: it may have arrived although the answer did not.
    for (bundle, notices) in tried {
        let ready = compose(runtime, channel, &notices, true).await;
        count += send_bundle(runtime, channel, topic, bundle, ready).await;
    }
    count + send_fresh(runtime, channel, topic, &fresh).await
}

/// Each notice by itself, or many as one message.
async fn send_fresh(runtime: &Runtime, channel: &dyn NoticeChannel, topic: &str, due: &[&NoticeRow]) -> usize {
    let is_many = due.len() >= BUNDLED_FROM;
    let mut ready = compose(runtime, channel, due, is_many).await;
    if is_many && ready.len() < BUNDLED_FROM {
        // Some are not needed any more. The others are sent one by one, so with all that they say.
        let rest: Vec<&NoticeRow> = ready.iter().map(|(notice, _)| *notice).collect();
        ready = compose(runtime, channel, &rest, false).await;
    }
    if ready.len() >= BUNDLED_FROM {
        let bundle = message::bundle_id(&ready[0].1, ready.len());
        let ids = ready.iter().map(|(notice, _)| notice.id.clone()).collect();
        // Before it is sent, so that every try has this id. If it cannot be stored, they come again.
        if let Err(error) = runtime.store().run(BundleNotices { ids, bundle: bundle.clone() }).await {
            tracing::debug!(%error, "grouping of notices could not be stored");
            return 0;
        }
        return send_bundle(runtime, channel, topic, &bundle, ready).await;
    }
    let count = ready.len();
    for (notice, message) in &ready {
        let sent = channel.send(message, topic).await;
        settle_sent(runtime, channel, &[notice], sent).await;
    }
    count
}

/// Sends notices as one message, unless none is left.
async fn send_bundle(
    runtime: &Runtime,
    channel: &dyn NoticeChannel,
    topic: &str,
    id: &str,
    ready: Vec<(&NoticeRow, NoticeMessage)>,
) -> usize {
    let (notices, messages): (Vec<&NoticeRow>, Vec<_>) = ready.into_iter().unzip();
    let Some(message) = message::bundle(id, &messages) else { return 0 };
    let sent = channel.send(&message, topic).await;
    settle_sent(runtime, channel, &notices, sent).await;
    1
}

/// What is to be sent. Notices that are not needed any more are settled.
async fn compose<'n>(
    runtime: &Runtime,
    channel: &dyn NoticeChannel,
    due: &[&'n NoticeRow],
    is_bundled: bool,
) -> Vec<(&'n NoticeRow, NoticeMessage)> {
    let (mut ready, mut not_needed) = (Vec::new(), Vec::new());
    for notice in due {
        match message::of(runtime, channel, notice, is_bundled).await {
            Ok(Some(message)) => ready.push((*notice, message)),
            Ok(None) => not_needed.push(*notice),
            // The lease ends and it comes again.
            Err(error) => tracing::debug!(%error, "the task of a notice could not be read"),
        }
    }
    settle(runtime, channel, &not_needed, NoticeOutcome::NotNeeded).await;
    ready
}

async fn settle_sent(runtime: &Runtime, channel: &dyn NoticeChannel, notices: &[&NoticeRow], sent: Result<(), String>) {
    let Err(error) = sent else { return settle(runtime, channel, notices, NoticeOutcome::Sent).await };
    let attempts = notices.iter().map(|notice| notice.attempts).max().unwrap_or(0);
    tracing::warn!(channel = channel.name(), error, attempt = attempts + 1, "a notice could not be sent");
    let now = runtime.clock().now();
    let is_old = |notice: &&&NoticeRow| now.since(notice.created_at) >= NOTICE_GIVEN_UP_AFTER;
    let (old, young): (Vec<&NoticeRow>, Vec<&NoticeRow>) = notices.iter().partition(|notice| is_old(notice));
    settle(runtime, channel, &old, NoticeOutcome::GivenUp { error: error.clone() }).await;
    let due_at = now.plus(pace::retry_after(attempts));
    settle(runtime, channel, &young, NoticeOutcome::Later { error, due_at }).await;
}

async fn settle(runtime: &Runtime, channel: &dyn NoticeChannel, notices: &[&NoticeRow], outcome: NoticeOutcome) {
    if notices.is_empty() {
        return;
    }
    let ids: Vec<_> = notices.iter().map(|notice| notice.id.clone()).collect();
    let now = runtime.clock().now();
    let settled: Result<(), StoreError> =
        runtime.store().run(SettleNotices { channel: channel.name().to_owned(), ids: ids.clone(), outcome, now }).await;
    // They come again when their lease ends; their ids are the same.
    if let Err(error) = settled {
        tracing::debug!(%error, "delivery result of a notice could not be stored");
    }
}
