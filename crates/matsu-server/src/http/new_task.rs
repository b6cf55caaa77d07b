//! `POST /tasks`: what is asked for says who does it. Research; a run of a command line; or a named agent's task.

use axum::Json;
use axum::extract::{Extension, State};
use axum::http::StatusCode;
use serde_json::{Map, Value};

use super::tool_body::NewTask;
use super::{agent_runs, research, tasks};
use crate::app::App;
use crate::auth::Caller;
use crate::openapi::AnyObject;
use crate::peer::Peer;
use crate::problem::Problem;
use crate::resource::{Resource, operation};

pub fn routes() -> Resource {
    let make = operation(
        "make_task",
        "Starts a task. kind research with the fields of create_task; kind agent with those of use_agent, or with \
         agent_id and message for a named agent.",
    );
    Resource::default().post("/tasks", make.body::<NewTask>().creates::<AnyObject>(), begin)
}

async fn begin(
    State(app): State<App>,
    caller: Caller,
    peer: Option<Extension<Peer>>,
    Json(mut body): Json<Map<String, Value>>,
) -> Result<(StatusCode, Json<Value>), Problem> {
    let kind = body.remove("kind");
    let made = match kind.as_ref().and_then(Value::as_str) {
        Some("research") => research::create(&app, caller, body).await?,
        Some("agent") if body.contains_key("agent_id") => tasks::hand_over(&app, caller, body).await?,
        Some("agent") => agent_runs::begin(&app, caller, peer, body).await?,
        _ => return Err(Problem::invalid("kind is required: research or agent")),
    };
    Ok((StatusCode::CREATED, Json(made)))
}
