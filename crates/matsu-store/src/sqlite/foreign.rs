//! Noticing what other processes do to the same file.
//!
//! SQLite shows a connection that another one changed the file, but only when asked. So it is asked often while another
//! live process has the store open, and not at all while there is none.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use matsu_core::clock::Clock;
use matsu_core::limits::FOREIGN_POLL_EVERY;
use matsu_core::ports::store::ForeignChange;

use super::files::NodeLocks;
use super::writer::Writer;

/// How often to look whether another process has come.
const LOOK_FOR_OTHERS_EVERY: Duration = Duration::from_secs(1);
const POLLS_PER_LOOK: u32 = 20;

/// The last number seen. It outlives each wait, so that nothing is missed between two of them.
#[derive(Default)]
pub struct LastSeen(AtomicI64);

/// Returns when another process has changed the file.
pub async fn change(writer: &Writer, nodes: &NodeLocks, seen: &LastSeen, clock: &Clock) -> ForeignChange {
    loop {
        if !nodes.others_live() {
            clock.sleep(LOOK_FOR_OTHERS_EVERY).await;
            // One look all the same, for a process that started, wrote and ended in between.
            if moved(writer, seen).await {
                return ForeignChange::Unknown;
            }
            continue;
        }
        for _ in 0..POLLS_PER_LOOK {
            clock.sleep(FOREIGN_POLL_EVERY).await;
            if moved(writer, seen).await {
                return ForeignChange::Unknown;
            }
        }
    }
}

async fn moved(writer: &Writer, seen: &LastSeen) -> bool {
    match writer.data_version().await {
        Ok(now) => seen.0.swap(now, Ordering::Relaxed) != now,
        Err(_) => false,
    }
}
