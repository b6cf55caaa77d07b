//! The one read that makes lost wake-ups harmless: every few seconds, and whenever another process may have written, it
//! reads what has changed and wakes the waits for that.

use matsu_core::change::{ChangeCursor, Topic};
use matsu_core::limits::{CHANGES_PER_READ_MAX, SAFETY_READ_EVERY};
use matsu_core::ports::store::{ChangesSince, ForeignChange, ReadChangeCursor, StoreError};

use crate::runtime::{Outage, Runtime};

pub async fn run(runtime: &Runtime) {
    let mut outage = Outage::new("safety read");
    let mut cursor = None;
    // Kept over the loop: dropping it could lose the change it was about to report.
    let mut foreign = runtime.store().foreign_change();
    // A moment, not a pause: notices from other nodes, however many, must not put the read off.
    let mut next_read_at = runtime.clock().instant();
    loop {
        let noticed = tokio::select! {
            biased;
            noticed = &mut foreign => Some(noticed),
            () = runtime.clock().sleep_until(next_read_at) => None,
        };
        if noticed.is_some() {
            foreign = runtime.store().foreign_change();
        }
        if let Some(ForeignChange::Topics(topics)) = &noticed {
            runtime.hub().publish(topics);
            if runtime.clock().instant() < next_read_at {
                continue;
            }
        }
        let was_out = outage.is_on();
        let read = read(runtime, &mut cursor).await;
        next_read_at = runtime.clock().instant() + outage.note(&read).unwrap_or(SAFETY_READ_EVERY);
        if was_out && read.is_ok() {
            // It is not known what was missed.
            runtime.hub().publish_all();
        } else if noticed.is_some() {
            // Work that was queued elsewhere is no change of any task that a caller here waits for.
            runtime.wake_queues();
        }
    }
}

/// Publishes what changed since the last read. The first one only finds out where it stands.
async fn read(runtime: &Runtime, cursor: &mut Option<ChangeCursor>) -> Result<(), StoreError> {
    let mut from = match *cursor {
        Some(from) => from,
        None => *cursor.insert(runtime.store().run(ReadChangeCursor).await?),
    };
    loop {
        let batch = runtime.store().run(ChangesSince { cursor: from, rows_max: CHANGES_PER_READ_MAX }).await?;
        let topics: Vec<Topic> = batch.changes.iter().map(|change| change.topic.clone()).collect();
        if !topics.is_empty() {
            runtime.hub().publish(&topics);
        }
        let is_last = batch.changes.len() < CHANGES_PER_READ_MAX as usize;
        // After publishing: a read that is repeated wakes twice, one that is skipped never.
        *cursor = Some(batch.cursor);
        from = batch.cursor;
        if is_last {
            return Ok(());
        }
    }
}
