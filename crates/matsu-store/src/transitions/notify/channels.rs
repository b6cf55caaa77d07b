//! Notices to people: written beside the change that they report, taken by one node at a time, settled.

use matsu_core::clock::Timestamp;
use matsu_core::id::{NoticeId, TaskId};
use matsu_core::notify::{ChannelState, NoticeEvent, NoticeOutcome, NoticeRow};
use matsu_core::ports::store::{
    AddNotice, BundleNotices, ChannelStates, NextNoticeAt, NoteChannel, PutChannels, ReadTask, SettleNotices,
    StoreError, SweepNotices, TakeNotices, TaskLookup,
};

use crate::sql::{Row, Sql, Transition, Tx, internal, params};
use crate::transitions::notices;

const PUT_CHANNEL: Sql = Sql::both(
    "INSERT INTO notify_channels (name, owner, events, reply_topic, seen_at) VALUES ($1, $2, $3, $4, $5) \
     ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, events = excluded.events, seen_at = excluded.seen_at \
     RETURNING reply_topic",
);
/// Rows that another node takes at this moment are skipped.
const DUE: Sql = Sql::each(
    "SELECT id, channel, event, task_id, key, attempts, bundle, created_at FROM outbox \
     WHERE channel = $1 AND due_at <= $2 ORDER BY due_at, seq LIMIT $3",
    "SELECT id, channel, event, task_id, key, attempts, bundle, created_at FROM outbox \
     WHERE channel = $1 AND due_at <= $2 ORDER BY due_at, seq LIMIT $3 FOR UPDATE SKIP LOCKED",
);
const TAKE: Sql = Sql::each(
    "UPDATE outbox SET due_at = $2, attempts = attempts + 1 WHERE id = $1",
    "UPDATE outbox SET due_at = $2, attempts = attempts + 1 WHERE id = ANY($1)",
);
const BUNDLE: Sql = Sql::each(
    "UPDATE outbox SET bundle = $2 WHERE id = $1 AND due_at IS NOT NULL",
    "UPDATE outbox SET bundle = $2 WHERE id = ANY($1) AND due_at IS NOT NULL",
);
const SETTLE: Sql = Sql::each(
    "UPDATE outbox SET due_at = CAST($2 AS BIGINT), last_error = CAST($3 AS TEXT), settled_at = CAST($4 AS BIGINT) \
     WHERE id = $1 AND due_at IS NOT NULL",
    "UPDATE outbox SET due_at = CAST($2 AS BIGINT), last_error = CAST($3 AS TEXT), settled_at = CAST($4 AS BIGINT) \
     WHERE id = ANY($1) AND due_at IS NOT NULL",
);
/// A channel that is down is not tried once for every notice that waits in it.
const PUT_OFF: Sql = Sql::both("UPDATE outbox SET due_at = $2 WHERE channel = $1 AND due_at < $2");
const NEXT: Sql = Sql::each(
    "SELECT min(due_at) FROM outbox WHERE channel = $1 AND due_at IS NOT NULL",
    "SELECT min(due_at) FROM outbox WHERE channel = ANY($1) AND due_at IS NOT NULL",
);
/// Only where it changes: most messages arrive as the one before did.
const NOTE: Sql = Sql::both(
    "UPDATE notify_channels SET last_error = CAST($2 AS TEXT) \
     WHERE name = $1 AND coalesce(last_error, '') <> coalesce(CAST($2 AS TEXT), '')",
);
const STATES: Sql = Sql::both(
    "SELECT name, waiting, last_error FROM (SELECT c.name, c.last_error, (SELECT count(*) FROM outbox o \
     WHERE o.channel = c.name AND o.due_at IS NOT NULL) AS waiting FROM notify_channels c) AS states \
     WHERE waiting > 0 OR last_error IS NOT NULL ORDER BY name",
);
const SWEEP_SETTLED: Sql = Sql::both(
    "DELETE FROM outbox WHERE seq IN (SELECT seq FROM outbox WHERE settled_at < $1 ORDER BY settled_at LIMIT $2)",
);
const SWEEP_CODES: Sql =
    Sql::both("DELETE FROM answer_codes WHERE hash IN (SELECT hash FROM answer_codes WHERE created_at < $1 LIMIT $2)");
const SWEEP_CHANNELS: Sql = Sql::both("DELETE FROM notify_channels WHERE seen_at < $1");
const SWEEP_LEFT: Sql = Sql::both(
    "DELETE FROM outbox WHERE seq IN (SELECT seq FROM outbox WHERE created_at < $1 \
     AND channel NOT IN (SELECT name FROM notify_channels) LIMIT $2)",
);

impl Transition for AddNotice {
    async fn run(&self, tx: &mut Tx<'_>) -> Result<(), StoreError> {
        match ReadTask(self.task.clone()).run(tx).await? {
            TaskLookup::Found(task) => notices::add(tx, &task, self.event, &self.key, self.now).await,
            TaskLookup::Expired { .. } => Ok(()),
        }
    }
}

impl Transition for PutChannels {
    async fn run(&self, tx: &mut Tx<'_>) -> Result<Vec<String>, StoreError> {
        let mut topics = Vec::new();
        for channel in &self.channels {
            // With a comma on both sides of each word, so that one pattern finds it.
            let events = channel.events.iter().map(|event| event.as_str()).collect::<Vec<_>>().join(",");
            let events = format!(",{events},");
            let row = params![&channel.name, &channel.owner, &events, &channel.reply_topic, self.now];
            let row = tx.row(&PUT_CHANNEL, row).await?.ok_or_else(|| internal("a channel was not stored"))?;
            topics.push(row.only_text()?);
        }
        Ok(topics)
    }
}

impl Transition for TakeNotices {
    async fn run(&self, tx: &mut Tx<'_>) -> Result<Vec<NoticeRow>, StoreError> {
        let mut taken = Vec::new();
        for channel in &self.channels {
            let rows = tx.rows(&DUE, params![channel, self.now, self.rows_max]).await?;
            for row in &rows {
                taken.push(notice(row)?);
            }
        }
        let ids: Vec<&str> = taken.iter().map(|notice| notice.id.as_str()).collect();
        tx.run_of(&TAKE, &ids, params![self.again_at]).await?;
        Ok(taken)
    }
}

fn notice(row: &Row) -> Result<NoticeRow, StoreError> {
    let mut c = row.columns();
    Ok(NoticeRow {
        id: NoticeId::from_text(c.text()?),
        channel: c.text()?,
        event: c.word(NoticeEvent::parse)?,
        task_id: TaskId::from_text(c.text()?),
        key: c.text()?,
        attempts: c.count()?,
        bundle: c.opt_text()?,
        created_at: c.time()?,
    })
}

impl Transition for BundleNotices {
    async fn run(&self, tx: &mut Tx<'_>) -> Result<(), StoreError> {
        let ids: Vec<&str> = self.ids.iter().map(NoticeId::as_str).collect();
        tx.run_of(&BUNDLE, &ids, params![&self.bundle]).await.map(drop)
    }
}

impl Transition for SettleNotices {
    async fn run(&self, tx: &mut Tx<'_>) -> Result<(), StoreError> {
        let (due_at, error) = match &self.outcome {
            NoticeOutcome::Sent | NoticeOutcome::NotNeeded => (None, None),
            NoticeOutcome::Later { error, due_at } => (Some(*due_at), Some(error)),
            NoticeOutcome::GivenUp { error } => (None, Some(error)),
        };
        let settled_at = due_at.is_none().then_some(self.now);
        let ids: Vec<&str> = self.ids.iter().map(NoticeId::as_str).collect();
        tx.run_of(&SETTLE, &ids, params![due_at, error, settled_at]).await?;
        if let Some(due_at) = due_at {
            tx.run(&PUT_OFF, params![&self.channel, due_at]).await?;
        }
        if self.outcome != NoticeOutcome::NotNeeded {
            tx.run(&NOTE, params![&self.channel, error]).await?;
        }
        Ok(())
    }
}

impl Transition for NoteChannel {
    async fn run(&self, tx: &mut Tx<'_>) -> Result<(), StoreError> {
        tx.run(&NOTE, params![&self.channel, self.error.as_deref()]).await.map(drop)
    }
}

impl Transition for NextNoticeAt {
    const READS: bool = true;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Option<Timestamp>, StoreError> {
        let channels: Vec<&str> = self.0.iter().map(String::as_str).collect();
        let rows = tx.rows_of(&NEXT, &channels, params![]).await?;
        let times = rows.iter().map(|row| row.columns().opt_time()).collect::<Result<Vec<_>, _>>()?;
        Ok(times.into_iter().flatten().min())
    }
}

impl Transition for ChannelStates {
    const READS: bool = true;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Vec<ChannelState>, StoreError> {
        let rows = tx.rows(&STATES, params![]).await?;
        let state = |row: &Row| {
            let mut c = row.columns();
            Ok(ChannelState { channel: c.text()?, waiting: c.int()?, last_error: c.opt_text()? })
        };
        rows.iter().map(state).collect()
    }
}

impl Transition for SweepNotices {
    async fn run(&self, tx: &mut Tx<'_>) -> Result<u64, StoreError> {
        let bounds = params![self.unused_since, self.rows_max];
        let settled = tx.run(&SWEEP_SETTLED, bounds).await?;
        let codes = tx.run(&SWEEP_CODES, bounds).await?;
        tx.run(&SWEEP_CHANNELS, params![self.unused_since]).await?;
        Ok(settled + codes + tx.run(&SWEEP_LEFT, bounds).await?)
    }
}
