//! How tests of processes wait: for something to be seen, within a time.
#![expect(clippy::disallowed_methods, reason = "tests of real processes wait in real time")]

use std::time::{Duration, Instant};

/// Looks again and again until there is something to see.
///
/// # Panics
/// There was nothing within the time.
#[track_caller]
pub fn until<T>(what: &str, within: Duration, mut look: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(began.elapsed() < within, "not within {within:?}: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
