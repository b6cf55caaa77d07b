//! When folders are looked at again, and how long a search waits for it.
//!
//! Small folders are looked at before every search, which takes a few milliseconds and makes what was just saved
//! findable. Large ones are looked at beside the searches, and not all the time.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Folders with more documents are large. Counted rather than timed: a busy machine makes no folder large.
const SMALL_MAX: usize = 2_000;
/// Between two long looks there is this many times their length.
const REST: u32 = 10;
/// A search waits this long for a look at small folders.
const CATCH_UP_MAX: Duration = Duration::from_secs(2);
/// And this long for folders it sees for the first time.
const FIRST_LOOK_MAX: Duration = Duration::from_secs(60);

/// What a search does before it asks the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Look, and wait for it at most this long.
    LookAndWait(Duration),
    /// Look, and go on at once.
    LookBeside,
    /// A look is under way already, or has just ended.
    GoOn,
}

#[derive(Clone, Copy)]
struct Last {
    is_running: bool,
    is_large: bool,
    took: Duration,
    ended_at: Instant,
}

/// How the last look at each set of folders went.
#[derive(Default)]
pub struct Freshness {
    looks: Mutex<HashMap<Vec<PathBuf>, Last>>,
}

impl Freshness {
    /// What to do now; notes that a look begins where one does. `is_new`: a folder was never read to its end.
    pub fn begin(&self, folders: &[PathBuf], is_new: bool, now: Instant) -> Step {
        let mut looks = self.looks.lock().unwrap_or_else(PoisonError::into_inner);
        let known = looks.get(folders).copied();
        let step = match known {
            Some(last) if last.is_running && last.is_large => Step::GoOn,
            _ if is_new => Step::LookAndWait(FIRST_LOOK_MAX),
            None => Step::LookAndWait(CATCH_UP_MAX),
            Some(last) if !last.is_large => Step::LookAndWait(CATCH_UP_MAX),
            Some(last) if now.duration_since(last.ended_at) < last.took * REST => Step::GoOn,
            Some(_) => Step::LookBeside,
        };
        if step != Step::GoOn {
            let before =
                known.unwrap_or(Last { is_running: true, is_large: false, took: Duration::ZERO, ended_at: now });
            looks.insert(folders.to_vec(), Last { is_running: true, ..before });
        }
        step
    }

    /// A look ended that saw so many documents.
    pub fn end(&self, folders: &[PathBuf], seen: usize, took: Duration, now: Instant) {
        let mut looks = self.looks.lock().unwrap_or_else(PoisonError::into_inner);
        looks.insert(folders.to_vec(), Last { is_running: false, is_large: seen > SMALL_MAX, took, ended_at: now });
    }
}

#[cfg(test)]
mod tests {
    use matsu_core::clock::Clock;

    use super::*;

    #[test]
    fn small_folders_are_waited_for_and_large_ones_are_not() {
        let now = Clock::system().instant();
        let fresh = Freshness::default();
        let folders = [PathBuf::from("/a")];
        assert_eq!(fresh.begin(&folders, true, now), Step::LookAndWait(FIRST_LOOK_MAX));
        fresh.end(&folders, 10, Duration::from_secs(1), now);
        assert_eq!(fresh.begin(&folders, false, now), Step::LookAndWait(CATCH_UP_MAX));
        fresh.end(&folders, 10_000, Duration::from_secs(1), now);
        assert_eq!(fresh.begin(&folders, false, now), Step::GoOn);
        let later = now + Duration::from_secs(11);
        assert_eq!(fresh.begin(&folders, false, later), Step::LookBeside);
        assert_eq!(fresh.begin(&folders, false, later), Step::GoOn);
    }
}
