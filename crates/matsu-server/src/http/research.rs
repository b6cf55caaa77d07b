//! The human side of research, and its materials. Each route is a tool under another name.

use std::path::PathBuf;

use axum::Json;
use axum::extract::{Path, Query, State};
use matsu_core::ports::store::Removal;
use matsu_runtime::research::Research;
use matsu_runtime::tool::folders::project_of;
use matsu_runtime::tool::{ToolContext, Workplace};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::tool_body::{AuthFields, Correction, MaterialsFields, Resolution, Rollback, Searches, StatusFields};
use super::tool_call::{answer, context};
use crate::app::App;
use crate::auth::Caller;
use crate::openapi::AnyObject;
use crate::peer::Peer;
use crate::problem::Problem;
use crate::resource::{Resource, operation};

pub fn routes() -> Resource {
    let queue = operation("queue_searches", "Queues searches for a research task.").body::<Searches>();
    let status = operation("research_status", "The status of a research task, at once or when it changes.");
    let materials = operation("read_materials", "The claims of a research task, in pages.").query::<MaterialsFields>();
    let graph = operation("read_graph", "The evidence graph, in pages of claims.").query::<MaterialsFields>();
    Resource::default()
        .get("/tasks/{id}/searches", status.query::<StatusFields>().answers::<AnyObject>(), self::status)
        .post("/tasks/{id}/searches", queue.answers::<AnyObject>(), self::queue)
        .get("/tasks/{id}/materials", materials.answers::<AnyObject>(), self::materials)
        .get("/tasks/{id}/graph", graph.answers::<AnyObject>(), self::graph)
        .merge(human_side())
}

/// What only people do, or do oftener than models.
fn human_side() -> Resource {
    let queue = operation("read_auth_queue", "Pages that wait for a person.").query::<AuthFields>();
    let resolve_auth = operation("resolve_auth", "Settles pages that waited for a person.").body::<Resolution>();
    let keep = operation("keep_cookies", "Stores cookies that a person pasted, for one domain.").body::<CookiesBody>();
    let correct = operation("give_feedback", "Corrects a domain, a claim or an edge.").body::<Correction>();
    let back = operation("roll_back_calibration", "Makes an earlier calibration active again.").body::<Rollback>();
    let sweep = operation("collect_garbage", "Removes evidence that no task uses.").body::<GcBody>();
    let log = operation("read_feedback", "Corrections, newest first.");
    Resource::default()
        .get("/auth-queue", queue.answers::<AnyObject>(), auth_queue)
        .post("/auth-queue/resolve", resolve_auth.answers::<AnyObject>(), resolve)
        .post("/auth-queue/cookies", keep.answers::<AnyObject>(), cookies)
        .get("/feedback", log.answers::<AnyObject>(), feedback_log)
        .post("/feedback", correct.answers::<AnyObject>(), feedback)
        .get("/rules", operation("read_rules", "Rules about domains, newest first.").answers::<AnyObject>(), rules)
        .get(
            "/calibration",
            operation("read_calibration", "Judges and their scores.").answers::<AnyObject>().for_admins(),
            calibration,
        )
        .post("/calibration/rollback", back.answers::<AnyObject>().for_admins(), rollback)
        .post("/gc", sweep.answers::<AnyObject>().for_admins(), gc)
}

/// Calls a tool for a person who works nowhere in particular.
async fn tool(app: &App, caller: Caller, name: &str, arguments: Value) -> Result<Value, Problem> {
    answer(&context(app, caller, Peer::default()), name, arguments).await
}

/// The fields of `create_task`, and `folders` that `local` may look into.
pub async fn create(app: &App, caller: Caller, mut wish: Map<String, Value>) -> Result<Value, Problem> {
    let folders = wish.remove("folders").unwrap_or_default();
    let Ok(roots) = serde_json::from_value::<Option<Vec<PathBuf>>>(folders) else {
        return Err(Problem::invalid("folders must be a list of paths"));
    };
    let roots = roots.unwrap_or_default();
    let project = roots.first().map(|folder| project_of(folder));
    let workplace = Workplace { roots, project, ..Workplace::default() };
    let cx = context(app, caller, Peer { workplace, ..Peer::default() });
    let cx = ToolContext { ends_when_done: true, ..cx };
    answer(&cx, "create_task", Value::Object(wish)).await
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StatusQuery {
    wait: Option<u64>,
    since: Option<i64>,
    wait_for: Option<String>,
    detail: Option<String>,
}

async fn status(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    Query(query): Query<StatusQuery>,
) -> Result<Json<Value>, Problem> {
    let StatusQuery { wait, since, wait_for, detail } = query;
    let arguments = json!({ "task_id": id, "wait": wait, "since": since, "wait_for": wait_for, "detail": detail });
    tool(&app, caller, "get_status", without_nulls(arguments)).await.map(Json)
}

async fn queue(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    Json(mut body): Json<Map<String, Value>>,
) -> Result<Json<Value>, Problem> {
    body.insert("task_id".to_owned(), Value::String(id));
    tool(&app, caller, "queue_searches", Value::Object(body)).await.map(Json)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MaterialsQuery {
    format: Option<String>,
    include_graph: Option<bool>,
    include_fragments: Option<bool>,
    limit: Option<u32>,
    cursor: Option<String>,
    min_confidence: Option<f64>,
    only: Option<String>,
    detail: Option<String>,
}

impl MaterialsQuery {
    fn options(self) -> Value {
        without_nulls(json!({
            "format": self.format,
            "include_graph": self.include_graph,
            "include_fragments": self.include_fragments,
            "limit": self.limit,
            "cursor": self.cursor,
            "min_confidence": self.min_confidence,
            "only": self.only,
            "detail": self.detail,
        }))
    }
}

async fn materials(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    Query(query): Query<MaterialsQuery>,
) -> Result<Json<Value>, Problem> {
    let arguments = json!({ "task_id": id, "options": query.options() });
    tool(&app, caller, "get_materials", arguments).await.map(Json)
}

/// The evidence graph, in pages of claims.
async fn graph(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    Query(query): Query<MaterialsQuery>,
) -> Result<Json<Value>, Problem> {
    let query = MaterialsQuery { include_graph: Some(true), limit: query.limit.or(Some(200)), ..query };
    let found = tool(&app, caller, "get_materials", json!({ "task_id": id, "options": query.options() })).await?;
    let graph = &found["evidence_graph"];
    Ok(Json(json!({
        "nodes": graph["nodes"],
        "edges": graph["edges"],
        "next_cursor": found["next_cursor"],
        "total": found["total"],
    })))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AuthQuery {
    task_id: Option<String>,
    group_by: Option<String>,
    priority_filter: Option<String>,
}

async fn auth_queue(
    State(app): State<App>,
    caller: Caller,
    Query(query): Query<AuthQuery>,
) -> Result<Json<Value>, Problem> {
    let AuthQuery { task_id, group_by, priority_filter } = query;
    let arguments = json!({ "task_id": task_id, "group_by": group_by, "priority_filter": priority_filter });
    tool(&app, caller, "get_auth_queue", without_nulls(arguments)).await.map(Json)
}

async fn resolve(State(app): State<App>, caller: Caller, Json(body): Json<Value>) -> Result<Json<Value>, Problem> {
    tool(&app, caller, "resolve_auth", body).await.map(Json)
}

/// Cookies that a person pastes. Only this route takes them: no tool does, so no model sees them.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CookiesBody {
    #[schemars(length(max = 253), regex(pattern = r"^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$"))]
    domain: String,
    /// As a browser sends them (`name=value; name=value`), or a file of them as browsers export it.
    #[schemars(length(min = 1))]
    cookies: String,
}

async fn cookies(
    State(app): State<App>,
    caller: Caller,
    Json(body): Json<CookiesBody>,
) -> Result<Json<Value>, Problem> {
    let kept = Research::of(app.runtime()).keep_cookies(&caller.principal, &body.domain, &body.cookies).await;
    let kept = kept.map_err(Problem::invalid)?;
    Ok(Json(json!({ "domain": body.domain, "kept": kept })))
}

async fn feedback(State(app): State<App>, caller: Caller, Json(body): Json<Value>) -> Result<Json<Value>, Problem> {
    tool(&app, caller, "feedback", body).await.map(Json)
}

async fn feedback_log(State(app): State<App>, caller: Caller) -> Result<Json<Value>, Problem> {
    let entries = Research::of(app.runtime()).feedback(&caller.principal, 200).await?;
    let items = entries.iter().map(|entry| {
        let detail: Value = serde_json::from_str(&entry.detail_json).unwrap_or_default();
        json!({
            "id": entry.id, "action": entry.action, "target": entry.target, "reason": entry.reason,
            "detail": detail, "at": entry.at.to_string(),
        })
    });
    Ok(Json(json!({ "items": items.collect::<Vec<_>>() })))
}

async fn rules(State(app): State<App>, caller: Caller) -> Result<Json<Value>, Problem> {
    let rules = Research::of(app.runtime()).rules(&caller.principal).await?;
    let items = rules.iter().map(|rule| {
        json!({
            "rule_id": rule.id, "domain_pattern": rule.pattern, "decision": rule.decision, "reason": rule.reason,
            "created_at": rule.created_at.to_string(),
        })
    });
    Ok(Json(json!({ "items": items.collect::<Vec<_>>() })))
}

async fn calibration(State(app): State<App>, caller: Caller) -> Result<Json<Value>, Problem> {
    tool(&app, caller, "calibration_metrics", json!({ "action": "get_stats" })).await.map(Json)
}

async fn rollback(State(app): State<App>, caller: Caller, Json(body): Json<Value>) -> Result<Json<Value>, Problem> {
    tool(&app, caller, "calibration_rollback", body).await.map(Json)
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct GcBody {
    /// Only list what would be removed.
    #[serde(default)]
    dry_run: bool,
}

/// Removes evidence that no task reaches, or says what would go.
async fn gc(State(app): State<App>, Json(body): Json<GcBody>) -> Result<Json<Value>, Problem> {
    let removal = if body.dry_run { Removal::DryRun } else { Removal::Remove };
    let cleared = Research::of(app.runtime()).orphans(removal).await?;
    Ok(Json(json!({
        "dry_run": body.dry_run,
        "edges": cleared.edges,
        "fragments": cleared.fragments,
        "pages": cleared.pages,
        "listed": cleared.listed,
    })))
}

/// A parameter that was not given is no argument at all.
fn without_nulls(mut value: Value) -> Value {
    if let Value::Object(fields) = &mut value {
        fields.retain(|_, value| !value.is_null());
    }
    value
}
