//! A request arrives whole within its time: hyper counts for the head of it, this for the body. What is legitimately
//! long is the answer, which has no such bound.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::BoxError;
use axum::body::{Bytes, HttpBody};
use hyper::body::{Frame, Incoming, SizeHint};
use matsu_core::clock::Clock;
use tokio::time::Instant;

type Timer = Pin<Box<dyn Future<Output = ()> + Send>>;

/// When the first byte of the request that is being read came.
#[derive(Clone, Default)]
pub struct Arrival {
    began: Arc<Mutex<Option<Instant>>>,
}

impl Arrival {
    pub fn byte(&self, clock: &Clock) {
        self.lock().get_or_insert_with(|| clock.instant());
    }

    /// The head is complete.
    pub fn take(&self) -> Option<Instant> {
        self.lock().take()
    }

    fn lock(&self) -> MutexGuard<'_, Option<Instant>> {
        self.began.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A body that breaks off when its time is over.
pub struct TimedBody {
    inner: Incoming,
    arrival: Arrival,
    clock: Clock,
    until: Instant,
    within: Duration,
    /// Set while there is something to wait for.
    timer: Option<Timer>,
}

impl TimedBody {
    pub fn new(inner: Incoming, arrival: Arrival, clock: Clock, within: Duration) -> Self {
        let began = arrival.take().unwrap_or_else(|| clock.instant());
        Self { inner, arrival, clock, until: began + within, within, timer: None }
    }
}

impl HttpBody for TimedBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.inner).poll_frame(cx) {
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        let (clock, until) = (self.clock, self.until);
        let timer = self.timer.get_or_insert_with(|| Box::pin(async move { clock.sleep_until(until).await }));
        match timer.as_mut().poll(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(()) => {
                let late = format!("the request did not arrive within {} seconds", self.within.as_secs());
                Poll::Ready(Some(Err(late.into())))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

impl Drop for TimedBody {
    fn drop(&mut self) {
        // Whatever was read last belonged to this request; the next one has its own time.
        self.arrival.take();
    }
}

/// A client that takes nothing of its answer for this long will not take it.
pub struct Stalled {
    clock: Clock,
    after: Duration,
    timer: Option<Timer>,
}

impl Stalled {
    pub fn new(clock: Clock, after: Duration) -> Self {
        Self { clock, after, timer: None }
    }

    /// Passes on what became of a write; an error when it has been pending for too long.
    pub fn look<T>(&mut self, written: Poll<std::io::Result<T>>, cx: &mut Context<'_>) -> Poll<std::io::Result<T>> {
        if written.is_ready() {
            self.timer = None;
            return written;
        }
        let (clock, after) = (self.clock, self.after);
        let timer = self.timer.get_or_insert_with(|| Box::pin(async move { clock.sleep(after).await }));
        timer.as_mut().poll(cx).map(|()| Err(std::io::ErrorKind::TimedOut.into()))
    }
}
