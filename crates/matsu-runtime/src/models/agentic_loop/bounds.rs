//! What ends a loop before its model is done: its time, and a cancellation.

use std::time::Duration;

use matsu_core::error_code::ErrorCode;
use tokio_util::sync::CancellationToken;

use super::event::{LoopError, StopReason};
use super::stopwatch::Stopwatch;

/// Why the loop leaves before the model is done.
pub struct Leave {
    pub reason: StopReason,
    pub error: LoopError,
}

impl Leave {
    pub fn new(reason: StopReason, code: ErrorCode, message: impl Into<String>) -> Self {
        Self { reason, error: LoopError { code, message: message.into() } }
    }
}

/// What ends everything that the loop waits for.
pub struct Bounds {
    pub stopwatch: Stopwatch,
    pub time_max: Duration,
    pub cancel: CancellationToken,
}

impl Bounds {
    /// Runs something until it is done, the time is over, or it is cancelled.
    pub async fn run<T>(&self, work: impl Future<Output = T>) -> Result<T, Leave> {
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => {
                Err(Leave::new(StopReason::Cancelled, ErrorCode::TaskStopped, "stopped"))
            }
            done = work => Ok(done),
            () = self.stopwatch.expired() => {
                let words = format!("no answer within {} s (chat.seconds_max)", self.time_max.as_secs());
                Err(Leave::new(StopReason::Timeout, ErrorCode::JobTimeout, words))
            }
        }
    }
}
