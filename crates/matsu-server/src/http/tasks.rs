//! Tasks: list, read, steer, stop, retry.

use axum::Json;
use axum::extract::{Path, Query, State};
use matsu_core::id::{AgentId, ProjectId, TaskId};
use matsu_core::limits::SEARCH_WORDS_MAX;
use matsu_core::page::PageRequest;
use matsu_core::ports::store::{JobFilter, Steer, StoreError, TaskFilter};
use matsu_core::task::{StopMode, StopReason, TaskKind, TaskStatus};
use matsu_runtime::agents::Agents;
use matsu_runtime::tasks::Tasks;
use matsu_runtime::tasks::queue::Queue;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::app::App;
use crate::auth::Caller;
use crate::openapi::AnyObject;
use crate::problem::Problem;
use crate::resource::{Resource, operation};
use crate::wire::{JobBody, PageBody, PageQuery, TaskBody};

pub fn routes() -> Resource {
    let list_tasks = operation("list_tasks", "The caller's tasks, newest first.").query::<ListQuery>();
    let change_task = operation("change_task", "Pauses, blocks, resumes or stops a task.").body::<ChangeBody>();
    let task_jobs = operation("list_task_jobs", "The jobs of one task, oldest first.").query::<PageQuery>();
    let retry_task = operation("retry_task", "Runs a task again, as a new task.").query::<RetryQuery>();
    Resource::default()
        .get("/tasks", list_tasks.answers::<PageBody<TaskBody>>(), list)
        .get("/tasks/{id}", operation("read_task", "One task.").answers::<TaskBody>(), read)
        .patch("/tasks/{id}", change_task.answers::<AnyObject>(), change)
        .get("/tasks/{id}/jobs", task_jobs.answers::<PageBody<JobBody>>(), jobs)
        .post("/tasks/{id}/retry", retry_task.answers::<TaskBody>(), retry)
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListQuery {
    kind: Option<TaskKind>,
    status: Option<TaskStatus>,
    parent: Option<String>,
    /// Words in the title, the question or the result of a task; only the first four count.
    q: Option<String>,
    after: Option<i64>,
    limit: Option<u32>,
}

async fn list(
    State(app): State<App>,
    caller: Caller,
    Query(query): Query<ListQuery>,
) -> Result<Json<PageBody<TaskBody>>, Problem> {
    let filter = TaskFilter {
        kind: query.kind,
        status: query.status,
        parent: query.parent.map(TaskId::from_text),
        words: query.q.iter().flat_map(|q| q.split_whitespace()).take(SEARCH_WORDS_MAX).map(str::to_owned).collect(),
        ..TaskFilter::default()
    };
    let page = PageRequest::new(query.after, query.limit);
    let page = Tasks::of(app.runtime()).list(&caller.principal, filter, &page).await?;
    Ok(Json(PageBody::of(page)))
}

async fn read(State(app): State<App>, caller: Caller, Path(id): Path<String>) -> Result<Json<TaskBody>, Problem> {
    let task = Tasks::of(app.runtime()).read(&caller.principal, &TaskId::from_text(id)).await?;
    Ok(Json(TaskBody::from(&task)))
}

async fn jobs(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    Query(query): Query<PageQuery>,
) -> Result<Json<PageBody<JobBody>>, Problem> {
    let task = Tasks::of(app.runtime()).read(&caller.principal, &TaskId::from_text(id)).await?;
    let filter = JobFilter { task_id: Some(task.id.clone()), ..JobFilter::default() };
    let page = Queue::of(app.runtime()).jobs(&filter, &query.page()).await?;
    // Here is what came out; a look at the status alone is no reading.
    Tasks::of(app.runtime()).note_read(&caller.principal, &[&task]).await;
    Ok(Json(PageBody::of(page)))
}

/// What is asked of an agent.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TaskWish {
    agent_id: String,
    /// `default`, if absent.
    project_id: Option<String>,
    message: String,
}

/// Named agents are the installation's: for callers that are no admins they do not exist.
fn named_agent(caller: &Caller, id: String) -> Result<AgentId, Problem> {
    if caller.only_own().is_some() {
        return Err(StoreError::NotFound { what: "agent", id }.into());
    }
    Ok(AgentId::from_text(id))
}

/// Gives a task to a named agent.
pub async fn hand_over(app: &App, caller: Caller, wish: Map<String, Value>) -> Result<Value, Problem> {
    let wish: TaskWish = serde_json::from_value(Value::Object(wish))
        .map_err(|error| Problem::invalid(format!("a task for a named agent: {error}")))?;
    let project = ProjectId::from_text(wish.project_id.unwrap_or_else(|| "default".to_owned()));
    let agent = named_agent(&caller, wish.agent_id)?;
    let task = Agents::of(app.runtime()).assign_task(&caller.principal, &agent, &project, wish.message).await?;
    Ok(json!(TaskBody::from(&task)))
}

/// The changes that a person can make to a task.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Wanted {
    Paused,
    Blocked,
    Running,
    Cancelled,
    Completed,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("oneOf" = [
    { "required": ["agent_id"],
      "properties": { "agent_id": { "type": "string" }, "status": { "type": "null" }, "mode": { "type": "null" } } },
    { "required": ["status"],
      "properties": { "status": { "enum": ["cancelled", "completed"] }, "agent_id": { "type": "null" } } },
    { "required": ["status"],
      "properties": { "status": { "enum": ["paused", "blocked", "running"] }, "agent_id": { "type": "null" },
                      "mode": { "type": "null" } } },
]))]
struct ChangeBody {
    status: Option<Wanted>,
    /// Gives the task to another agent.
    agent_id: Option<String>,
    /// graceful or immediate; only with `cancelled` and `completed`.
    mode: Option<StopMode>,
    message: Option<String>,
}

async fn change(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    Json(body): Json<ChangeBody>,
) -> Result<Json<Value>, Problem> {
    let id = TaskId::from_text(id);
    if let Some(agent) = body.agent_id {
        if body.status.is_some() || body.mode.is_some() {
            return Err(Problem::invalid(
                "agent_id and status cannot be set in one call; assign the task to an agent, or change its status",
            ));
        }
        let agent = named_agent(&caller, agent)?;
        let task = Agents::of(app.runtime()).reassign(&caller.principal, &id, &agent).await?;
        return Ok(Json(json!({ "task": TaskBody::from(&task) })));
    }
    let Some(wanted) = body.status else {
        return Err(Problem::invalid(
            "nothing to change; set status to the wanted status, or agent_id to the agent that should have the task",
        ));
    };
    let steer = match wanted {
        Wanted::Paused => Steer::Pause,
        Wanted::Blocked => Steer::Block,
        Wanted::Running => Steer::Resume,
        Wanted::Cancelled => return stop(&app, &caller, &id, body.mode, StopReason::UserCancelled).await,
        Wanted::Completed => return stop(&app, &caller, &id, body.mode, StopReason::Completed).await,
    };
    if body.mode.is_some() {
        return Err(Problem::invalid("mode is allowed only with status cancelled or completed"));
    }
    let task = Tasks::of(app.runtime()).steer(&caller.principal, &id, steer, body.message).await?;
    Ok(Json(json!({ "task": TaskBody::from(&task) })))
}

async fn stop(
    app: &App,
    caller: &Caller,
    id: &TaskId,
    mode: Option<StopMode>,
    reason: StopReason,
) -> Result<Json<Value>, Problem> {
    let mode = mode.unwrap_or(StopMode::Graceful);
    let report = Tasks::of(app.runtime()).stop(&caller.principal, id, mode, reason, app.shutdown()).await?;
    Ok(Json(json!({
        "task": TaskBody::from(&report.task),
        "mode": mode,
        "cancelled": { "queued": report.cancelled_queued, "running": report.cancelled_running },
        "was_terminal": report.was_terminal,
        "escalated": report.escalated,
        "grace_seconds": report.grace.map(|grace| grace.as_secs()),
        "waited_ms": report.waited_ms,
    })))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RetryQuery {
    /// Continue the runs of agents where they ended, instead of starting them again.
    #[serde(default, rename = "continue")]
    continues: bool,
}

async fn retry(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    Query(query): Query<RetryQuery>,
) -> Result<Json<TaskBody>, Problem> {
    let (runtime, id) = (app.runtime(), TaskId::from_text(id));
    let inserted = if query.continues {
        Tasks::of(runtime).retry_continuing(&caller.principal, &id).await?
    } else {
        Tasks::of(runtime).retry(&caller.principal, &id).await?
    };
    Ok(Json(TaskBody::from(&inserted.task)))
}
