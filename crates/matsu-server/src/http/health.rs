//! Is it alive, is it ready, what does it count.

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use crate::app::App;
use crate::auth::Caller;
use matsu_runtime::tasks::queue::Queue;

pub fn routes() -> Router<App> {
    Router::new().route("/healthz", get(healthz)).route("/readyz", get(readyz)).route("/metrics", get(metrics))
}

/// The process answers.
async fn healthz() -> &'static str {
    "ok\n"
}

/// The store answers too, and the process is not shutting down.
async fn readyz(State(app): State<App>) -> Response {
    if app.shutdown().is_cancelled() {
        return (StatusCode::SERVICE_UNAVAILABLE, "ending\n").into_response();
    }
    match Queue::of(app.runtime()).nodes().await {
        Ok(_) => "ready\n".into_response(),
        Err(error) => (StatusCode::SERVICE_UNAVAILABLE, format!("{error}\n")).into_response(),
    }
}

async fn metrics(State(app): State<App>, caller: Caller) -> Response {
    if let Err(problem) = caller.check_admin() {
        return problem.into_response();
    }
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], app.metrics()).into_response()
}
