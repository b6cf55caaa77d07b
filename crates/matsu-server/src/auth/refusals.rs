//! The log of refused requests. A client that is refused all day must not fill the log: a few lines at a time are
//! written, and how many were not.

use std::sync::{Mutex, PoisonError};

use matsu_core::clock::Clock;
use matsu_core::limits::{REFUSALS_LOGGED_EVERY, REFUSALS_LOGGED_MAX};
use tokio::time::Instant;

pub struct Refusals {
    clock: Clock,
    window: Mutex<Window>,
}

/// The time that a few lines are for.
#[derive(Debug, Default)]
struct Window {
    began: Option<Instant>,
    written: u32,
    unwritten: u64,
}

impl Window {
    /// `Some`: this one may be written, and so many before it were not.
    fn admit(&mut self, now: Instant) -> Option<u64> {
        let is_over = self.began.is_none_or(|began| now.saturating_duration_since(began) >= REFUSALS_LOGGED_EVERY);
        if is_over {
            let unwritten = self.unwritten;
            *self = Self { began: Some(now), written: 1, unwritten: 0 };
            return Some(unwritten);
        }
        if self.written < REFUSALS_LOGGED_MAX {
            self.written += 1;
            return Some(0);
        }
        self.unwritten += 1;
        None
    }
}

impl Refusals {
    pub fn new(clock: Clock) -> Self {
        Self { clock, window: Mutex::default() }
    }

    /// A request to `path` was refused.
    pub fn note(&self, path: &str, reason: &str) {
        metrics::counter!("matsu_requests_refused_total").increment(1);
        let admitted = self.window.lock().unwrap_or_else(PoisonError::into_inner).admit(self.clock.instant());
        match admitted {
            Some(0) => tracing::warn!(path, reason, "request refused"),
            Some(unwritten) => {
                tracing::warn!(path, reason, unwritten, "request refused; earlier refusals were only counted")
            }
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_a_few_lines_and_a_number() {
        let mut window = Window::default();
        let now = Clock::system().instant();
        let written = (0..1_000).filter_map(|_| window.admit(now)).collect::<Vec<_>>();
        assert_eq!(written, vec![0; REFUSALS_LOGGED_MAX as usize]);
        let unwritten = 1_000 - u64::from(REFUSALS_LOGGED_MAX);
        assert_eq!(window.admit(now + REFUSALS_LOGGED_EVERY), Some(unwritten));
        assert_eq!(window.admit(now + REFUSALS_LOGGED_EVERY), Some(0), "and the next few in full again");
    }
}
