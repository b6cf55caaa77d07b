//! The end of a stream goes out together with its last event. Some clients close the connection as soon as they have
//! their answer. If the end were still unread in it then, the connection would be reset, as it is by a client that has
//! read nothing, and what the answer shows would count as unread.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::header;
use axum::middleware::Next;
use axum::response::Response;
use futures_util::stream::{self, Stream, StreamExt};
use matsu_core::clock::Clock;

/// The end comes right behind the answer. An answer is held back this long at most.
const END_MAX: Duration = Duration::from_millis(50);

/// Around `/mcp`.
pub async fn end_with_the_answer(State(clock): State<Clock>, request: Request, next: Next) -> Response {
    let response = next.run(request).await;
    let kind = response.headers().get(header::CONTENT_TYPE).map(|value| value.as_bytes());
    if !kind.is_some_and(|kind| kind.starts_with(b"text/event-stream")) {
        return response;
    }
    response.map(|body| Body::from_stream(joined(body.into_data_stream(), clock)))
}

/// The same events; an answer waits for what comes behind it.
fn joined<E>(
    events: impl Stream<Item = Result<Bytes, E>> + Unpin,
    clock: Clock,
) -> impl Stream<Item = Result<Bytes, E>> {
    // What was read ahead: an event, or the end.
    let state = (events, None::<Option<Result<Bytes, E>>>);
    stream::unfold(state, move |(mut events, ahead)| async move {
        let event = match ahead {
            Some(ahead) => ahead?,
            None => events.next().await?,
        };
        let is_answer = event.as_ref().is_ok_and(|event| is_answer(event));
        let ahead = if is_answer { clock.within(END_MAX, events.next()).await } else { None };
        Some((event, (events, ahead)))
    })
}

/// Whether an event is the answer to a request. Others (progress, the first event) are sent on at once.
fn is_answer(event: &[u8]) -> bool {
    event.starts_with(b"data: {\"jsonrpc\":\"2.0\",\"id\":")
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANSWER: &str = "data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n";
    const PROGRESS: &str = "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"}\n\n";

    fn events(texts: &[&'static str]) -> Vec<Result<Bytes, ()>> {
        texts.iter().map(|text| Ok(Bytes::from_static(text.as_bytes()))).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn every_event_is_passed_on_in_order() {
        for texts in [vec![], vec![ANSWER], vec![PROGRESS, ANSWER], vec![ANSWER, PROGRESS, ANSWER, ANSWER]] {
            let sent: Vec<_> = joined(stream::iter(events(&texts)), Clock::system()).collect().await;
            assert_eq!(sent, events(&texts));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn only_an_answer_waits_and_not_for_long() {
        let clock = Clock::system();
        for (text, held) in [(PROGRESS, Duration::ZERO), (ANSWER, END_MAX)] {
            let endless = stream::iter(events(&[text])).chain(stream::pending());
            let began = clock.instant();
            let mut sent = Box::pin(joined(endless, clock));
            assert_eq!(sent.next().await, events(&[text]).pop(), "{text}");
            let took = clock.instant() - began;
            assert!(took >= held && took < held + Duration::from_millis(5), "{text}: {took:?}");
        }
    }
}
