//! The circuit breaker of an engine: after two failures in a row it is left alone, for longer each time.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;

/// Failures in a row that open the breaker.
pub const FAILURES_TO_OPEN: u32 = 2;
/// First cool-down; doubles.
pub const COOL_FIRST: Duration = Duration::from_secs(60);
/// Longest cool-down.
pub const COOL_MAX: Duration = Duration::from_secs(2 * 3600);

/// How an engine has been doing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Breaker {
    /// Failures since the last success.
    pub failures: u32,
    /// No request is made before this.
    pub open_until: Option<Timestamp>,
    /// Why it gave no answer the last time.
    pub cause: Option<String>,
}

impl Breaker {
    #[must_use]
    pub fn is_open(&self, now: Timestamp) -> bool {
        self.open_until.is_some_and(|until| now < until)
    }

    #[must_use]
    pub fn after_success(&self) -> Self {
        Self::default()
    }

    /// One more failure. Once the cool-down is over a single failure opens it again, twice as long.
    #[must_use]
    pub fn after_failure(&self, now: Timestamp, cause: &str) -> Self {
        let failures = self.failures.saturating_add(1);
        let rounds = failures.saturating_sub(FAILURES_TO_OPEN);
        let open_until = (failures >= FAILURES_TO_OPEN)
            .then(|| now.plus(COOL_FIRST.saturating_mul(2_u32.saturating_pow(rounds)).min(COOL_MAX)));
        Self { failures, open_until, cause: Some(cause.to_owned()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_failures_open_it_and_the_pause_doubles_up_to_two_hours() {
        let start = Timestamp::from_millis(0);
        let mut breaker = Breaker::default();
        let mut pauses = Vec::new();
        for _ in 0..10 {
            breaker = breaker.after_failure(start, "status 500");
            pauses.push(breaker.open_until.map_or(0, |until| until.since(start).as_secs() / 60));
        }
        assert_eq!(pauses, [0, 1, 2, 4, 8, 16, 32, 64, 120, 120]);
        assert!(breaker.is_open(start));
        assert_eq!(breaker.cause.as_deref(), Some("status 500"));
        assert!(!breaker.is_open(start.plus(COOL_MAX)));
        assert_eq!(breaker.after_success(), Breaker::default());
    }
}
