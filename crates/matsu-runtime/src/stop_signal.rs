//! How a running body learns that it should stop, and how hard. The level only ever rises.

use tokio::sync::watch;

/// The orders to a body, softest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum StopLevel {
    #[default]
    GoOn,
    /// The task was paused or blocked: stop at the next checkpoint.
    Yield,
    /// The task is being stopped: end soon, the result counts.
    EndSoon,
    /// The process ends: leave a checkpoint and go.
    Shutdown,
    /// Clean up and end now; in a moment it is taken off.
    Abort,
}

/// The listening end, one per running body. Cheap to clone.
#[derive(Clone, Debug)]
pub struct StopSignal {
    receiver: watch::Receiver<StopLevel>,
}

impl StopSignal {
    #[must_use]
    pub fn level(&self) -> StopLevel {
        *self.receiver.borrow()
    }

    /// Returns as soon as the body has been ordered to stop in any way.
    pub async fn stop_requested(&self) -> StopLevel {
        self.at_least(StopLevel::Yield).await
    }

    /// Returns when the level is at least this. A body that cleans up listens for [`StopLevel::Abort`].
    pub async fn at_least(&self, level: StopLevel) -> StopLevel {
        let mut receiver = self.receiver.clone();
        let current = receiver.wait_for(|current| *current >= level).await.map(|current| *current);
        // The sender was dropped: the runner of this body is gone.
        current.unwrap_or(StopLevel::Abort)
    }
}

/// The sending end.
#[derive(Debug)]
pub struct StopSender {
    sender: watch::Sender<StopLevel>,
}

impl StopSender {
    #[must_use]
    pub fn new() -> (Self, StopSignal) {
        let (sender, receiver) = watch::channel(StopLevel::GoOn);
        (Self { sender }, StopSignal { receiver })
    }

    /// A softer order than the last one is not sent.
    pub fn send(&self, level: StopLevel) {
        self.sender.send_if_modified(|last| {
            let is_harder = level > *last;
            *last = level.max(*last);
            is_harder
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn stop_words_only_get_harder_and_reach_late_listeners() {
        let (sender, signal) = StopSender::new();
        assert_eq!(signal.level(), StopLevel::GoOn);
        sender.send(StopLevel::EndSoon);
        sender.send(StopLevel::Yield);
        assert_eq!(signal.stop_requested().await, StopLevel::EndSoon);
        sender.send(StopLevel::Abort);
        assert_eq!(signal.clone().at_least(StopLevel::Abort).await, StopLevel::Abort);
    }

    #[tokio::test]
    async fn a_body_without_a_dispatcher_gets_the_abort_signal() {
        let (sender, signal) = StopSender::new();
        drop(sender);
        assert_eq!(signal.stop_requested().await, StopLevel::Abort);
    }
}
