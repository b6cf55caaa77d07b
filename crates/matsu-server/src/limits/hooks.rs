//! What bounds requests to webhooks.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::StatusCode;
use matsu_core::clock::Clock;
use matsu_core::error_code::ErrorCode;
use matsu_core::id::WebhookId;
use matsu_core::limits::{WEBHOOK_BODY_BYTES_MAX, WEBHOOK_BODY_MAX, WEBHOOK_DELIVERIES_AT_ONCE, WEBHOOK_REQUESTS_MAX};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::Instant;

use crate::problem::Problem;

pub const PREFIX: &str = "/hooks/";

/// The span that requests to a webhook are counted in.
const SPAN: Duration = Duration::from_secs(60);

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
    pub fn admit(&self, webhook: &WebhookId) -> bool {
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
    pub async fn place(&self) -> Option<SemaphorePermit<'_>> {
        let place = self.bodies.acquire();
        tokio::select! {
            place = place => place.ok(),
            () = self.clock.sleep(WEBHOOK_BODY_MAX) => None,
        }
    }

    pub async fn body(&self, body: Body) -> Result<Bytes, Problem> {
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

pub fn too_long() -> Problem {
    let message = format!("the body has more than {WEBHOOK_BODY_BYTES_MAX} bytes, or broke off");
    Problem::new(ErrorCode::LimitExceeded, message).with_status(StatusCode::PAYLOAD_TOO_LARGE)
}

#[cfg(test)]
mod tests {
    use axum::response::IntoResponse;

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
