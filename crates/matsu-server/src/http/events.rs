//! `GET /events`: what moves, as it moves. One stream serves one browser, however many tabs it has.
//!
//! Rows are whole and carry their revision, so that repeats and disorder are harmless: a reader keeps the newer one.

mod cursor;
mod rows;
mod stream;

use std::collections::BTreeSet;

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::sse::Sse;
use axum::response::{IntoResponse, Response};
use futures_util::stream::unfold;
use matsu_core::error_code::ErrorCode;
use matsu_core::limits::STREAM_TOPICS_MAX;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::app::App;
use crate::auth::Caller;
use crate::problem::Problem;
use crate::resource::{Resource, operation};

use cursor::Cursor;
use stream::Stream;

pub fn routes() -> Resource {
    let open_events =
        operation("open_events", "Changes of tasks and jobs, as server-sent events.").query::<EventsQuery>();
    let follow = operation("follow_topics", "Sets the extra topics of a stream.").body::<TopicsBody>();
    Resource::default().get("/events", open_events.streams::<EventBody>(), open).post(
        "/events/{stream_id}/topics",
        follow.for_viewers_too(),
        set_topics,
    )
}

/// The data of one event.
#[derive(Serialize, JsonSchema)]
pub struct EventBody {
    /// What it is about: `task/<id>`, `chat/<id>`, …
    pub topic: String,
    pub revision: i64,
    pub at: String,
    /// The row itself, its fields beside these.
    #[serde(flatten)]
    pub row: serde_json::Map<String, serde_json::Value>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct EventsQuery {
    /// The id of the last event that was read; the stream continues after it. The header `Last-Event-ID` does the same.
    cursor: Option<String>,
    /// `queue` (every job), `task/<id>` (the jobs of one task); separated by commas.
    #[serde(default)]
    topics: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TopicsBody {
    #[schemars(length(max = 64), inner(regex(pattern = "^(queue$|task/)")))]
    topics: Vec<String>,
}

async fn open(
    State(app): State<App>,
    caller: Caller,
    Query(query): Query<EventsQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok()).map(str::to_owned);
    let cursor = last.or(query.cursor).map(|text| Cursor::parse(&text)).transpose()?;
    let topics = query.topics.split(',').filter(|topic| !topic.is_empty()).map(str::to_owned);
    let following = app.streams().open(app.runtime().clock().now(), caller.viewer(), checked(topics.collect())?)?;
    let stream = Stream::begin(app, caller, following, cursor).await?;
    let events = unfold(stream, |stream| stream.next());
    let unbuffered = [("cache-control", "no-store"), ("x-accel-buffering", "no")];
    Ok((unbuffered, Sse::new(events)).into_response())
}

async fn set_topics(
    State(app): State<App>,
    caller: Caller,
    Path(stream_id): Path<String>,
    Json(body): Json<TopicsBody>,
) -> Result<StatusCode, Problem> {
    let topics = checked(body.topics.into_iter().collect())?;
    if !app.streams().follow(&stream_id, &caller.principal, topics) {
        return Err(Problem::new(ErrorCode::ResourceNotFound, "this stream has ended; open another"));
    }
    Ok(StatusCode::NO_CONTENT)
}

fn checked(topics: BTreeSet<String>) -> Result<BTreeSet<String>, Problem> {
    if topics.len() > STREAM_TOPICS_MAX {
        return Err(Problem::invalid(format!("a stream follows at most {STREAM_TOPICS_MAX} topics")));
    }
    match topics.iter().find(|topic| *topic != "queue" && !topic.starts_with("task/")) {
        Some(odd) => Err(Problem::invalid(format!("topics are queue and task/<id>, got {odd:?}"))),
        None => Ok(topics),
    }
}
