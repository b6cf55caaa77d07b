//! How fast a channel may be sent to: pauses between messages, and after failures.

use std::time::Duration;

use tokio::time::Instant;

use matsu_core::limits::{NOTICE_RETRY_FIRST, NOTICE_RETRY_MAX, NOTICE_SPACING_FIRST, NOTICE_SPACING_MAX};

/// When a channel last got a message, and the pause after it.
#[derive(Clone, Debug, Default)]
pub struct Pace {
    last: Option<(Instant, Duration)>,
}

impl Pace {
    /// When the next message may go out; `None`: at any time.
    pub fn free_at(&self) -> Option<Instant> {
        self.last.map(|(at, pause)| at + pause)
    }

    /// Notes that this many messages went out. The pause doubles while messages follow each other closely.
    pub fn sent(&mut self, messages: usize, now: Instant) {
        if messages == 0 {
            return;
        }
        let pause = match self.last {
            Some((at, pause)) if now.duration_since(at) < pause * 2 => (pause * 2).min(NOTICE_SPACING_MAX),
            _ => NOTICE_SPACING_FIRST,
        };
        self.last = Some((now, pause));
    }
}

/// The pause after this many failures before the last one.
pub fn retry_after(attempts: u32) -> Duration {
    NOTICE_RETRY_FIRST.saturating_mul(1 << attempts.min(16)).min(NOTICE_RETRY_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use matsu_core::clock::Clock;

    #[test]
    fn pauses_after_failures_double_up_to_a_bound() {
        assert_eq!((retry_after(0), retry_after(3)), (NOTICE_RETRY_FIRST, NOTICE_RETRY_FIRST * 8));
        assert_eq!(retry_after(60), NOTICE_RETRY_MAX);
    }

    #[tokio::test(start_paused = true)]
    async fn messages_that_follow_each_other_are_spaced_more_and_more() {
        let mut pace = Pace::default();
        let start = Clock::system().instant();
        assert_eq!(pace.free_at(), None);
        pace.sent(0, start);
        assert_eq!(pace.free_at(), None, "nothing was sent");
        pace.sent(1, start);
        let mut free = pace.free_at().unwrap();
        assert_eq!(free - start, NOTICE_SPACING_FIRST);
        pace.sent(1, free);
        assert_eq!(pace.free_at().unwrap() - free, NOTICE_SPACING_FIRST * 2);
        for _ in 0..10 {
            free = pace.free_at().unwrap();
            pace.sent(1, free);
        }
        assert_eq!(pace.free_at().unwrap() - free, NOTICE_SPACING_MAX);
        let quiet = free + NOTICE_SPACING_MAX * 3;
        pace.sent(1, quiet);
        assert_eq!(pace.free_at().unwrap() - quiet, NOTICE_SPACING_FIRST, "after a quiet time it is short again");
    }
}
