//! The event without data that begins a stream. It has an id, by which a client can come back to the stream. Clients of
//! protocol versions before 2025-11-25 do not know it: they take its empty data for a broken message, and Gemini CLI
//! ends the whole connection for that. An event that has a name is no message to them, and they note its id.

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::{HeaderMap, header};
use axum::middleware::Next;
use axum::response::Response;
use futures_util::TryStreamExt;

/// The first protocol version that has it. Versions are dates, so they can be compared as text.
const KNOWN_SINCE: &str = "2025-11-25";
const NAME: &[u8] = b"event: begin\n";

/// Around `/mcp`: gives the event a name in streams for clients that do not say they know it.
pub async fn name_where_unknown(request: Request, next: Next) -> Response {
    let is_known = knows_first_events(request.headers());
    let response = next.run(request).await;
    let kind = response.headers().get(header::CONTENT_TYPE).map(|value| value.as_bytes());
    if is_known || !kind.is_some_and(|kind| kind.starts_with(b"text/event-stream")) {
        return response;
    }
    response.map(|body| Body::from_stream(body.into_data_stream().map_ok(named)))
}

fn knows_first_events(headers: &HeaderMap) -> bool {
    let version = headers.get("mcp-protocol-version").and_then(|value| value.to_str().ok());
    version.is_some_and(|version| version >= KNOWN_SINCE)
}

/// An event as it is, with a name if it is one whose data are empty.
fn named(event: Bytes) -> Bytes {
    let ends = event.windows(2).position(|two| two == b"\n\n").map(|at| at + 2);
    let is_without_data = event.starts_with(b"data: \n") && ends == Some(event.len());
    if is_without_data { Bytes::from([NAME, &event].concat()) } else { event }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_event_without_data_is_named() {
        for (event, is_named) in [
            ("data: \nid: 0/0\nretry: 3000\n\n", true),
            ("data: {}\nid: 0/1\n\n", false),
            ("data: \nid: 0/0\n\ndata: {}\n\n", false),
            (": ping\n\n", false),
            ("data: \nid: 0/0\n", false),
        ] {
            let sent = named(Bytes::from(event));
            assert_eq!(sent.starts_with(NAME), is_named, "{event:?}");
            assert!(sent.ends_with(event.as_bytes()), "{event:?}");
        }
    }
}
