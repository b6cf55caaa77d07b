//! What other services send to webhooks. There is no token: the signature of the body says who sent it.
//!
//! In this order: an address that exists, not too many requests to it, a free place among the few whose bodies are
//! read, a body within its bounds, the right signature. Only then anything is parsed or stored.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use axum::Json;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use matsu_core::clock::Clock;
use matsu_core::error_code::ErrorCode;
use matsu_core::id::WebhookId;
use matsu_core::limits::{WEBHOOK_BODY_BYTES_MAX, WEBHOOK_BODY_MAX, WEBHOOK_DELIVERIES_AT_ONCE, WEBHOOK_REQUESTS_MAX};
use matsu_core::webhook::Webhook;
use matsu_runtime::webhooks::{Arrival, Incoming, Verified, verify};
use serde_json::json;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::Instant;

use crate::app::App;
use crate::problem::Problem;

const PREFIX: &str = "/hooks/";

/// The span that requests to a webhook are counted in.
const SPAN: Duration = Duration::from_secs(60);

/// A sender that was refused because of too many requests may come again after this many seconds.
const AGAIN_AFTER: HeaderValue = HeaderValue::from_static("60");

pub fn routes() -> Router<App> {
    Router::new().route("/hooks/{id}", post(take))
}

/// Whether a path is that of a webhook.
pub fn is_hook(path: &str) -> bool {
    path.starts_with(PREFIX)
}

/// What bounds requests to webhooks, in this process.
pub struct Hooks {
    clock: Clock,
    bodies: Semaphore,
    /// By webhook, so there are no more of them than webhooks.
    requests: Mutex<HashMap<WebhookId, (Instant, u32)>>,
}

impl Hooks {
    pub fn new(clock: Clock) -> Self {
        Self { clock, bodies: Semaphore::new(WEBHOOK_DELIVERIES_AT_ONCE), requests: Mutex::default() }
    }

    /// Counts a request; `false` if there were too many.
    fn admit(&self, webhook: &WebhookId) -> bool {
        let now = self.clock.instant();
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        let (began, count) = requests.entry(webhook.clone()).or_insert((now, 0));
        if now.saturating_duration_since(*began) >= SPAN {
            (*began, *count) = (now, 0);
        }
        *count += 1;
        *count <= WEBHOOK_REQUESTS_MAX
    }

    /// The right to read a body. Who comes while all are taken waits for as long as a body may take.
    async fn place(&self) -> Option<SemaphorePermit<'_>> {
        let place = self.bodies.acquire();
        tokio::select! {
            place = place => place.ok(),
            () = self.clock.sleep(WEBHOOK_BODY_MAX) => None,
        }
    }

    async fn body(&self, body: Body) -> Result<Bytes, Problem> {
        let late = || {
            let seconds = WEBHOOK_BODY_MAX.as_secs();
            Problem::invalid(format!("the body did not arrive within {seconds} seconds"))
        };
        tokio::select! {
            body = axum::body::to_bytes(body, WEBHOOK_BODY_BYTES_MAX) => body.map_err(|_| too_long()),
            () = self.clock.sleep(WEBHOOK_BODY_MAX) => Err(late().with_status(StatusCode::REQUEST_TIMEOUT)),
        }
    }
}

fn too_long() -> Problem {
    let message = format!("the body has more than {WEBHOOK_BODY_BYTES_MAX} bytes, or broke off");
    Problem::new(ErrorCode::LimitExceeded, message).with_status(StatusCode::PAYLOAD_TOO_LARGE)
}

async fn take(State(app): State<App>, Path(id): Path<String>, headers: HeaderMap, body: Body) -> Response {
    match received(&app, &id, &headers, body).await {
        Ok(response) => response,
        Err(problem) => {
            app.refusals().note(PREFIX, problem.detail());
            let mut response = problem.into_response();
            if response.status() == StatusCode::TOO_MANY_REQUESTS {
                response.headers_mut().insert(header::RETRY_AFTER, AGAIN_AFTER);
            }
            // A bearer token is not what is asked for here.
            response.headers_mut().remove(header::WWW_AUTHENTICATE);
            response
        }
    }
}

async fn received(app: &App, id: &str, headers: &HeaderMap, body: Body) -> Result<Response, Problem> {
    let unknown = || Problem::new(ErrorCode::ResourceNotFound, "there is no such webhook");
    let webhook = app.runtime().webhook_at(id).await?.ok_or_else(unknown)?;
    let busy = |message: &str| Problem::new(ErrorCode::LimitExceeded, message);
    if !app.hooks().admit(&webhook.id) {
        return Err(busy("too many requests to this webhook; send it again later"));
    }
    if declared(headers).is_some_and(|bytes| bytes > WEBHOOK_BODY_BYTES_MAX) {
        return Err(too_long());
    }
    let place = app.hooks().place().await;
    let place = place.ok_or_else(|| busy("too many deliveries arrive at once; send it again later"))?;
    let body = app.hooks().body(body).await?;
    let verified = check(app, &webhook, headers, &body)?;
    let arrival = app.runtime().receive(&webhook, verified, &body).await?;
    drop(place);
    let (status, word) = match arrival {
        Arrival::Taken(taken) if taken.is_repeated => (StatusCode::OK, "repeated"),
        Arrival::Taken(_) => (StatusCode::ACCEPTED, "accepted"),
        Arrival::Ping => (StatusCode::OK, "pong"),
    };
    Ok((status, Json(json!({ "status": word }))).into_response())
}

fn check(app: &App, webhook: &Webhook, headers: &HeaderMap, body: &[u8]) -> Result<Verified, Problem> {
    let header = |name: &str| {
        let mut values = headers.get_all(name).iter();
        let value = values.next()?.to_str().ok()?;
        // Of two values it is not known which one was meant.
        values.next().is_none().then(|| value.to_owned())
    };
    let incoming = Incoming { header: &header, body };
    verify(webhook, &incoming, app.runtime().clock().now()).map_err(|refused| {
        tracing::debug!(webhook = webhook.name, why = refused.0, "a delivery was refused");
        Problem::new(ErrorCode::Unauthorized, refused.0)
    })
}

fn declared(headers: &HeaderMap) -> Option<usize> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn requests_to_one_webhook_are_bounded_and_another_is_not_affected() {
        let clock = Clock::system();
        let (hooks, one, other) = (Hooks::new(clock), WebhookId::from_text("a"), WebhookId::from_text("b"));
        let admitted = (0..1_000).filter(|_| hooks.admit(&one)).count();
        assert_eq!(admitted, WEBHOOK_REQUESTS_MAX as usize);
        assert!(hooks.admit(&other));
        clock.sleep(SPAN).await;
        assert!(hooks.admit(&one), "after a minute it counts anew");
    }

    #[tokio::test(start_paused = true)]
    async fn few_bodies_are_read_at_once_and_a_slow_one_ends() {
        let clock = Clock::system();
        let hooks = Hooks::new(clock);
        let mut places = Vec::new();
        for _ in 0..WEBHOOK_DELIVERIES_AT_ONCE {
            places.push(hooks.place().await.unwrap());
        }
        let began = clock.instant();
        assert!(hooks.place().await.is_none());
        assert_eq!(clock.instant() - began, WEBHOOK_BODY_MAX);
        places.pop();
        assert!(hooks.place().await.is_some());
        let never = Body::from_stream(futures_util::stream::pending::<Result<Bytes, std::io::Error>>());
        assert_eq!(hooks.body(never).await.unwrap_err().into_response().status(), StatusCode::REQUEST_TIMEOUT);
        let long = Body::from(vec![b'a'; WEBHOOK_BODY_BYTES_MAX + 1]);
        assert_eq!(hooks.body(long).await.unwrap_err().into_response().status(), StatusCode::PAYLOAD_TOO_LARGE);
    }
}
