//! Decisions about the changes of runs: apply, take back, discard; and which branches there are.

use axum::Json;
use axum::extract::{Path, Query, State};
use matsu_core::error_code::ErrorCode;
use matsu_core::id::TaskId;
use matsu_core::page::PageRequest;
use matsu_core::task::ReviewState;
use matsu_runtime::repos::{AppliedChanges, AppliedOrSent, Repos, RunBranch};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::agent_runs::RunQuery;
use crate::app::App;
use crate::auth::Caller;
use crate::openapi::AnyObject;
use crate::problem::Problem;
use crate::resource::{Resource, operation};
use crate::wire::{NoFields, PageBody, TaskBody, time};

pub fn routes() -> Resource {
    let apply = operation("apply_task_diff", "Writes the changes of a run into the tree from which it started.")
        .query::<ApplyQuery>();
    let undo = operation("undo_task_apply", "Takes back applied changes.").query::<RunQuery>();
    let discard = operation("discard_task_diff", "Removes the branch of a run.").query::<RunQuery>();
    let send_back =
        operation("send_task_back", "Sends a comment into the conversation of a run; a new task continues the work.");
    let branches = operation("list_branches", "Runs with changes, newest first.");
    Resource::default()
        .post("/tasks/{id}/apply", apply.answers::<AnyObject>(), apply_diff)
        .post("/tasks/{id}/undo-apply", undo.answers::<AnyObject>(), undo_apply)
        .post("/tasks/{id}/discard", discard.answers::<AnyObject>(), discard_diff)
        .post("/tasks/{id}/send-back", send_back.body::<CommentBody>().answers::<TaskBody>(), send_back_comment)
        .get("/branches", branches.query::<BranchesQuery>().answers::<PageBody<BranchBody>>(), list)
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ApplyQuery {
    /// With several runs: the agent of one of them.
    agent: Option<String>,
    /// Write files that you and the run have changed with conflict markers.
    #[serde(default)]
    merge: bool,
    /// Let the agent resolve conflicts, in a new task on the current state of your tree.
    #[serde(default)]
    send_back: bool,
}

async fn apply_diff(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    Query(query): Query<ApplyQuery>,
    _: NoFields,
) -> Result<Json<Value>, Problem> {
    let (id, agent) = (TaskId::from_text(id), query.agent.as_deref());
    if query.send_back {
        if query.merge || agent.is_some() {
            return Err(Problem::new(ErrorCode::InvalidParams, "send_back cannot be combined with merge or agent"));
        }
        return Ok(Json(match Repos::of(app.runtime()).apply_or_send_back(&caller.principal, &id).await? {
            AppliedOrSent::Applied(applied) => applied_body(&applied),
            AppliedOrSent::Sent { task, conflicts } => {
                json!({ "ok": true, "sent_back": TaskBody::from(&*task), "conflicts": conflicts })
            }
        }));
    }
    let applied = Repos::of(app.runtime()).apply_changes(&caller.principal, &id, agent, query.merge).await?;
    Ok(Json(applied_body(&applied)))
}

fn applied_body(applied: &AppliedChanges) -> Value {
    let task = TaskBody::from(&applied.task);
    let conflicts: Vec<&str> = applied.conflicts.iter().map(|conflict| conflict.path.as_str()).collect();
    let unmarked = applied.conflicts.iter().filter(|conflict| !conflict.kind.has_markers());
    let unmarked: Vec<Value> =
        unmarked.map(|conflict| json!({ "path": conflict.path, "why": conflict.kind.why() })).collect();
    let AppliedChanges { changes, agent, receipt, .. } = applied;
    let mut body = json!({
        "ok": true,
        "agent": agent,
        "changes": changes,
        "conflicts": conflicts,
        "receipt": receipt,
        "task": task,
    });
    if !unmarked.is_empty() {
        body["without_markers"] = json!(unmarked);
    }
    if !applied.missing.is_empty() {
        body["missing"] = json!(applied.missing);
    }
    body
}

async fn undo_apply(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    Query(query): Query<RunQuery>,
    _: NoFields,
) -> Result<Json<Value>, Problem> {
    let id = TaskId::from_text(id);
    let (task, changes) = Repos::of(app.runtime()).undo_apply(&caller.principal, &id, query.agent.as_deref()).await?;
    Ok(Json(json!({ "ok": true, "changes": changes, "task": TaskBody::from(&task) })))
}

async fn discard_diff(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    Query(query): Query<RunQuery>,
    _: NoFields,
) -> Result<Json<Value>, Problem> {
    let id = TaskId::from_text(id);
    let (task, changes, kept_by) =
        Repos::of(app.runtime()).discard_changes(&caller.principal, &id, query.agent.as_deref()).await?;
    Ok(Json(json!({ "ok": true, "changes": changes, "kept_by": kept_by, "task": TaskBody::from(&task) })))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CommentBody {
    /// What the agent should do with its changes.
    comment: String,
}

async fn send_back_comment(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    Json(body): Json<CommentBody>,
) -> Result<Json<TaskBody>, Problem> {
    let id = TaskId::from_text(id);
    let task = Repos::of(app.runtime()).send_changes_back(&caller.principal, &id, &body.comment).await?;
    Ok(Json(TaskBody::from(&task)))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct BranchesQuery {
    after: Option<i64>,
    /// Runs that one reply lists; a task with several runs is not cut.
    limit: Option<u32>,
}

/// A run with changes.
#[derive(Serialize, JsonSchema)]
struct BranchBody {
    task_id: String,
    title: String,
    agent: String,
    branch: String,
    /// The repository of the branch.
    repository: String,
    files: u64,
    insertions: u64,
    deletions: u64,
    /// The decision about it. Absent: none yet.
    state: Option<ReviewState>,
    finished_at: Option<String>,
}

impl From<&RunBranch> for BranchBody {
    fn from(run: &RunBranch) -> Self {
        Self {
            task_id: run.task.id.to_string(),
            title: run.task.title.clone(),
            agent: run.agent.clone(),
            branch: run.changes.branch.clone(),
            repository: run.changes.repository.clone(),
            files: run.changes.files,
            insertions: run.changes.insertions,
            deletions: run.changes.deletions,
            state: run.state,
            finished_at: run.task.finished_at.map(time),
        }
    }
}

async fn list(
    State(app): State<App>,
    caller: Caller,
    Query(query): Query<BranchesQuery>,
) -> Result<Json<PageBody<BranchBody>>, Problem> {
    let page = PageRequest::new(query.after, query.limit);
    let found = Repos::of(app.runtime()).branches(&caller.principal, &page).await?;
    Ok(Json(PageBody::of(found)))
}
