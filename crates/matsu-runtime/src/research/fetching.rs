//! Fetches under way, and those that are done and not yet taken in.
//!
//! A fetch holds locks, a reader process, or a place among the readers of the store. If it were not polled while its
//! search waits for one of these, searches could wait for each other's fetches until their time is over.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;

pub struct Fetching<F: Future> {
    under_way: FuturesUnordered<F>,
    done: VecDeque<F::Output>,
}

impl<F: Future> Default for Fetching<F> {
    fn default() -> Self {
        Self { under_way: FuturesUnordered::new(), done: VecDeque::new() }
    }
}

impl<F: Future> Fetching<F> {
    pub fn len(&self) -> usize {
        self.under_way.len() + self.done.len()
    }

    pub fn push(&mut self, fetch: F) {
        self.under_way.push(fetch);
    }

    /// The next one that is done; none if none is under way.
    pub async fn next(&mut self) -> Option<F::Output> {
        match self.done.pop_front() {
            Some(done) => Some(done),
            None => self.under_way.next().await,
        }
    }

    /// Does something while the fetches go on.
    pub async fn go_on_beside<T>(&mut self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        poll_fn(|cx| {
            if let Poll::Ready(done) = work.as_mut().poll(cx) {
                return Poll::Ready(done);
            }
            while let Poll::Ready(Some(done)) = self.under_way.poll_next_unpin(cx) {
                self.done.push_back(done);
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

    use matsu_core::clock::{Clock, Timestamp};
    use tokio::sync::Semaphore;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_a_fetch_holds_comes_free_while_its_search_waits_for_it() {
        let places = Arc::new(Semaphore::new(1));
        let mut fetching = Fetching::default();
        for number in 0..3 {
            let places = Arc::clone(&places);
            fetching.push(async move {
                for _ in 0..5 {
                    let _place = places.acquire().await.unwrap();
                    tokio::task::yield_now().await;
                }
                number
            });
        }
        assert_eq!(fetching.len(), 3);
        let waits = async {
            for _ in 0..50 {
                let _place = places.acquire().await.unwrap();
                tokio::task::yield_now().await;
            }
        };
        let clock = Clock::starting_at(Timestamp::from_millis(0));
        clock.within(Duration::from_secs(60), fetching.go_on_beside(waits)).await.expect("no fetch keeps its place");
        let mut done = Vec::new();
        while let Some(number) = fetching.next().await {
            done.push(number);
        }
        done.sort_unstable();
        assert_eq!((done, fetching.len()), (vec![0, 1, 2], 0));
    }
}
