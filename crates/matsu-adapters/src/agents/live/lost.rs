//! The end of a run whose supervisor is gone and has left no record.

use std::path::PathBuf;

use matsu_core::clock::Clock;

use super::super::orphans;
use super::super::sandbox::state::keep_sessions;
use super::super::supervisor::order::Supervision;
use super::super::worktree::Closed;

/// What its supervisor would have done at its end: no process is left, and its conversation is kept so that it can be resumed.
pub async fn end_lost(order: PathBuf, marker: String, clock: Clock) -> Closed {
    let closed = orphans::end(marker, clock).await;
    let kept = tokio::task::spawn_blocking(move || {
        let order: Option<Supervision> = std::fs::read(order).ok().and_then(|text| serde_json::from_slice(&text).ok());
        order.iter().flat_map(|order| &order.order.keep).for_each(keep_sessions);
    });
    if let Err(error) = kept.await {
        tracing::warn!(%error, "the conversation of a lost run could not be kept");
    }
    closed
}
