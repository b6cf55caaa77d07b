//! How processes of the same user control the daemon. On the socket only.

use std::collections::BTreeSet;

use axum::extract::State;
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::app::App;
use crate::problem::Problem;

pub fn routes() -> Router<App> {
    Router::new()
        .route("/control/info", get(info))
        .route("/control/hand-over", post(hand_over))
        .route("/control/shutdown", post(shutdown))
        .route("/control/login-code", post(login_code))
}

async fn info(State(app): State<App>) -> Json<Value> {
    let successor = app.hand_over().successor(app.runtime().clock().instant());
    Json(json!({
        "version": app.version(),
        "pid": std::process::id(),
        "store": app.store_name(),
        "running_jobs": app.runtime().running_jobs(),
        "handing_over_to": successor.map(|(version, _)| version),
    }))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ShutdownBody {
    /// Whether runs of agents on this machine end too.
    runs: bool,
}

/// A person ends this process. Runs of agents go on without it, unless they are to end.
async fn shutdown(State(app): State<App>, Json(body): Json<ShutdownBody>) -> Result<Json<Value>, Problem> {
    let ended = if body.runs { app.runtime().end_runs().await? } else { BTreeSet::new() };
    let (here, alive) = (app.runtime().runs_here().await?, app.runtime().runs_alive().await?);
    let count = |alive_too: bool| here.difference(&ended).filter(|task| alive.contains(*task) == alive_too).count();
    app.end().cancel();
    let (left, over) = (count(true), count(false));
    Ok(Json(json!({ "pid": std::process::id(), "runs_ended": ended.len(), "runs_left": left, "runs_over": over })))
}

/// A code that signs a page in, once. A process that may open the socket may open the page.
async fn login_code(State(app): State<App>) -> Json<Value> {
    Json(json!({ "code": app.login_codes().make() }))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HandOverBody {
    version: String,
}

/// Another version waits for the store: nothing new is claimed, and at the first moment without a running job this
/// process ends. Until then it serves as before. The request must be repeated, or it expires.
async fn hand_over(State(app): State<App>, Json(body): Json<HandOverBody>) -> Json<Value> {
    app.hand_over().ask(&body.version, app.runtime().clock().instant());
    Json(json!({ "running_jobs": app.runtime().running_jobs() }))
}
