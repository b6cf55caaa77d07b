//! A chat with models as it is written. What is settled is sent once; what is still being written is sent again with
//! each change. The id of an event is the number up to which everything is settled, so a client that comes back with it
//! misses nothing and gets nothing twice that cannot change.

use std::convert::Infallible;

use axum::extract::{Path, Query, State};
use axum::http::HeaderMap;
use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream::unfold;
use matsu_core::id::ChatId;
use matsu_core::limits::{STREAM_PAUSE, STREAM_PING_EVERY};
use matsu_core::principal::Principal;
use matsu_core::wake::Subscription;
use matsu_runtime::chats::Chats;
use matsu_runtime::models::chat::LiveChats;
use matsu_runtime::models::chat::live::Spoken;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio::time::Instant;

use super::{live, problem};
use crate::app::App;
use crate::auth::Caller;
use crate::problem::Problem;
use crate::resource::{Resource, operation};
use crate::wire::people::MessageBody;

/// How many events may follow each other without a pause.
const AT_ONCE: u32 = 4;

pub fn routes() -> Resource {
    let stream = operation(
        "follow_chat",
        "A chat with models, as a stream of `chat` events. Keep your messages up to `kept_to`, and put these behind \
         them.",
    );
    Resource::default().get("/chats/{id}/stream", stream.query::<FollowQuery>().streams::<ChatNowBody>(), follow)
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FollowQuery {
    /// The id of the last event that was read. The header `Last-Event-ID` does the same.
    after: Option<i64>,
    /// Stops the answer when this client disconnects.
    #[serde(default)]
    hold: bool,
}

/// The data of an event `chat`.
#[derive(Serialize, JsonSchema)]
struct ChatNowBody {
    /// Messages with a greater `seq` are replaced by these.
    kept_to: i64,
    /// Whole messages; those that are running are sent again with each change.
    messages: Vec<MessageBody>,
    /// Messages of Matsu itself: errors, and MCP servers that are not available.
    notices: Vec<String>,
    /// The models that have answered the last message.
    spoken: Vec<SpokenBody>,
    /// Whether more follows without a new message.
    answering: bool,
}

/// How a model's answer ended.
#[derive(Serialize, JsonSchema)]
struct SpokenBody {
    model: String,
    /// end_turn, max_iterations, timeout, cancelled, budget or error.
    stop_reason: String,
    error: Option<String>,
    error_code: Option<String>,
    input_tokens: u64,
    output_tokens: u64,
    /// Millionths of the configured currency; absent where no price is known.
    cost_micros: Option<u64>,
}

impl From<&Spoken> for SpokenBody {
    fn from(spoken: &Spoken) -> Self {
        let result = &spoken.result;
        Self {
            model: spoken.model.clone(),
            stop_reason: result.stop_reason.as_str().to_owned(),
            error: result.error.as_ref().map(|error| error.message.clone()),
            error_code: result.error.as_ref().map(|error| error.code.to_string()),
            input_tokens: result.usage.input_tokens,
            output_tokens: result.usage.output_tokens,
            cost_micros: result.cost_micros,
        }
    }
}

/// Stops the answer when its only listener is gone, however it went.
struct Hold {
    chats: LiveChats,
    id: ChatId,
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.chats.interrupt(&self.id);
    }
}

async fn follow(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    Query(query): Query<FollowQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok()).map(str::parse);
    let last = last.transpose().map_err(|_| Problem::invalid("Last-Event-ID is a number here"))?;
    let id = ChatId::from_text(id);
    let chats = live(&app)?.clone();
    // Both before the first look, so that nothing falls between.
    let changes = chats.follow(&caller.principal, &id).await.map_err(problem)?;
    let elsewhere = Chats::of(app.runtime()).subscribe(&id);
    let hold = query.hold.then(|| Hold { chats: chats.clone(), id: id.clone() });
    let reader = Reader {
        app,
        chats,
        _hold: hold,
        owner: caller.principal,
        id,
        changes,
        elsewhere,
        settled: last.or(query.after).unwrap_or(0).max(0),
        sent_at: None,
        sent: String::new(),
        answering: false,
    };
    let events = unfold(reader, Reader::next);
    let unbuffered = [("cache-control", "no-store"), ("x-accel-buffering", "no")];
    Ok((unbuffered, Sse::new(events)).into_response())
}

struct Reader {
    app: App,
    chats: LiveChats,
    _hold: Option<Hold>,
    owner: Principal,
    id: ChatId,
    /// Changes of the chat in this process.
    changes: watch::Receiver<u64>,
    /// What any process stored.
    elsewhere: Subscription,
    /// What the reader has and keeps.
    settled: i64,
    /// When it may be sent again; absent before the first time. It lags behind by at most [`AT_ONCE`] pauses.
    sent_at: Option<Instant>,
    /// What was sent last.
    sent: String,
    /// Whether an answer was under way then.
    answering: bool,
}

impl Reader {
    async fn next(mut self) -> Option<(Result<Event, Infallible>, Self)> {
        let clock = *self.app.runtime().clock();
        loop {
            if let Some(sent_at) = self.sent_at {
                let shutdown = self.app.shutdown().clone();
                tokio::select! {
                    changed = self.changes.changed() => changed.ok()?,
                    () = self.elsewhere.woken() => {}
                    () = shutdown.cancelled() => return None,
                    () = clock.sleep(STREAM_PING_EVERY) => return Some((Ok(Event::default().event("ping").data("{}")), self)),
                }
                // Whatever ends a silence goes out at once, and so do the first words of an answer; when they come
                // closely for longer, they are sent together.
                if self.answering {
                    clock.sleep_until(sent_at).await;
                }
            }
            let was_answering = self.answering;
            if let Some(event) = self.look().await? {
                let now = clock.instant();
                let credit = now.checked_sub(STREAM_PAUSE * AT_ONCE).unwrap_or(now);
                let from = self.sent_at.filter(|_| was_answering).map_or(credit, |at| at.max(credit));
                self.sent_at = Some(from + STREAM_PAUSE);
                return Some((Ok(event), self));
            }
            self.sent_at.get_or_insert(clock.instant());
        }
    }

    /// The chat as it stands, if that is news. `None`: there is nothing to look at any more.
    async fn look(&mut self) -> Option<Option<Event>> {
        self.changes.mark_unchanged();
        let live = self.chats.view(&self.owner, &self.id, self.settled).await.ok()?;
        let now = ChatNowBody {
            kept_to: self.settled,
            messages: live.view.messages.iter().map(|message| MessageBody::of(&self.id, message)).collect(),
            notices: live.notices,
            spoken: live.spoken.iter().map(SpokenBody::from).collect(),
            answering: live.answering,
        };
        self.settled = live.view.settled_seq;
        self.answering = live.answering;
        let data = serde_json::to_string(&now).ok()?;
        // One change wakes us more than once: here, and through the store.
        if data == self.sent {
            return Some(None);
        }
        self.sent.clone_from(&data);
        Some(Some(Event::default().event("chat").id(self.settled.to_string()).data(data)))
    }
}
