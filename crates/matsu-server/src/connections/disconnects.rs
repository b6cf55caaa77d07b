//! Callers that disconnect without having read their answer. A connection that is reset had unread data in it: what its
//! last answer was to hand over was not handed over.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use matsu_core::clock::Clock;
use matsu_runtime::Runtime;
use matsu_runtime::chats::sessions::Delivery;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::arrival::{Arrival, Stalled};

/// What the answers on one connection hand over. The next request on it shows that those before have arrived.
#[derive(Clone, Default)]
pub struct Carried {
    answers: Arc<Mutex<OpenReplies>>,
}

#[derive(Default)]
struct OpenReplies {
    deliveries: Vec<Arc<Delivery>>,
    /// The connection has ended: nothing more arrives over it.
    is_over: bool,
}

impl Carried {
    /// A request has begun: what was answered before has been read.
    pub fn begin(&self) {
        self.lock().deliveries.clear();
    }

    /// The caller has disconnected.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.lock().is_over
    }

    /// `false`: the caller has disconnected while its call went on, and does not get this answer.
    #[must_use]
    pub fn carries(&self, delivery: &Arc<Delivery>) -> bool {
        let mut answers = self.lock();
        if !answers.is_over {
            answers.deliveries.push(Arc::clone(delivery));
        }
        !answers.is_over
    }

    /// The connection has ended; whether its last answers were read is known.
    pub async fn end(&self, were_read: bool, runtime: &Runtime) {
        let last = {
            let mut answers = self.lock();
            answers.is_over = true;
            std::mem::take(&mut answers.deliveries)
        };
        for delivery in last.iter().filter(|_| !were_read) {
            delivery.take_back(runtime).await;
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, OpenReplies> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A stream that remembers whether it was reset; the layers above take that for an ordinary end.
pub struct Noticing<S> {
    inner: S,
    was_reset: Arc<AtomicBool>,
    arrival: Arrival,
    stalled: Stalled,
    clock: Clock,
}

impl<S> Noticing<S> {
    pub fn new(inner: S, arrival: Arrival, clock: Clock, stalled_after: Duration) -> (Self, Arc<AtomicBool>) {
        let was_reset = Arc::new(AtomicBool::new(false));
        let stalled = Stalled::new(clock, stalled_after);
        (Self { inner, was_reset: Arc::clone(&was_reset), arrival, stalled, clock }, was_reset)
    }

    fn note<T>(&self, result: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if let Poll::Ready(Err(error)) = &result
            && matches!(
                error.kind(),
                io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe | io::ErrorKind::TimedOut
            )
        {
            self.was_reset.store(true, Ordering::SeqCst);
        }
        result
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Noticing<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        let read = Pin::new(&mut self.inner).poll_read(cx, into);
        if into.filled().len() > before {
            self.arrival.byte(&self.clock);
        }
        self.note(read)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Noticing<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write(cx, from);
        let written = self.stalled.look(written, cx);
        self.note(written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.inner).poll_flush(cx);
        let flushed = self.stalled.look(flushed, cx);
        self.note(flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        from: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write_vectored(cx, from);
        let written = self.stalled.look(written, cx);
        self.note(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }
}
