//! The one wait. Everything that holds a caller until something changes goes through [`wait_until`].
//!
//! The order is the invariant: subscribe, read, sleep. A change before the subscription is seen by the read, one
//! after it leaves a permit that ends the sleep at once; there is no moment in between.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{Either, pending};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use matsu_core::change::Topic;
use matsu_core::clock::Clock;
use matsu_core::wake::Hub;

/// How a wait ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Waited<T> {
    /// The condition was met.
    Ready(T),
    /// The deadline passed first.
    Timeout,
    /// The caller is gone.
    CallerDisconnected,
}

/// The result of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Check<T> {
    Ready(T),
    /// Ask again after a wake-up.
    NotYet,
    /// Ask again after a wake-up, or at this moment.
    NotBefore(Instant),
}

/// What a wait waits for. Closures that return a future are conditions; what borrows from itself implements it.
pub trait Condition: Send {
    type Value: Send;

    /// One look. Reads whatever it needs; may be dropped before it has answered.
    fn look(&mut self) -> impl Future<Output = Check<Self::Value>> + Send;
}

impl<F, Look, T> Condition for F
where
    F: FnMut() -> Look + Send,
    Look: Future<Output = Check<T>> + Send,
    T: Send,
{
    type Value = T;

    fn look(&mut self) -> impl Future<Output = Check<T>> + Send {
        self()
    }
}

/// Waits until `check` is ready, `deadline` passes or `caller` is cancelled. The check runs once before anything
/// else, so a deadline that has passed still gets one look; it decides for itself how to read what it needs.
pub async fn wait_until<C: Condition>(
    hub: &Arc<Hub>,
    clock: &Clock,
    topics: &[Topic],
    deadline: Option<Instant>,
    caller: &CancellationToken,
    check: &mut C,
) -> Waited<C::Value> {
    let subscription = hub.subscribe(topics);
    let _counted = Counted::new();
    loop {
        // A caller that is gone must not keep a slow store busy.
        let checked = tokio::select! {
           biased;
            checked = check.look() => checked,
            () = caller.cancelled() => return Waited::CallerDisconnected,
        };
        let again_at = match checked {
            Check::Ready(value) => return Waited::Ready(value),
            Check::NotYet => None,
            Check::NotBefore(at) => Some(at),
        };
        // Not left to the sleep below: wake-ups that never cease would hold the caller for ever.
        if deadline.is_some_and(|deadline| clock.instant() >= deadline) {
            return Waited::Timeout;
        }
        tokio::select! {
           biased;
            () = caller.cancelled() => return Waited::CallerDisconnected,
            () = subscription.woken() => {}
            () = sleep_until(clock, again_at) => {}
            () = sleep_until(clock, deadline) => return Waited::Timeout,
        }
    }
}

/// Never returns without a moment to wait for.
async fn sleep_until(clock: &Clock, at: Option<Instant>) {
    match at {
        Some(at) => Either::Left(clock.sleep_until(at)),
        None => Either::Right(pending()),
    }
    .await;
}

/// A moment so far away that no wait reaches it, without overflow.
#[must_use]
pub fn after(clock: &Clock, span: Duration) -> Instant {
    let now = clock.instant();
    now.checked_add(span).unwrap_or(now + Duration::from_secs(86_400 * 365))
}

/// Keeps the gauge of open waits right however the wait ends, by being dropped too.
struct Counted;

impl Counted {
    fn new() -> Self {
        metrics::gauge!("matsu_waiters").increment(1.0);
        Self
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        metrics::gauge!("matsu_waiters").decrement(1.0);
    }
}

#[cfg(test)]
mod tests;
