//! What is open under which token: calls that are held, streams, relays. When a token is revoked or expires, or a
//! session ends, all of it ends, also where another process did it: the store is asked every second.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// What was presented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Token,
    Session,
}

#[derive(Clone, Default)]
pub struct OpenCalls {
    open: Arc<Mutex<HashMap<String, Open>>>,
}

struct Open {
    kind: Kind,
    calls: usize,
    over: CancellationToken,
}

/// One call that is open; on the list until it is dropped.
pub struct OpenCall {
    calls: OpenCalls,
    hash: String,
    over: CancellationToken,
}

impl OpenCalls {
    /// A call begins that presented the secret with this hash.
    pub fn enter(&self, hash: &str, kind: Kind) -> OpenCall {
        let mut open = self.lock();
        let entry =
            open.entry(hash.to_owned()).or_insert_with(|| Open { kind, calls: 0, over: CancellationToken::new() });
        entry.calls += 1;
        OpenCall { calls: self.clone(), hash: hash.to_owned(), over: entry.over.clone() }
    }

    /// The hashes of all secrets under which something is open.
    #[must_use]
    pub fn hashes(&self) -> Vec<(String, Kind)> {
        self.lock().iter().map(|(hash, open)| (hash.clone(), open.kind)).collect()
    }

    /// Ends everything that is open under this secret.
    pub fn end(&self, hash: &str) {
        // Taken off the list: what comes afterwards with the same secret is judged anew.
        if let Some(open) = self.lock().remove(hash) {
            open.over.cancel();
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OpenCall {
    /// Cancelled when the secret holds no longer.
    #[must_use]
    pub fn over(&self) -> &CancellationToken {
        &self.over
    }
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        let mut open = self.calls.lock();
        // After an end there may be a new entry under the same hash; it is not this call's.
        if self.over.is_cancelled() {
            return;
        }
        if let Some(entry) = open.get_mut(&self.hash) {
            entry.calls -= 1;
            if entry.calls == 0 {
                open.remove(&self.hash);
            }
        }
    }
}

/// A body that ends with the token that it is read under.
pub struct UntilOver {
    body: Body,
    over: Pin<Box<WaitForCancellationFutureOwned>>,
    /// The last event of a stream.
    farewell: Option<Bytes>,
    is_over: bool,
    _call: Arc<OpenCall>,
}

impl UntilOver {
    #[must_use]
    pub fn new(body: Body, call: Arc<OpenCall>, farewell: Option<Bytes>) -> Self {
        let over = Box::pin(call.over().clone().cancelled_owned());
        Self { body, over, farewell, is_over: false, _call: call }
    }
}

impl HttpBody for UntilOver {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        if !self.is_over && self.over.as_mut().poll(cx).is_ready() {
            self.is_over = true;
        }
        if self.is_over {
            return Poll::Ready(self.farewell.take().map(|farewell| Ok(Frame::data(farewell))));
        }
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
