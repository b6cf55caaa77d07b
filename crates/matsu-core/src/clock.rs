//! Time, in the one place that may read it.
//!
//! Two clocks are kept apart. [`Timestamp`] is wall time: shown to people, stored, never used to decide
//! whether a process is alive. Waiting uses tokio's monotonic clock, so tests on paused time cost nothing.
#![expect(clippy::disallowed_methods, reason = "the one file that reads the clocks")]

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use tokio::time::Instant;

/// Milliseconds since 1970, UTC.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, Default)]
#[serde(transparent)]
pub struct Timestamp(i64);

impl Timestamp {
    #[must_use]
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    #[must_use]
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// Reads RFC 3339, as this prints it.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        text.parse::<jiff::Timestamp>().ok().map(|time| Self(time.as_millisecond()))
    }

    /// Reads RFC 3339, or a span from now on such as `2h 30m`.
    #[must_use]
    pub fn parse_or_span(text: &str, now: Self) -> Option<Self> {
        let span = || text.parse::<jiff::SignedDuration>().ok().and_then(|span| Duration::try_from(span).ok());
        Self::parse(text).or_else(|| span().map(|span| now.plus(span)))
    }

    #[must_use]
    pub fn plus(self, span: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(span.as_millis()).unwrap_or(i64::MAX)))
    }

    #[must_use]
    pub fn minus(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(i64::try_from(span.as_millis()).unwrap_or(i64::MAX)))
    }

    /// How long after `earlier` this is; zero if the clock went backwards in between.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0 - earlier.0).unwrap_or(0))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(time) => write!(f, "{time}"),
            Err(_) => write!(f, "{} ms", self.0),
        }
    }
}

/// Where wall time comes from. Cheap to clone.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// `None`: the system's clock. `Some`: wall time follows tokio's clock from this point on, for tests.
    /// Production must not derive wall time this way: a monotonic clock stands still while a laptop sleeps.
    anchor: Option<(Timestamp, Instant)>,
    /// Milliseconds that this clock is wrong by, for tests.
    shift: i64,
}

impl Clock {
    #[must_use]
    pub const fn system() -> Self {
        Self { anchor: None, shift: 0 }
    }

    /// The system's clock as a machine has it whose clock is wrong by this many seconds.
    #[must_use]
    pub const fn wrong_by(seconds: i64) -> Self {
        Self { anchor: None, shift: seconds.saturating_mul(1_000) }
    }

    /// Wall time that starts at `start` and follows tokio's clock, paused or not.
    #[must_use]
    pub fn starting_at(start: Timestamp) -> Self {
        Self { anchor: Some((start, Instant::now())), shift: 0 }
    }

    #[must_use]
    pub fn now(&self) -> Timestamp {
        match self.anchor {
            Some((start, at)) => start.plus(at.elapsed()),
            None => {
                let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX).saturating_add(self.shift))
            }
        }
    }

    /// Wall time in nanoseconds since 1970, as finely as the system tells it: to compare moments in different
    /// processes of one machine.
    #[must_use]
    pub fn nanos(&self) -> u64 {
        let since = match self.anchor {
            _ if self.shift != 0 => Duration::from_millis(u64::try_from(self.now().as_millis()).unwrap_or(0)),
            Some(_) => Duration::from_millis(u64::try_from(self.now().as_millis()).unwrap_or(0)),
            None => SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default(),
        };
        u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
    }

    /// The monotonic clock that waits are counted on.
    #[must_use]
    pub fn instant(&self) -> Instant {
        Instant::now()
    }

    pub async fn sleep(&self, span: Duration) {
        tokio::time::sleep(span).await;
    }

    pub async fn sleep_until(&self, deadline: Instant) {
        tokio::time::sleep_until(deadline).await;
    }

    /// Runs `work` for at most `span`; `None` if it took longer.
    pub async fn within<T>(&self, span: Duration, work: impl Future<Output = T>) -> Option<T> {
        tokio::time::timeout(span, work).await.ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_print_as_rfc_3339() {
        assert_eq!(Timestamp::from_millis(1_794_704_523_000).to_string(), "2026-11-15T01:02:03Z");
    }

    #[test]
    fn a_clock_that_went_back_gives_no_negative_span() {
        let earlier = Timestamp::from_millis(10);
        assert_eq!(Timestamp::from_millis(4).since(earlier), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn wall_time_follows_paused_time() {
        let clock = Clock::starting_at(Timestamp::from_millis(1_000));
        clock.sleep(Duration::from_secs(3_600)).await;
        assert_eq!(clock.now(), Timestamp::from_millis(3_601_000));
    }
}
