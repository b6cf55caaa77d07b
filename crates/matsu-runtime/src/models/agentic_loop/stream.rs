//! The loop as a stream: polling it runs it, and each event comes out before the loop runs on.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::{Stream, StreamExt};
use matsu_core::history::Entry;
use matsu_core::ports::provider::Provider;
use tokio::sync::mpsc;

use super::drive;
use super::event::{AgenticLoopResult, Event};
use super::options::LoopOptions;

/// Where the parts of a loop send their events.
#[derive(Clone)]
pub struct Sink(mpsc::UnboundedSender<Event>);

impl Sink {
    pub fn send(&self, event: Event) {
        // The other end is in the same stream; it is gone only if the loop is not polled any more.
        let _ = self.0.send(event);
    }
}

/// Never holds more than what one poll of the loop brought forth.
pub struct LoopStream {
    events: mpsc::UnboundedReceiver<Event>,
    /// Gone once it has ended.
    run: Option<Pin<Box<dyn Future<Output = AgenticLoopResult> + Send>>>,
    result: Option<AgenticLoopResult>,
    chunks: Vec<Event>,
}

impl LoopStream {
    pub(super) fn new(provider: Arc<dyn Provider>, history: Vec<Entry>, options: LoopOptions) -> Self {
        let (sender, events) = mpsc::unbounded_channel();
        let run = Box::pin(drive::run(provider, history, options, Sink(sender)));
        Self { events, run: Some(run), result: None, chunks: Vec::new() }
    }

    /// Runs to the end.
    pub async fn collect(mut self) -> Arc<AgenticLoopResult> {
        loop {
            match self.next().await {
                Some(Event::Done(result)) => return result,
                Some(_) => {}
                None => std::future::pending().await,
            }
        }
    }

    fn ready(&mut self) -> Option<Event> {
        let event = self.events.try_recv().ok()?;
        self.chunks.push(event.clone());
        Some(event)
    }
}

impl Stream for LoopStream {
    type Item = Event;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        if let Some(event) = self.ready() {
            return Poll::Ready(Some(event));
        }
        if let Some(run) = &mut self.run
            && let Poll::Ready(result) = run.as_mut().poll(cx)
        {
            self.run = None;
            self.result = Some(result);
        }
        if let Some(event) = self.ready() {
            return Poll::Ready(Some(event));
        }
        match (self.run.is_some(), self.result.take()) {
            (true, _) => Poll::Pending,
            (false, Some(result)) => {
                let chunks = std::mem::take(&mut self.chunks);
                Poll::Ready(Some(Event::Done(Arc::new(AgenticLoopResult { chunks, ..result }))))
            }
            (false, None) => Poll::Ready(None),
        }
    }
}
