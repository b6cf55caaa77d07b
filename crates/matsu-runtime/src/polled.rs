//! A stream that goes on while its owner does something else.
//!
//! What a stream has under way may hold a lock, a connection or a place among the readers of the store. If it were not
//! polled while its owner waits for one of these, owners could wait for each other's streams until their time is over.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use futures_util::{Stream, StreamExt};

pub struct Polled<S: Stream> {
    stream: S,
    /// Items that came while the owner did something else.
    ready: VecDeque<S::Item>,
}

impl<S: Stream + Unpin> Polled<S> {
    pub fn new(stream: S) -> Self {
        Self { stream, ready: VecDeque::new() }
    }

    /// To add to it.
    pub fn stream(&mut self) -> &mut S {
        &mut self.stream
    }

    /// Items that are there and not taken yet.
    pub fn ready(&self) -> usize {
        self.ready.len()
    }

    /// The next item; none if the stream has ended.
    pub async fn next(&mut self) -> Option<S::Item> {
        match self.ready.pop_front() {
            Some(item) => Some(item),
            None => self.stream.next().await,
        }
    }

    /// Does something while the stream goes on.
    pub async fn beside<T>(&mut self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        poll_fn(|cx| {
            if let Poll::Ready(done) = work.as_mut().poll(cx) {
                return Poll::Ready(done);
            }
            while let Poll::Ready(Some(item)) = self.stream.poll_next_unpin(cx) {
                self.ready.push_back(item);
            }
            Poll::Pending
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use futures_util::stream::FuturesUnordered;
    use matsu_core::clock::{Clock, Timestamp};
    use tokio::sync::Semaphore;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_a_stream_holds_comes_free_while_its_owner_waits_for_it() {
        let places = Arc::new(Semaphore::new(1));
        let mut polled = Polled::new(FuturesUnordered::new());
        for number in 0..3 {
            let places = Arc::clone(&places);
            polled.stream().push(async move {
                for _ in 0..5 {
                    let _place = places.acquire().await.unwrap();
                    tokio::task::yield_now().await;
                }
                number
            });
        }
        let waits = async {
            for _ in 0..50 {
                let _place = places.acquire().await.unwrap();
                tokio::task::yield_now().await;
            }
        };
        let clock = Clock::starting_at(Timestamp::from_millis(0));
        clock.within(Duration::from_secs(60), polled.beside(waits)).await.expect("the stream keeps no place");
        assert_eq!(polled.ready(), 3);
        let mut items = Vec::new();
        while let Some(number) = polled.next().await {
            items.push(number);
        }
        items.sort_unstable();
        assert_eq!(items, [0, 1, 2]);
    }
}
