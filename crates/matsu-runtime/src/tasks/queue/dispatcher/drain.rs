//! The end of a dispatcher: bodies are ordered to end, then dropped, and every end is settled while there is time.
//!
//! A store that hangs must not hold up the process: each step here has its time limit, whatever the store does.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::runtime::Runtime;

use super::Dispatcher;

/// A request that was sent to the store before the shutdown may still be answered for this long.
const STEP_MAX: Duration = Duration::from_millis(1_000);
/// From the beginning of the drain: bodies that have not ended are ordered to abort, are dropped, are given up.
const ABORT_AFTER: Duration = Duration::from_millis(1_500);
const KILL_AFTER: Duration = Duration::from_millis(4_500);
const DRAIN_MAX: Duration = Duration::from_millis(5_000);

/// A dispatcher takes at most this long to end.
pub const DISPATCHER_END_MAX: Duration = STEP_MAX.saturating_add(DRAIN_MAX);

/// Returns some time after the shutdown began: a step that still waits for the store is then given up.
pub async fn step_takes_too_long(runtime: &Runtime, shutdown: &CancellationToken) {
    shutdown.cancelled().await;
    runtime.clock().sleep(STEP_MAX).await;
}

impl Dispatcher<'_> {
    pub async fn drain(&mut self) {
        let (runtime, slot) = (self.runtime, self.slot);
        let clock = *runtime.clock();
        let began = clock.instant();
        runtime.running().shut_down(slot);
        // Beside the settling and not between its steps, which may hang.
        let hardens = async {
            clock.sleep_until(began + ABORT_AFTER).await;
            runtime.running().abort_now(slot);
            clock.sleep_until(began + KILL_AFTER).await;
            runtime.running().kill(slot);
            clock.sleep_until(began + DRAIN_MAX).await;
        };
        tokio::select! {
            biased;
            () = self.settle_all() => {}
            () = hardens => {}
        }
        if !self.finishes.is_empty() {
            tracing::warn!(%slot, jobs = self.finishes.len(), "ended jobs could not be settled in time");
        }
    }

    /// Returns when nothing runs and the store has answered for every end.
    async fn settle_all(&mut self) {
        let clock = *self.runtime.clock();
        loop {
            self.collect().await;
            if self.crew.is_empty() && self.finishes.is_empty() {
                return;
            }
            let pause = if self.finishes.is_empty() { None } else { self.exchange(None).await.err() };
            if !self.finishes.is_empty() {
                clock.sleep(pause.unwrap_or(matsu_core::limits::STORE_RETRY_FIRST)).await;
            } else if !self.crew.is_empty() {
                let ended = self.crew.ended().await;
                self.ended.push_back(ended);
            }
        }
    }
}
