//! Hidden routes for tests and benches: tasks made of `noop` and `sleep` jobs. There only if asked for at the start.

use axum::extract::{Query, State};
use axum::routing::{get, post};
use axum::{Json, Router};
use matsu_core::id::{JobId, TaskId};
use matsu_core::job::{JobKind, NewJob, Priority};
use matsu_core::slot::Slot;
use matsu_core::task::{IdempotencyKey, NewTask, TaskKind};
use matsu_runtime::tasks::Tasks;
use serde::Deserialize;
use serde_json::{Value, json};

use super::task_wait::{WaitQuery, WaitWord, body, wait_for};
use crate::app::App;
use crate::auth::Caller;
use crate::problem::Problem;
use crate::wire::TaskBody;

pub fn routes() -> Router<App> {
    Router::new().route("/test/tasks", post(make)).route("/test/wait", get(wait))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MakeBody {
    #[serde(default = "agent")]
    kind: TaskKind,
    jobs: Vec<JobWish>,
    idempotency_key: Option<String>,
}

fn agent() -> TaskKind {
    TaskKind::Agent
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JobWish {
    kind: JobKind,
    #[serde(default = "cpu")]
    slot: Slot,
    #[serde(default = "medium")]
    priority: Priority,
    #[serde(default)]
    input: Value,
}

fn cpu() -> Slot {
    Slot::Cpu
}

fn medium() -> Priority {
    Priority::Medium
}

async fn make(State(app): State<App>, caller: Caller, Json(body): Json<MakeBody>) -> Result<Json<Value>, Problem> {
    let now = app.runtime().clock().now();
    let jobs = body.jobs.into_iter().map(|wish| NewJob {
        id: JobId::mint(now),
        kind: wish.kind,
        priority: wish.priority,
        slot: wish.slot,
        input_json: wish.input.to_string(),
        cause_id: None,
        run_at: now,
        dedupe_key: None,
    });
    let idempotency = body.idempotency_key.map(|key| IdempotencyKey {
        principal: caller.principal.clone(),
        tool: "test".to_owned(),
        body_hash: key.clone(),
        key,
    });
    let task = NewTask {
        id: TaskId::mint(now),
        kind: body.kind,
        owner: caller.principal,
        project_id: None,
        title: "test jobs".to_owned(),
        config_json: "{}".to_owned(),
        budget: Vec::new(),
        assignee: None,
        parent_id: None,
        depends_on: Vec::new(),
        jobs: jobs.collect(),
        idempotency,
        created_at: now,
    };
    let inserted = Tasks::of(app.runtime()).submit(task).await?;
    Ok(Json(
        json!({ "task": TaskBody::from(&inserted.task), "job_ids": inserted.job_ids, "existed": inserted.existed }),
    ))
}

/// Field by field: numbers in a query cannot be read through a flattened struct.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TestWaitQuery {
    task: String,
    #[serde(default)]
    timeout: u64,
    since: Option<i64>,
    #[serde(default)]
    wait_for: WaitWord,
}

async fn wait(
    State(app): State<App>,
    caller: Caller,
    Query(query): Query<TestWaitQuery>,
) -> Result<Json<Value>, Problem> {
    let wait = WaitQuery { timeout: query.timeout, since: query.since, wait_for: query.wait_for };
    Ok(Json(body(&wait_for(&app, &caller, TaskId::from_text(query.task), &wait).await?)))
}
