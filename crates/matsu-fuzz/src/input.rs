//! How a target takes its bytes apart and hands them on.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::FutureExt;
use tokio::io::{AsyncRead, ReadBuf};

/// The first byte, which chooses something, and the rest.
#[must_use]
pub fn choice(data: &[u8]) -> (usize, &[u8]) {
    data.split_first().map_or((0, data), |(first, rest)| (usize::from(*first), rest))
}

/// The first line, which says something, and the rest.
#[must_use]
pub fn first_line(data: &[u8]) -> (String, &[u8]) {
    let end = data.iter().position(|byte| *byte == b'\n').unwrap_or(data.len());
    (String::from_utf8_lossy(&data[..end]).into_owned(), data.get(end + 1..).unwrap_or_default())
}

/// A stream that gives at most so many bytes at once.
pub struct Chunks<'a> {
    data: &'a [u8],
    size: usize,
}

impl<'a> Chunks<'a> {
    #[must_use]
    pub fn new(data: &'a [u8], size: usize) -> Self {
        Self { data, size: size.max(1) }
    }
}

impl AsyncRead for Chunks<'_> {
    fn poll_read(mut self: Pin<&mut Self>, _: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<std::io::Result<()>> {
        let length = self.size.min(out.remaining()).min(self.data.len());
        let (now, later) = self.data.split_at(length);
        out.put_slice(now);
        self.data = later;
        Poll::Ready(Ok(()))
    }
}

/// The result of a future that has nothing to wait for.
pub fn at_once<T>(future: impl Future<Output = T>) -> T {
    match future.now_or_never() {
        Some(result) => result,
        None => panic!("it waits for something, although all bytes are there"),
    }
}
