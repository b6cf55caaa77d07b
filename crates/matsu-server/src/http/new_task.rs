//! `POST /tasks`: one door for every kind of task. What the body means is for the resource of that kind to say.

use axum::extract::State;
use axum::http::StatusCode;
use axum::{Extension, Json};
use serde_json::{Map, Value};

use super::{agent_runs, research, tasks};
use crate::app::App;
use crate::auth::Caller;
use crate::openapi::AnyObject;
use crate::peer::Peer;
use crate::problem::Problem;
use crate::resource::{Resource, says};

pub fn routes() -> Resource {
    let make_task = says(
        "make_task",
        "Starts a task: kind research with the fields of create_task; kind agent with those of use_agent, or with \
         agent_id and message for an agent that comes by itself.",
    );
    Resource::default().post("/tasks", make_task.body::<AnyObject>().creates::<AnyObject>(), make)
}

async fn make(
    State(app): State<App>,
    caller: Caller,
    peer: Option<Extension<Peer>>,
    Json(mut body): Json<Map<String, Value>>,
) -> Result<(StatusCode, Json<Value>), Problem> {
    let kind = body.remove("kind");
    let made = match kind.as_ref().and_then(Value::as_str) {
        Some("research") => research::create(&app, caller, body).await?,
        Some("agent") if body.contains_key("agent_id") => tasks::hand(&app, &caller, body).await?,
        Some("agent") => agent_runs::begin(&app, caller, peer, body).await?,
        _ => return Err(Problem::invalid("kind must be research or agent")),
    };
    Ok((StatusCode::CREATED, Json(made)))
}
