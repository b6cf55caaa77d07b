//! The HTTP side: finds the format, asks the author, sends the answer in pieces and notes how the request ended.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream::{self, Stream};
use matsu_core::clock::Clock;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::formats::{Answer, FORMATS, WireFormat};
use super::journal::Journal;
use super::request::{Asked, Fate, Recorded};
use super::script::{Part, Reply};
use super::strict;
use super::{Author, Manners};

/// Longer than any conversation of a test.
const BODY_BYTES_MAX: usize = 64 << 20;

#[derive(Clone)]
struct ServerState {
    author: Arc<Mutex<Author>>,
    journal: Arc<Journal>,
    manners: Manners,
}

pub(super) async fn serve(
    listener: TcpListener,
    (author, manners): (Author, Manners),
    journal: Arc<Journal>,
    stopped: oneshot::Receiver<()>,
) {
    let state = ServerState { author: Arc::new(Mutex::new(author)), journal, manners };
    let router = Router::new().fallback(answer).with_state(state);
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
    // Not a graceful shutdown: answers that hang would never let go.
    tokio::select! {
        _ = axum::serve(listener, router).into_future() => {}
        _ = stopped => {}
    }
}

async fn answer(State(state): State<ServerState>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let body = to_bytes(body, BODY_BYTES_MAX).await.unwrap_or_default();
    let body: Value = serde_json::from_slice(&body).unwrap_or(Value::Null);
    let path = head.uri.path();
    let is_post = head.method == axum::http::Method::POST;
    let format = FORMATS.iter().copied().find(|format| is_post && format.claims(path));
    let asked = format.map(|format| format.asked(path, &body));
    let strict = asked.as_ref().filter(|_| state.manners == Manners::Strict);
    let complaint = strict.and_then(|asked| strict::complaint(asked.format, &body));
    let number = state.journal.record(Recorded {
        method: head.method.to_string(),
        path: path.to_owned(),
        headers: readable(&head.headers),
        body,
        asked: asked.clone(),
        fate: Fate::Open,
    });
    let ending = Ending { journal: Arc::clone(&state.journal), number, fate: Fate::ClientLeft };
    match (format, asked) {
        (Some(format), Some(asked)) => {
            let said = match complaint {
                Some(words) => Reply::error(400, &words),
                None => (state.author.lock().unwrap_or_else(PoisonError::into_inner))(&asked),
            };
            reply(said, format, &asked, ending).await
        }
        _ => small_talk(path, ending),
    }
}

/// What clients ask besides: whether the server answers, how long a text is, which models there are.
fn small_talk(path: &str, mut ending: Ending) -> Response {
    ending.answered();
    let found = |body: Value| (StatusCode::OK, axum::Json(body)).into_response();
    match path {
        "/" => found(json!({})),
        path if path.ends_with("/count_tokens") => found(json!({ "input_tokens": 100 })),
        path if path.ends_with(":countTokens") => found(json!({ "totalTokens": 100 })),
        path if path.ends_with("/models") => found(json!({ "object": "list", "data": [], "models": [] })),
        _ => (StatusCode::NOT_FOUND, axum::Json(json!({ "error": { "message": "nothing is here" } }))).into_response(),
    }
}

async fn reply(reply: Reply, format: &dyn WireFormat, asked: &Asked, mut ending: Ending) -> Response {
    let opening = |text: &str| {
        let parts = [Part::Text(text.to_owned())];
        format.opening(&Answer { model: &asked.model, number: ending.number, parts: &parts })
    };
    match reply {
        Reply::Say(parts) => said(format, asked, &parts, ending),
        Reply::After { ms, say } => {
            Clock::system().sleep(Duration::from_millis(ms)).await;
            said(format, asked, &say, ending)
        }
        Reply::Hang(text) => in_pieces(opening(&text), After::Nothing, ending),
        Reply::Cut(text) => in_pieces(opening(&text), After::Broken, ending),
        Reply::Raw(pieces) => in_pieces(pieces, After::End, ending),
        Reply::Refuse { status, message, retry_after } => {
            ending.answered();
            let code = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            let mut response = (code, axum::Json(format.refusal(status, &message))).into_response();
            if let Some(seconds) = retry_after {
                response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
            }
            response
        }
    }
}

fn said(format: &dyn WireFormat, asked: &Asked, parts: &[Part], mut ending: Ending) -> Response {
    let answer = Answer { model: &asked.model, number: ending.number, parts };
    if asked.stream {
        return in_pieces(format.pieces(&answer), After::End, ending);
    }
    ending.answered();
    axum::Json(format.whole(&answer)).into_response()
}

/// What follows the last piece.
#[derive(Clone, Copy)]
enum After {
    End,
    Nothing,
    Broken,
}

fn in_pieces(pieces: Vec<String>, after: After, ending: Ending) -> Response {
    let headers = [(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-cache")];
    (headers, Body::from_stream(stream_of(pieces, after, ending))).into_response()
}

/// One item at a time, so that a client that leaves is noticed where it left.
fn stream_of(
    pieces: Vec<String>,
    after: After,
    ending: Ending,
) -> impl Stream<Item = Result<Bytes, std::io::Error>> + Send + 'static {
    stream::unfold((pieces.into_iter(), ending), move |(mut pieces, mut ending)| async move {
        if let Some(piece) = pieces.next() {
            return Some((Ok(Bytes::from(piece)), (pieces, ending)));
        }
        match after {
            After::End => {
                ending.answered();
                None
            }
            After::Nothing => std::future::pending().await,
            After::Broken if ending.fate == Fate::Answered => None,
            After::Broken => {
                // What came so far is sent when the stream has nothing for a moment; an error at once would discard it.
                tokio::task::yield_now().await;
                ending.answered();
                Some((Err(std::io::Error::other("cut by the script")), (pieces, ending)))
            }
        }
    })
}

fn readable(headers: &HeaderMap) -> BTreeMap<String, String> {
    let text = |value: &axum::http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    headers.iter().map(|(name, value)| (name.as_str().to_owned(), text(value))).collect()
}

/// Notes how the request ended, whichever way its answer is dropped.
struct Ending {
    journal: Arc<Journal>,
    number: usize,
    fate: Fate,
}

impl Ending {
    fn answered(&mut self) {
        self.fate = Fate::Answered;
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.journal.end(self.number, self.fate);
    }
}
