//! One-time codes that turn into a session of the page. Kept in memory, as hashes: a restart makes them worthless.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use matsu_core::clock::Clock;
use matsu_core::error_code::ErrorCode;
use matsu_core::limits::{LOGIN_CODE_KEPT, LOGIN_CODES_MAX, LOGIN_FAILURES_MAX, LOGIN_FAILURES_WITHIN};
use tokio::time::Instant;

use super::{hash, mint_secret};
use crate::problem::Problem;

/// Codes that were handed out and not used yet.
pub struct LoginCodes {
    clock: Clock,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    made_at: HashMap<String, Instant>,
    failed_at: Vec<Instant>,
}

impl LoginCodes {
    pub fn new(clock: Clock) -> Self {
        Self { clock, inner: Mutex::default() }
    }

    /// A fresh code. Of too many the oldest goes.
    #[must_use]
    pub fn make(&self) -> String {
        let code = mint_secret();
        let now = self.clock.instant();
        let mut inner = self.lock();
        inner.made_at.retain(|_, made_at| now - *made_at < LOGIN_CODE_KEPT);
        if inner.made_at.len() >= LOGIN_CODES_MAX
            && let Some(oldest) =
                inner.made_at.iter().min_by_key(|(_, made_at)| **made_at).map(|(code, _)| code.clone())
        {
            inner.made_at.remove(&oldest);
        }
        inner.made_at.insert(hash(&code), now);
        code
    }

    /// Spends a code. Each opens once, within its time.
    ///
    /// # Errors
    /// A code that was used, is too old or was never made; too many of those in a short time.
    pub fn spend(&self, code: &str) -> Result<(), Problem> {
        let now = self.clock.instant();
        let mut inner = self.lock();
        inner.failed_at.retain(|failed_at| now - *failed_at < LOGIN_FAILURES_WITHIN);
        if inner.failed_at.len() >= LOGIN_FAILURES_MAX {
            let wait = LOGIN_FAILURES_WITHIN.as_secs();
            return Err(Problem::new(
                ErrorCode::LimitExceeded,
                format!("too many wrong codes; wait {wait} seconds and use a fresh link from `matsu open`"),
            ));
        }
        match inner.made_at.remove(&hash(code)) {
            Some(made_at) if now - made_at < LOGIN_CODE_KEPT => Ok(()),
            found => {
                inner.failed_at.push(now);
                let why = if found.is_some() { "is too old" } else { "is unknown or was used before" };
                Err(Problem::new(
                    ErrorCode::Unauthorized,
                    format!("this login code {why}; `matsu open` makes a fresh one"),
                ))
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_code_opens_once_and_in_time() {
        let clock = Clock::system();
        let codes = LoginCodes::new(clock);
        let (first, late) = (codes.make(), codes.make());
        assert!(codes.spend(&first).is_ok());
        assert!(codes.spend(&first).is_err(), "used");
        clock.sleep(LOGIN_CODE_KEPT).await;
        assert!(codes.spend(&late).is_err(), "too old");
    }

    #[tokio::test(start_paused = true)]
    async fn guessing_is_slowed_down() {
        let clock = Clock::system();
        let codes = LoginCodes::new(clock);
        let good = codes.make();
        for _ in 0..LOGIN_FAILURES_MAX {
            assert!(codes.spend("guess").is_err());
        }
        assert!(codes.spend(&good).is_err(), "even a good code waits");
        clock.sleep(LOGIN_FAILURES_WITHIN).await;
        assert!(codes.spend(&good).is_ok());
    }
}
