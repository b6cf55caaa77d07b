//! `/mcp`: Streamable HTTP for both eras of the protocol.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::{Json, Router};
use matsu_core::limits::BODY_BYTES_MAX;
use matsu_runtime::dispatch::presets::Offer;
use rmcp::ServerHandler;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::{Value, json};

use super::first_events::name_where_unknown;
use super::http_sessions::{HttpSessions, belong};
use super::kept_answers::Sessions;
use super::last_events::end_with_the_answer;
use super::resumed::mark_what_is_resumed;
use super::{Connection, McpHandler};
use crate::app::App;

/// `/mcp` behind the guard of the TCP listener, which has checked Host, Origin and token before.
pub fn routes(app: &App) -> Router<App> {
    let connection = Connection {
        caller: None,
        offer: Offer::default(),
        hold_max: None,
        workplace: Arc::default(),
        session_token: None,
        id: format!("http/{}", app.runtime().node()).into(),
        run: None,
        refusal: None,
        call: None,
        // Over HTTP no relay is in between.
        acknowledges: false,
        ended: tokio_util::sync::CancellationToken::new(),
    };
    let for_handlers = app.clone();
    serving(app, move || McpHandler::new(for_handlers.clone(), connection.clone()))
}

/// `/mcp` with a handler for each session, or for each request of a client without one.
pub fn serving<H: ServerHandler>(app: &App, handler: impl Fn() -> H + Send + Sync + 'static) -> Router<App> {
    let manager = Arc::new(Sessions::new(*app.runtime().clock()));
    let owned = HttpSessions::new(Arc::clone(&manager), *app.runtime().clock());
    let service = StreamableHttpService::new(move || Ok(handler()), manager, settings(app));
    let routes = Router::new().route_service("/mcp", service).layer(from_fn_with_state(owned, belong));
    let routes = routes.layer(from_fn(name_where_unknown));
    let routes = routes.layer(from_fn_with_state(app.clone(), mark_what_is_resumed));
    let routes = routes.layer(from_fn_with_state(*app.runtime().clock(), end_with_the_answer));
    routes.layer(from_fn(name_the_task)).layer(from_fn(say_what_cannot_be_read))
}

/// Clients of others leave `Mcp-Name` out on `tasks/…`, where it repeats the task's id. A header that is there is
/// checked as ever.
async fn name_the_task(request: Request, next: Next) -> Response {
    if !lacks_the_name(request.headers()) {
        return next.run(request).await;
    }
    let (mut parts, body) = request.into_parts();
    let Ok(bytes) = axum::body::to_bytes(body, BODY_BYTES_MAX).await else {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    };
    let message: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    let id = message["params"]["taskId"].as_str().and_then(|id| HeaderValue::from_str(id).ok());
    if let Some(id) = id {
        parts.headers.insert("mcp-name", id);
    }
    next.run(Request::from_parts(parts, Body::from(bytes))).await
}

fn lacks_the_name(headers: &HeaderMap) -> bool {
    let method = headers.get("mcp-method").and_then(|value| value.to_str().ok());
    !headers.contains_key("mcp-name") && method.is_some_and(|method| method.starts_with("tasks/"))
}

/// The SDK calls a body that is no JSON a wrong media type; the protocol has a word of its own for it.
async fn say_what_cannot_be_read(request: Request, next: Next) -> Response {
    let claimed = request.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let claims_json = claimed.is_some_and(|value| value.starts_with("application/json"));
    let response = next.run(request).await;
    if !claims_json || response.status() != StatusCode::UNSUPPORTED_MEDIA_TYPE {
        return response;
    }
    tracing::warn!(path = "/mcp", "a body cannot be read");
    let error = json!({ "code": -32700, "message": "the body cannot be read as a JSON-RPC message" });
    (StatusCode::BAD_REQUEST, Json(json!({ "jsonrpc": "2.0", "id": null, "error": error }))).into_response()
}

fn settings(app: &App) -> StreamableHttpServerConfig {
    StreamableHttpServerConfig::default()
        .with_cancellation_token(app.shutdown().clone())
        .with_max_request_body_bytes(BODY_BYTES_MAX)
        // Ours has refused foreign origins already; two lists of what is ours would drift apart.
        .disable_allowed_hosts()
}
