//! Answers over HTTP that a client may come back for: its connection broke while it waited, and it resumes its stream by
//! the id of the last event it has, perhaps after the work has ended. The SDK itself keeps an answer only until it is
//! made. This is for sessions, so for protocol versions before 2026-07-28; later ones have no way back to a stream.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::stream::{self, Stream};
use matsu_core::clock::Clock;
use matsu_core::limits::HTTP_SESSION_KEPT;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::common::server_side_http::ServerSseMessage;
use rmcp::transport::streamable_http_server::session::local::{LocalSessionManager, LocalSessionManagerError};
use rmcp::transport::streamable_http_server::session::store::{EventId, EventStore, EventStoreError, EventStream};
use rmcp::transport::streamable_http_server::{SessionId, SessionManager};
use tokio::sync::watch;
use tokio::time::Instant;

/// Answers of all sessions together.
const KEPT_MAX: usize = 1024;
/// As long as their sessions.
const KEPT: Duration = HTTP_SESSION_KEPT;

/// The SDK's sessions with answers that are kept. Requests without a session do not know of them.
pub struct Sessions {
    inner: LocalSessionManager,
}

impl Sessions {
    pub fn new(clock: Clock) -> Self {
        let mut inner = LocalSessionManager::default().with_event_store(Arc::new(KeptAnswers::new(clock)));
        // It must outlive the longest wait inside it.
        inner.session_config.keep_alive = Some(HTTP_SESSION_KEPT);
        Self { inner }
    }
}

impl SessionManager for Sessions {
    type Error = LocalSessionManagerError;
    type Transport = <LocalSessionManager as SessionManager>::Transport;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), Self::Error> {
        self.inner.create_session().await
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, Self::Error> {
        self.inner.initialize_session(id, message).await
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, Self::Error> {
        self.inner.has_session(id).await
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), Self::Error> {
        self.inner.close_session(id).await
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        self.inner.create_stream(id, message).await
    }

    async fn accept_message(&self, id: &SessionId, message: ClientJsonRpcMessage) -> Result<(), Self::Error> {
        self.inner.accept_message(id, message).await
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        self.inner.create_standalone_stream(id).await
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        self.inner.resume(id, last_event_id).await
    }
}

/// The id of an event is its number and the name of its stream, which cannot be guessed. What only tells how far work
/// is gets an id and is not kept.
struct KeptAnswers {
    events: Arc<Events>,
    clock: Clock,
}

#[derive(Default)]
struct Events {
    log: Mutex<Log>,
    /// The number of the last event.
    last: watch::Sender<u64>,
}

#[derive(Default)]
struct Log {
    last: u64,
    kept: VecDeque<Kept>,
    /// The newest event that was kept once.
    newest_removed: u64,
}

#[derive(Clone)]
struct Kept {
    number: u64,
    stream: String,
    event: ServerSseMessage,
    at: Instant,
}

enum Next {
    Event(Box<Kept>),
    /// It may still come.
    NotYet,
    /// It may have been removed.
    Unknown,
}

impl KeptAnswers {
    fn new(clock: Clock) -> Self {
        Self { events: Arc::default(), clock }
    }
}

#[async_trait::async_trait]
impl EventStore for KeptAnswers {
    async fn store_event(&self, stream_id: &str, event: &ServerSseMessage) -> Result<EventId, EventStoreError> {
        let number = self.events.store(stream_id, event, self.clock.instant());
        Ok(format!("{number}/{stream_id}"))
    }

    async fn replay_events_after(&self, last_event_id: &str) -> Result<EventStream, EventStoreError> {
        let (number, stream) = last_event_id.split_once('/').ok_or("the id of the event has no stream")?;
        let last = (number.parse().map_err(|_| "the id of the event has no number")?, stream.to_owned());
        let state = Some((last, self.events.last.subscribe(), Arc::clone(&self.events)));
        Ok(Box::pin(stream::unfold(state, |state| async {
            let ((number, stream), mut news, events) = state?;
            let found = loop {
                news.borrow_and_update();
                match events.after(number, &stream) {
                    Next::Event(found) => break found,
                    Next::NotYet => news.changed().await.ok()?,
                    Next::Unknown => return None,
                }
            };
            // Nothing comes behind an answer.
            let goes_on = !is_answer(&found.event);
            Some((found.event, goes_on.then_some(((found.number, stream), news, events))))
        })))
    }
}

impl Events {
    fn store(&self, stream: &str, event: &ServerSseMessage, now: Instant) -> u64 {
        let number = {
            let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
            log.last += 1;
            let number = log.last;
            if is_kept(event) {
                let mut event = event.clone();
                event.event_id = Some(format!("{number}/{stream}"));
                log.kept.push_back(Kept { number, stream: stream.to_owned(), event, at: now });
            }
            while log.kept.len() > KEPT_MAX || log.kept.front().is_some_and(|kept| kept.at + KEPT < now) {
                log.newest_removed = log.kept.pop_front().map_or(log.newest_removed, |removed| removed.number);
            }
            number
        };
        self.last.send_replace(number);
        number
    }

    fn after(&self, number: u64, stream: &str) -> Next {
        let log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        match log.kept.iter().find(|kept| kept.number > number && kept.stream == stream) {
            Some(found) => Next::Event(Box::new(found.clone())),
            None if number < log.newest_removed => Next::Unknown,
            None => Next::NotYet,
        }
    }
}

fn is_answer(event: &ServerSseMessage) -> bool {
    let message = event.message.as_deref();
    matches!(message, Some(ServerJsonRpcMessage::Response(_) | ServerJsonRpcMessage::Error(_)))
}

/// Answers, and what the server asks its client.
fn is_kept(event: &ServerSseMessage) -> bool {
    is_answer(event) || matches!(event.message.as_deref(), Some(ServerJsonRpcMessage::Request(_)))
}

#[cfg(test)]
mod tests {
    use futures_util::{FutureExt, StreamExt};
    use serde_json::json;

    use super::*;

    fn event(message: serde_json::Value) -> ServerSseMessage {
        ServerSseMessage::from_message(serde_json::from_value(message).expect("a message"))
    }

    fn answer(id: i64) -> ServerSseMessage {
        event(json!({ "jsonrpc": "2.0", "id": id, "result": {} }))
    }

    fn progress() -> ServerSseMessage {
        let params = json!({ "progressToken": 1, "progress": 1.0 });
        event(json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params }))
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_is_replayed_whether_it_was_there_before_or_comes_later() {
        let answers = KeptAnswers::new(Clock::system());
        let begin = answers.store_event("a", &ServerSseMessage::retry(Duration::from_secs(3))).await.expect("an id");
        answers.store_event("a", &progress()).await.expect("an id");
        let early = answers.replay_events_after(&begin).await.expect("a stream");
        answers.store_event("b", &answer(7)).await.expect("an id");
        let mut early = std::pin::pin!(early);
        assert!(early.next().now_or_never().is_none(), "the answer of another stream");
        let stored = answers.store_event("a", &answer(1)).await.expect("an id");
        let late = answers.replay_events_after(&begin).await.expect("a stream").collect::<Vec<_>>().await;
        let early = early.collect::<Vec<_>>().await;
        for replayed in [early, late] {
            let ids: Vec<_> = replayed.iter().map(|event| event.event_id.as_deref()).collect();
            assert_eq!(ids, [Some(stored.as_str())]);
            assert!(is_answer(&replayed[0]));
        }
        assert!(answers.replay_events_after("nonsense").await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_old_goes_and_its_stream_ends() {
        let answers = KeptAnswers::new(Clock::system());
        let begin = answers.store_event("a", &progress()).await.expect("an id");
        answers.store_event("a", &answer(1)).await.expect("an id");
        for n in 0..KEPT_MAX {
            answers.store_event("b", &answer(i64::try_from(n).expect("small"))).await.expect("an id");
        }
        assert_eq!(answers.replay_events_after(&begin).await.expect("a stream").count().await, 0);
        assert_eq!(answers.events.log.lock().expect("not poisoned").kept.len(), KEPT_MAX);
        tokio::time::advance(KEPT + Duration::from_secs(1)).await;
        answers.store_event("b", &answer(1)).await.expect("an id");
        assert_eq!(answers.events.log.lock().expect("not poisoned").kept.len(), 1);
    }
}
