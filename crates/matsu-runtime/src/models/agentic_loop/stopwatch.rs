//! How long a loop has run, not counting the time in which it waited for a person.

use std::time::Duration;

use matsu_core::clock::Clock;
use tokio::sync::watch;
use tokio::time::Instant;

#[derive(Clone, Copy)]
struct State {
    /// What was left when it last began to run.
    left: Duration,
    /// Since when it runs; none while a person is being asked.
    since: Option<Instant>,
    asked: u32,
}

pub struct Stopwatch {
    clock: Clock,
    state: watch::Sender<State>,
}

impl Stopwatch {
    pub fn new(clock: Clock, time_max: Duration) -> Self {
        let state = State { left: time_max, since: Some(clock.instant()), asked: 0 };
        Self { clock, state: watch::Sender::new(state) }
    }

    /// Returns when the time is over.
    pub async fn expired(&self) {
        let mut changes = self.state.subscribe();
        loop {
            let state = *changes.borrow_and_update();
            match state.since {
                Some(since) => tokio::select! {
                    () = self.clock.sleep_until(since + state.left) => return,
                    _ = changes.changed() => {}
                },
                None => {
                    // The sender is ours, so this cannot fail while we wait.
                    let _ = changes.changed().await;
                }
            }
        }
    }

    /// What is left now.
    pub fn left(&self) -> Duration {
        let state = *self.state.borrow();
        match state.since {
            Some(since) => state.left.saturating_sub(self.clock.instant() - since),
            None => state.left,
        }
    }

    /// Stands still until the guard is dropped.
    pub fn stop(&self) -> Stopped<'_> {
        let left = self.left();
        self.state.send_modify(|state| *state = State { left, since: None, asked: state.asked + 1 });
        Stopped(self)
    }
}

/// Several may be held at once; the watch goes on when the last is gone.
pub struct Stopped<'a>(&'a Stopwatch);

impl Drop for Stopped<'_> {
    fn drop(&mut self) {
        let now = self.0.clock.instant();
        self.0.state.send_modify(|state| {
            state.asked = state.asked.saturating_sub(1);
            if state.asked == 0 {
                state.since = Some(now);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn waiting_for_people_does_not_count() {
        let clock = Clock::system();
        let watch = Stopwatch::new(clock, Duration::from_secs(10));
        clock.sleep(Duration::from_secs(4)).await;
        let (first, second) = (watch.stop(), watch.stop());
        clock.sleep(Duration::from_secs(100)).await;
        drop(first);
        assert!(clock.within(Duration::from_secs(100), watch.expired()).await.is_none());
        assert_eq!(watch.left(), Duration::from_secs(6));
        drop(second);
        let began = clock.instant();
        watch.expired().await;
        assert_eq!(clock.instant() - began, Duration::from_secs(6));
    }
}
