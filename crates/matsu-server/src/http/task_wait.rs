//! Waiting for one task over plain HTTP. Serves the command line; clients wait through MCP.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::Json;
use axum::extract::{Path, Query, State};
use matsu_core::id::TaskId;
use matsu_runtime::tasks::status::Waits;
use matsu_runtime::{WaitFor, WaitReply, WaitRequest};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::app::App;
use crate::auth::Caller;
use crate::openapi::AnyObject;
use crate::problem::Problem;
use crate::resource::{Resource, operation};
use crate::wire::TaskBody;

pub fn routes() -> Resource {
    let doc = operation("wait_for_task", "Waits until the task changes.").query::<WaitQuery>();
    Resource::default().get("/tasks/{id}/wait", doc.answers::<AnyObject>(), wait)
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WaitQuery {
    #[serde(default)]
    pub timeout: u64,
    pub since: Option<i64>,
    #[serde(default)]
    pub wait_for: WaitWord,
}

#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum WaitWord {
    #[default]
    Finished,
    All,
    Any,
}

async fn wait(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    Query(query): Query<WaitQuery>,
) -> Result<Json<Value>, Problem> {
    let reply = wait_for(&app, &caller, TaskId::from_text(id), &query).await?;
    Ok(Json(body(&reply)))
}

pub async fn wait_for(app: &App, caller: &Caller, id: TaskId, query: &WaitQuery) -> Result<WaitReply, Problem> {
    let wait_for = match query.wait_for {
        WaitWord::Finished => WaitFor::Finished,
        WaitWord::All => WaitFor::All,
        WaitWord::Any => WaitFor::Any,
    };
    let request = WaitRequest {
        owner: caller.principal.clone(),
        since: Some(BTreeMap::from([(id.clone(), query.since.unwrap_or(0))])),
        ids: vec![id],
        wait_for,
        hold: Duration::from_secs(query.timeout),
        hold_max: None,
        instance: None,
        interrupt: None,
    };
    // When a client disconnects, this future is dropped, and with it the wait; the work goes on.
    Ok(Waits::of(app.runtime()).wait_for_tasks(request, app.shutdown()).await?)
}

pub fn body(reply: &WaitReply) -> Value {
    let task = reply.tasks.first().map(|view| TaskBody::from(&*view.task));
    json!({
        "task": task,
        "next": { "since": reply.next_since.values().next() },
        "waited_ms": reply.waited_ms,
        "hold_max": reply.hold_max.map(|hold| hold.as_secs()),
        "returned_because": reply.returned_because.as_str(),
    })
}
