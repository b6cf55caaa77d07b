//! How processes of the same user control the daemon. On the socket only.

use std::collections::BTreeSet;

use axum::extract::State;
use axum::routing::{get, post};
use axum::{Json, Router};
use matsu_core::ports::agent::TraceState;
use matsu_runtime::tasks::Tasks;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::app::App;
use crate::problem::Problem;

pub fn routes() -> Router<App> {
    Router::new()
        .route("/control/info", get(info))
        .route("/control/settings", get(settings))
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

/// What this process goes by, which its files may not say any more.
async fn settings(State(app): State<App>) -> Json<Value> {
    Json(app.settings().unwrap_or_else(|| json!({ "settings": {}, "refused": null })))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ShutdownBody {
    /// Whether runs of agents on this machine end too.
    runs: bool,
}

/// A person ends this process. Runs of agents go on without it, unless they are to end.
async fn shutdown(State(app): State<App>, Json(body): Json<ShutdownBody>) -> Result<Json<Value>, Problem> {
    let ended = if body.runs { Tasks::of(app.runtime()).end_runs().await? } else { BTreeSet::new() };
    let runtime = app.runtime();
    let (here, alive) =
        (Tasks::of(runtime).runs_here().await?, Tasks::of(runtime).runs_that_are(TraceState::Alive).await?);
    let mut over = BTreeSet::new();
    for state in [TraceState::Ended, TraceState::Lost, TraceState::MachineRestarted] {
        over.extend(Tasks::of(runtime).runs_that_are(state).await?);
    }
    let here: BTreeSet<_> = here.difference(&ended).collect();
    app.end().cancel();
    let left = here.iter().filter(|task| alive.contains(**task)).count();
    let over = here.iter().filter(|task| !alive.contains(**task) && over.contains(**task)).count();
    Ok(Json(json!({
        "pid": std::process::id(),
        "runs_ended": ended.len(),
        "runs_left": left,
        "runs_over": over,
        // Between two programs, as before a check.
        "runs_waiting": here.len() - left - over,
    })))
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
