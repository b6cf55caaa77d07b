//! Answers that a client fetches over another connection than the one it asked on: its stream broke, and it comes back
//! to it with the id of the last event. What such an answer shows is read when it goes out on the new connection.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method};
use axum::middleware::Next;
use axum::response::Response;
use futures_util::StreamExt;
use matsu_runtime::chats::sessions::Delivery;
use rmcp::model::RequestId;
use serde::Deserialize;

use crate::app::App;
use crate::connections::disconnects::Carried;

/// Around `/mcp`.
pub async fn mark_what_is_resumed(State(app): State<App>, request: Request, next: Next) -> Response {
    let session = session_resumed(request.method(), request.headers());
    let carried = request.extensions().get::<Carried>().cloned();
    let response = next.run(request).await;
    let (Some(session), Some(carried)) = (session, carried) else { return response };
    response.map(|body| {
        let events = body.into_data_stream();
        Body::from_stream(events.then(move |event| {
            let (app, session, carried) = (app.clone(), session.clone(), carried.clone());
            async move {
                if let Ok(event) = &event {
                    mark(&app, &session, &carried, event).await;
                }
                event
            }
        }))
    })
}

fn session_resumed(method: &Method, headers: &HeaderMap) -> Option<String> {
    let is_resumed = method == Method::GET && headers.contains_key("last-event-id");
    let session = headers.get("mcp-session-id").filter(|_| is_resumed)?;
    session.to_str().ok().map(str::to_owned)
}

/// Marks what an event shows as read. It is taken back if this connection breaks too.
async fn mark(app: &App, session: &str, carried: &Carried, event: &Bytes) {
    let found = answered_in(event).and_then(|request| app.resumable().find(session, &request.to_string()));
    let Some(shown) = found else { return };
    let delivery = Arc::new(Delivery::again(shown));
    delivery.sent(app.runtime()).await;
    if !carried.carries(&delivery) {
        delivery.take_back(app.runtime()).await;
    }
}

/// Which request an event answers, if it is an answer.
fn answered_in(event: &[u8]) -> Option<RequestId> {
    #[derive(Deserialize)]
    struct Head {
        id: RequestId,
        method: Option<serde::de::IgnoredAny>,
    }
    let data = event.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(b"data:"))?;
    let head: Head = serde_json::from_slice(data).ok()?;
    head.method.is_none().then_some(head.id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_answers_are_found_in_events() {
        let number = |n| Some(RequestId::Number(n));
        for (event, request) in [
            ("id: 3/1\ndata: {\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}\n\n", number(7)),
            ("data:{\"jsonrpc\":\"2.0\",\"result\":{},\"id\":8}\nid: 1\n\n", number(8)),
            ("data: {\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\"}\n\n", None),
            ("data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"}\n\n", None),
            ("data:\nid: 0\nretry: 3000\n\n", None),
            (": ping\n\n", None),
        ] {
            assert_eq!(answered_in(event.as_bytes()), request, "{event}");
        }
    }
}
