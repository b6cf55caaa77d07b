//! What other services send to webhooks. There is no token: the signature of the body says who sent it.
//!
//! In this order: an address that exists, not too many requests to it, a free place among the few whose bodies are
//! read, a body within its bounds, the right signature. Only then anything is parsed or stored.

use axum::Json;
use axum::Router;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use matsu_core::error_code::ErrorCode;
use matsu_core::limits::WEBHOOK_BODY_BYTES_MAX;
use matsu_core::webhook::Webhook;
use matsu_runtime::notify::webhooks::{Arrival, Incoming, Verified, Webhooks, verify};
use serde_json::json;

use crate::app::App;
use crate::limits::hooks::{PREFIX, too_long};
use crate::problem::Problem;

/// A sender that was refused because of too many requests may come again after this many seconds.
const AGAIN_AFTER: HeaderValue = HeaderValue::from_static("60");

pub fn routes() -> Router<App> {
    Router::new().route("/hooks/{id}", post(take))
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
    let webhook = Webhooks::of(app.runtime()).webhook_at(id).await?.ok_or_else(unknown)?;
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
    let arrival = Webhooks::of(app.runtime()).receive(&webhook, verified, &body).await?;
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
