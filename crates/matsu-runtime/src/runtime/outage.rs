//! Keeps one part's record of a store that fails: one line when it goes, one when it returns, and longer and
//! longer pauses in between.

use std::time::Duration;

use matsu_core::limits::{STORE_RETRY_FIRST, STORE_RETRY_MAX};
use matsu_core::ports::store::StoreError;

pub struct Outage {
    part: &'static str,
    pause: Option<Duration>,
}

impl Outage {
    #[must_use]
    pub fn new(part: &'static str) -> Self {
        Self { part, pause: None }
    }

    #[must_use]
    pub fn is_on(&self) -> bool {
        self.pause.is_some()
    }

    /// Takes note of an answer. `Some`: it was a failure; leave the store alone for this long.
    pub fn note<T>(&mut self, answer: &Result<T, StoreError>) -> Option<Duration> {
        match answer {
            Ok(_) => {
                if self.pause.take().is_some() {
                    tracing::info!(part = self.part, "store works again");
                }
                None
            }
            Err(error) => {
                metrics::counter!("matsu_store_errors_total", "part" => self.part).increment(1);
                if self.pause.is_none() {
                    tracing::warn!(part = self.part, %error, "store operation failed; retrying");
                }
                let pause = self.pause.map_or(STORE_RETRY_FIRST, |pause| (pause * 2).min(STORE_RETRY_MAX));
                self.pause = Some(pause);
                Some(pause)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_their_bound_and_start_again() {
        let mut outage = Outage::new("test");
        let gone = || Err::<(), _>(StoreError::Unavailable("gone".to_owned()));
        let pauses: Vec<_> = (0..9).filter_map(|_| outage.note(&gone())).map(|pause| pause.as_millis()).collect();
        assert_eq!(pauses, [50, 100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000]);
        assert!(outage.is_on());
        assert_eq!(outage.note(&Ok(())), None);
        assert_eq!(outage.note(&gone()), Some(STORE_RETRY_FIRST));
    }
}
