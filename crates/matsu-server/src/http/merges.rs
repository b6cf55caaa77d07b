//! Merges: the changes of several runs into one branch.

use axum::Json;
use axum::extract::{Path, State};
use matsu_core::id::TaskId;
use matsu_core::limits::CHECK_SECONDS;
use matsu_core::receipt::{Check, CheckCommand};
use matsu_runtime::repos::{MergeWish, Repos};
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
    let start = operation("start_merge", "Merges the changes of several runs into one branch, as a task.");
    let read = operation("read_task_merge", "The state of a merge: its branch, and each task with its state.");
    Resource::default().post("/merges", start.body::<MergeBody>().answers::<TaskBody>(), start_merge).get(
        "/tasks/{id}/merge",
        read.answers::<AnyObject>(),
        read_merge,
    )
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct MergeBody {
    /// Tasks of one repository whose runs have ended with changes.
    tasks: Vec<String>,
    /// A branch that is checked out nowhere. Absent: a new one.
    into: Option<String>,
    /// A shell line that must exit with 0 after each merge. Absent: the check of the tasks.
    check: Option<String>,
    /// How often a conflict or a failed check is sent back to the agent of that task. Absent: never.
    fix: Option<u32>,
}

async fn start_merge(
    State(app): State<App>,
    caller: Caller,
    Json(body): Json<MergeBody>,
) -> Result<Json<TaskBody>, Problem> {
    let check = body.check.filter(|line| !line.trim().is_empty()).map(|line| Check {
        command: CheckCommand::Line(line),
        timeout_seconds: CHECK_SECONDS,
        network: false,
        protect: Vec::new(),
    });
    let tasks = body.tasks.into_iter().map(TaskId::from_text).collect();
    let wish = MergeWish { tasks, into: body.into, check, fixes: body.fix.unwrap_or(0) };
    let task = Repos::of(app.runtime()).start_merge(&caller.principal, wish).await?;
    Ok(Json(TaskBody::from(&task)))
}

async fn read_merge(State(app): State<App>, caller: Caller, Path(id): Path<String>) -> Result<Json<Value>, Problem> {
    let (task, progress) = Repos::of(app.runtime()).merge_of(&caller.principal, &TaskId::from_text(id)).await?;
    Ok(Json(json!({ "task": TaskBody::from(&task), "merge": progress })))
}
