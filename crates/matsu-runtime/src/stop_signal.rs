//! How a running body learns that it should stop, and how hard. Words only ever get harder.

use tokio::sync::watch;

/// The orders to a body, softest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum StopWord {
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
    receiver: watch::Receiver<StopWord>,
}

impl StopSignal {
    #[must_use]
    pub fn word(&self) -> StopWord {
        *self.receiver.borrow()
    }

    /// Returns as soon as the body has been ordered to stop in any way.
    pub async fn stop_requested(&self) -> StopWord {
        self.at_least(StopWord::Yield).await
    }

    /// Returns when the word is at least this hard. A body that cleans up listens for [`StopWord::Abort`].
    pub async fn at_least(&self, word: StopWord) -> StopWord {
        let mut receiver = self.receiver.clone();
        let current = receiver.wait_for(|current| *current >= word).await.map(|current| *current);
        // The sender was dropped: the runner of this body is gone.
        current.unwrap_or(StopWord::Abort)
    }
}

/// The sending end.
#[derive(Debug)]
pub struct StopSpeaker {
    said: watch::Sender<StopWord>,
}

impl StopSpeaker {
    #[must_use]
    pub fn new() -> (Self, StopSignal) {
        let (said, receiver) = watch::channel(StopWord::GoOn);
        (Self { said }, StopSignal { receiver })
    }

    /// A softer order than the last one is not sent.
    pub fn say(&self, word: StopWord) {
        self.said.send_if_modified(|said| {
            let is_harder = word > *said;
            *said = word.max(*said);
            is_harder
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn stop_words_only_get_harder_and_reach_late_listeners() {
        let (speaker, signal) = StopSpeaker::new();
        assert_eq!(signal.word(), StopWord::GoOn);
        speaker.say(StopWord::EndSoon);
        speaker.say(StopWord::Yield);
        assert_eq!(signal.stop_requested().await, StopWord::EndSoon);
        speaker.say(StopWord::Abort);
        assert_eq!(signal.clone().at_least(StopWord::Abort).await, StopWord::Abort);
    }

    #[tokio::test]
    async fn a_body_without_a_dispatcher_gets_the_abort_signal() {
        let (speaker, signal) = StopSpeaker::new();
        drop(speaker);
        assert_eq!(signal.stop_requested().await, StopWord::Abort);
    }
}
