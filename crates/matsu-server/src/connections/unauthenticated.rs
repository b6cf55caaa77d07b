//! Connections that have not shown a key yet. They are counted, in all and for each address; a connection that shows
//! one is counted among all connections only, so that many clients of one address do not stand in each other's way.
//!
//! When the limit is reached, the oldest one that had its time to show a key is closed. Where none is that old yet, a
//! connection of this machine waits: a thousand clients that come back at once are no attack.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::extract::Request;
use axum::http::Method;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use matsu_core::clock::Clock;
use matsu_core::error_code::ErrorCode;
use matsu_core::limits::UNAUTHENTICATED_BODY_BYTES_MAX;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::auth::Caller;
use crate::limits::bounds::Bounds;
use crate::limits::hooks::is_hook;
use crate::problem::Problem;

/// A connection that is this old and has shown no key can be closed in favour of another.
const TIME_TO_SHOW_A_KEY: Duration = Duration::from_secs(1);

/// All connections of the port.
pub struct Connections {
    bounds: Bounds,
    clock: Clock,
    inner: Mutex<Inner>,
    freed: Notify,
}

#[derive(Default)]
struct Inner {
    next: u64,
    /// By number: the oldest comes first.
    unauthenticated: BTreeMap<u64, Entry>,
    known: usize,
}

struct Entry {
    address: IpAddr,
    since: Instant,
    closes: CancellationToken,
}

enum Meeting {
    Admitted(Unauthenticated),
    Refused,
    NotBefore(Instant),
}

impl Connections {
    #[must_use]
    pub fn new(bounds: Bounds, clock: Clock) -> Arc<Self> {
        Arc::new(Self { bounds, clock, inner: Mutex::default(), freed: Notify::new() })
    }

    /// Counts a new connection; `None` if the limit is reached.
    pub async fn admit(self: &Arc<Self>, address: IpAddr) -> Option<Unauthenticated> {
        loop {
            // Before the look: a connection that closes between the two must not be missed.
            let freed = self.freed.notified();
            match self.meet(address.to_canonical()) {
                Meeting::Admitted(unauthenticated) => return Some(unauthenticated),
                Meeting::Refused => return None,
                Meeting::NotBefore(at) => tokio::select! {
                    () = freed => {}
                    () = self.clock.sleep_until(at) => {}
                },
            }
        }
    }

    fn meet(self: &Arc<Self>, address: IpAddr) -> Meeting {
        let now = self.clock.instant();
        let mut inner = self.lock();
        if inner.unauthenticated.len() + inner.known >= self.bounds.connections {
            return Meeting::Refused;
        }
        // A proxy and all clients of this machine share one address.
        if !address.is_loopback() {
            let same = |entry: &Entry| entry.address == address;
            let is_full = inner.unauthenticated.values().filter(|entry| same(entry)).count()
                >= self.bounds.unauthenticated_per_address;
            if is_full && inner.close_oldest(now, same).is_err() {
                return Meeting::Refused;
            }
        }
        if inner.unauthenticated.len() >= self.bounds.unauthenticated
            && let Err(at) = inner.close_oldest(now, |_| true)
        {
            return if address.is_loopback() { Meeting::NotBefore(at) } else { Meeting::Refused };
        }
        let number = inner.next;
        inner.next += 1;
        let closes = CancellationToken::new();
        inner.unauthenticated.insert(number, Entry { address, since: now, closes: closes.clone() });
        drop(inner);
        Meeting::Admitted(Unauthenticated { of: Arc::clone(self), number, closes, is_known: AtomicBool::new(false) })
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// Ends the oldest of these that had its time; else says when there will be one.
    fn close_oldest(&mut self, now: Instant, which: impl Fn(&Entry) -> bool) -> Result<(), Instant> {
        let oldest =
            self.unauthenticated.iter().find(|(_, entry)| which(entry)).map(|(number, entry)| (*number, entry.since));
        let Some((number, since)) = oldest else { return Err(now + TIME_TO_SHOW_A_KEY) };
        if now < since + TIME_TO_SHOW_A_KEY {
            return Err(since + TIME_TO_SHOW_A_KEY);
        }
        if let Some(entry) = self.unauthenticated.remove(&number) {
            entry.closes.cancel();
        }
        Ok(())
    }
}

/// One connection, counted until it is dropped.
pub struct Unauthenticated {
    of: Arc<Connections>,
    number: u64,
    closes: CancellationToken,
    is_known: AtomicBool,
}

impl Unauthenticated {
    /// A key was shown on this connection.
    fn known(&self) {
        if self.is_known.load(Ordering::Relaxed) {
            return;
        }
        let mut inner = self.of.lock();
        // One that had to close in this moment ends all the same.
        if inner.unauthenticated.remove(&self.number).is_some() {
            inner.known += 1;
            self.is_known.store(true, Ordering::Relaxed);
            drop(inner);
            self.of.freed.notify_one();
        }
    }

    /// Returns when it must end in favour of another.
    pub async fn closes(&self) {
        self.closes.cancelled().await;
    }
}

impl Drop for Unauthenticated {
    fn drop(&mut self) {
        let mut inner = self.of.lock();
        if *self.is_known.get_mut() {
            inner.known -= 1;
        } else {
            inner.unauthenticated.remove(&self.number);
        }
        drop(inner);
        self.of.freed.notify_one();
    }
}

/// Behind the guard: a caller makes its connection known; without one a body is small, and read here within its time.
pub async fn classify(request: Request, next: Next) -> Response {
    if request.extensions().get::<Caller>().is_some() {
        if let Some(unauthenticated) = request.extensions().get::<Arc<Unauthenticated>>() {
            unauthenticated.known();
        }
        return next.run(request).await;
    }
    // What is sent to a webhook is read there, after a look at which one it is: a few at once, and within bounds.
    let is_read_there = is_hook(request.uri().path());
    if is_read_there || matches!(*request.method(), Method::GET | Method::HEAD) {
        return next.run(request).await;
    }
    let (parts, body) = request.into_parts();
    match axum::body::to_bytes(body, UNAUTHENTICATED_BODY_BYTES_MAX).await {
        Ok(body) => next.run(Request::from_parts(parts, body.into())).await,
        Err(_) => Problem::new(
            ErrorCode::LimitExceeded,
            format!(
                "the body did not arrive in time, or has more than {UNAUTHENTICATED_BODY_BYTES_MAX} bytes, which is the most \
                 that is read without a token"
            ),
        )
        .with_status(axum::http::StatusCode::PAYLOAD_TOO_LARGE)
        .into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);
    const THERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));
    const ELSEWHERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 2));

    fn unauthenticated(
        unauthenticated: usize,
        unauthenticated_per_address: usize,
        connections: usize,
    ) -> Arc<Connections> {
        let bounds = Bounds { unauthenticated, unauthenticated_per_address, connections, ..Bounds::default() };
        Connections::new(bounds, Clock::system())
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_with_a_key_does_not_count_as_unauthenticated() {
        let all = unauthenticated(2, 2, 100);
        let mut known = Vec::new();
        for _ in 0..50 {
            let unauthenticated = all.admit(HERE).await.unwrap();
            unauthenticated.known();
            known.push(unauthenticated);
        }
        assert!(known.iter().all(|unauthenticated| !unauthenticated.closes.is_cancelled()));
        drop(known);
        assert_eq!(all.lock().known, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn the_oldest_unauthenticated_connection_is_closed_once_it_had_its_time() {
        let (all, clock) = (unauthenticated(2, 2, 100), Clock::system());
        let (first, second) = (all.admit(HERE).await.unwrap(), all.admit(HERE).await.unwrap());
        let began = clock.instant();
        let third = all.admit(HERE).await.unwrap();
        assert_eq!(clock.instant() - began, TIME_TO_SHOW_A_KEY, "a client of this machine waits");
        assert!(first.closes.is_cancelled() && !second.closes.is_cancelled());
        first.known();
        assert!(!first.is_known.load(Ordering::Relaxed), "too late");
        drop((second, third));
        assert!(all.lock().unauthenticated.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn one_address_does_not_take_the_connections_of_others() {
        let (all, clock) = (unauthenticated(10, 2, 100), Clock::system());
        let held = [all.admit(THERE).await.unwrap(), all.admit(THERE).await.unwrap()];
        assert!(all.admit(THERE).await.is_none(), "at once: it may come again");
        assert!(all.admit(ELSEWHERE).await.is_some());
        clock.sleep(TIME_TO_SHOW_A_KEY).await;
        assert!(all.admit(THERE).await.is_some());
        assert!(held[0].closes.is_cancelled() && !held[1].closes.is_cancelled());
    }

    #[tokio::test(start_paused = true)]
    async fn connections_end_somewhere_even_with_keys() {
        let all = unauthenticated(2, 2, 3);
        let mut known = Vec::new();
        for _ in 0..3 {
            let unauthenticated = all.admit(HERE).await.unwrap();
            unauthenticated.known();
            known.push(unauthenticated);
        }
        assert!(all.admit(HERE).await.is_none());
        known.pop();
        assert!(all.admit(HERE).await.is_some());
    }
}
