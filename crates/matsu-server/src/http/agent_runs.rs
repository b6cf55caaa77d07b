//! Runs of agents over REST: which there are, starting one, following it, answering it, its patch.

use axum::Json;
use axum::extract::{Extension, Path, Query, State};
use matsu_core::error_code::ErrorCode;
use matsu_core::id::{JobId, TaskId};
use matsu_core::limits::RUN_PART_BYTES_MAX;
use matsu_core::ports::store::OutputFrom;
use matsu_core::run::{Answer, Changes};
use matsu_runtime::agents::{Agents, LogWish, OpenQuestion, RunPatch};
use matsu_runtime::repos::{FilePatch, Repos, files_of};
use matsu_runtime::tasks::Tasks;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::tool_call::{answer, context};
use crate::app::App;
use crate::auth::Caller;
use crate::openapi::AnyObject;
use crate::peer::Peer;
use crate::problem::Problem;
use crate::resource::{Resource, operation};
use crate::wire::{ListBody, NoFields, TaskBody};

pub fn routes() -> Resource {
    let definitions =
        operation("list_agent_definitions", "Every agent, and definitions that cannot be read.").query::<CheckQuery>();
    let log = operation("read_task_log", "The log of a run, from a byte offset.").query::<LogQuery>();
    let diff = operation("read_task_diff", "The patch of a run that wrote in a worktree.").query::<DiffQuery>();
    let files = operation("list_task_files", "The files that a run changed, with counts of lines.").query::<RunQuery>();
    let receipt = operation("read_task_receipt", "Outcome of the check of a run's last commit.").query::<RunQuery>();
    let verify = operation("verify_task_receipt", "Runs the check again, as a separate task.").query::<RunQuery>();
    let answer = operation("answer_task", "Answers the question of a run.").body::<TaskAnswerBody>();
    let questions = operation("list_task_questions", "The open questions of the runs of a task.");
    Resource::default()
        .get("/agent-definitions", definitions.answers::<AnyObject>(), list)
        .get("/tasks/{id}/log", log.answers::<AnyObject>(), read_log)
        .get("/tasks/{id}/diff", diff.answers::<AnyObject>(), read_diff)
        .get("/tasks/{id}/files", files.answers::<FilesBody>(), list_files)
        .get("/tasks/{id}/receipt", receipt.answers::<AnyObject>(), read_receipt)
        .post("/tasks/{id}/verify", verify.answers::<TaskBody>(), verify_receipt)
        .get("/tasks/{id}/questions", questions.answers::<ListBody<QuestionBody>>(), list_questions)
        .post("/tasks/{id}/answer", answer.answers::<AnyObject>(), give_answer)
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CheckQuery {
    /// Also check whether each agent is logged in.
    #[serde(default)]
    check_auth: bool,
}

async fn list(
    State(app): State<App>,
    caller: Caller,
    peer: Option<Extension<Peer>>,
    Query(query): Query<CheckQuery>,
) -> Result<Json<Value>, Problem> {
    let cx = context(&app, caller, peer.unwrap_or_default().0);
    let mut said = answer(&cx, "list_agents", json!({ "check_auth": query.check_auth })).await?;
    Ok(Json(json!({ "items": said["agents"].take(), "broken": said["broken"].take() })))
}

/// A run of one agent, or of several at once.
pub async fn begin(
    app: &App,
    caller: Caller,
    peer: Option<Extension<Peer>>,
    mut wish: Map<String, Value>,
) -> Result<Value, Problem> {
    wish.insert("run_async".to_owned(), Value::Bool(true));
    let name = if wish.contains_key("cli_names") { "use_agents" } else { "use_agent" };
    answer(&context(app, caller, peer.unwrap_or_default().0), name, Value::Object(wish)).await
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct LogQuery {
    /// The first byte of the part. Absent: the last bytes of the log.
    offset: Option<u64>,
    /// With several runs: the agent of one of them.
    agent: Option<String>,
    /// Only the result, without the actions of the run.
    #[serde(default)]
    result_only: bool,
}

async fn read_log(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    Query(query): Query<LogQuery>,
) -> Result<Json<Value>, Problem> {
    let id = TaskId::from_text(id);
    let from = query.offset.map_or(OutputFrom::End, OutputFrom::Byte);
    let agent = query.agent.as_deref();
    let wish = LogWish { agent, from, result_only: query.result_only, bytes_max: RUN_PART_BYTES_MAX };
    let log = Agents::of(app.runtime()).run_log(&caller.principal, &id, wish).await?;
    Ok(Json(json!({
        "text": log.slice.marked(),
        "offset": log.slice.start,
        "next_offset": log.slice.end,
        "total": log.slice.total,
        "agent": log.agent,
        // A run that keeps no log of its own is read by its result.
        "is_result": log.is_result,
        "status": log.task.status,
        "revision": log.task.revision,
    })))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RunQuery {
    /// With several runs: the agent of one of them.
    pub(super) agent: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DiffQuery {
    /// With several runs: the agent of one of them.
    agent: Option<String>,
    /// Only the patch of this file, by its name in the list of files.
    path: Option<String>,
}

async fn read_diff(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    Query(query): Query<DiffQuery>,
) -> Result<Json<Value>, Problem> {
    let RunPatch { agent, changes, patch } = patch_of(&app, &caller, id, query.agent.as_deref()).await?;
    let Some(path) = &query.path else { return Ok(Json(patch_json(&agent, &changes, patch))) };
    let patch = String::from_utf8_lossy(&patch);
    let file = files_of(&patch).into_iter().find(|file| file.path == *path);
    let file = file.ok_or_else(|| {
        let message = format!("the run did not change {path}; the list of files has the names that it changed");
        Problem::new(ErrorCode::ResourceNotFound, message)
    })?;
    Ok(Json(json!({ "path": path, "patch": file.text })))
}

async fn patch_of(app: &App, caller: &Caller, id: String, agent: Option<&str>) -> Result<RunPatch, Problem> {
    let id = TaskId::from_text(id);
    Ok(Agents::of(app.runtime()).patch_of(&caller.principal, &id, agent).await?)
}

/// What a run changed.
#[derive(Serialize, JsonSchema)]
struct FilesBody {
    files: Vec<FileBody>,
}

#[derive(Serialize, JsonSchema)]
struct FileBody {
    /// As git writes it; one with unusual characters is quoted.
    path: String,
    added: u64,
    removed: u64,
    is_binary: bool,
    /// Bytes of its part of the patch.
    patch_bytes: usize,
}

impl From<&FilePatch<'_>> for FileBody {
    fn from(file: &FilePatch<'_>) -> Self {
        let FilePatch { path, text, added, removed, is_binary } = file;
        Self { path: path.clone(), added: *added, removed: *removed, is_binary: *is_binary, patch_bytes: text.len() }
    }
}

async fn list_files(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    Query(query): Query<RunQuery>,
) -> Result<Json<FilesBody>, Problem> {
    let RunPatch { patch, .. } = patch_of(&app, &caller, id, query.agent.as_deref()).await?;
    let patch = String::from_utf8_lossy(&patch);
    Ok(Json(FilesBody { files: files_of(&patch).iter().map(FileBody::from).collect() }))
}

/// The patch to read, and where it is no text the bytes themselves beside it.
fn patch_json(agent: &str, changes: &Changes, patch: Vec<u8>) -> Value {
    match String::from_utf8(patch) {
        Ok(text) => json!({ "agent": agent, "changes": changes, "patch": text, "is_exact": true }),
        Err(error) => {
            let bytes = error.into_bytes();
            let shown = String::from_utf8_lossy(&bytes).into_owned();
            let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            json!({ "agent": agent, "changes": changes, "patch": shown, "is_exact": false, "patch_hex": hex })
        }
    }
}

async fn read_receipt(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    Query(query): Query<RunQuery>,
) -> Result<Json<Value>, Problem> {
    let id = TaskId::from_text(id);
    let receipt = Repos::of(app.runtime()).receipt_of(&caller.principal, &id, query.agent.as_deref()).await?;
    Ok(Json(json!({ "task_id": id, "command": receipt.check.command.to_string(), "receipt": receipt })))
}

async fn verify_receipt(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    Query(query): Query<RunQuery>,
    _: NoFields,
) -> Result<Json<TaskBody>, Problem> {
    let id = TaskId::from_text(id);
    let started = Repos::of(app.runtime()).verify_receipt(&caller.principal, &id, query.agent.as_deref()).await?;
    Ok(Json(TaskBody::from(&started.task)))
}

/// A question that waits for its answer.
#[derive(Serialize, JsonSchema)]
struct QuestionBody {
    job_id: String,
    /// The agent that asks.
    agent: Option<String>,
    id: String,
    text: String,
    /// Empty: any text is an answer.
    options: Vec<String>,
}

impl From<OpenQuestion> for QuestionBody {
    fn from(asked: OpenQuestion) -> Self {
        let agent = asked.agent();
        let OpenQuestion { job, question } = asked;
        Self { job_id: job.id.to_string(), agent, id: question.id, text: question.text, options: question.options }
    }
}

async fn list_questions(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<ListBody<QuestionBody>>, Problem> {
    let task = Tasks::of(app.runtime()).read(&caller.principal, &TaskId::from_text(id)).await?;
    let open = Agents::of(app.runtime()).open_questions(&task.id).await?;
    Ok(Json(ListBody { items: open.into_iter().map(QuestionBody::from).collect() }))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AnswerBody {
    id: String,
    option: Option<String>,
    text: Option<String>,
}

impl From<AnswerBody> for Answer {
    fn from(body: AnswerBody) -> Self {
        Self { id: body.id, option: body.option, text: body.text }
    }
}

/// An answer to one of a task's jobs.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TaskAnswerBody {
    /// The question's id.
    id: String,
    /// The job that asks; needed only if several jobs ask with that id.
    job_id: Option<String>,
    option: Option<String>,
    text: Option<String>,
}

async fn give_answer(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    Json(body): Json<TaskAnswerBody>,
) -> Result<Json<Value>, Problem> {
    let job = body.job_id.map(JobId::from_text);
    let answer = Answer { id: body.id, option: body.option, text: body.text };
    Agents::of(app.runtime()).answer(&caller.principal, &TaskId::from_text(id), job.as_ref(), &answer).await?;
    Ok(Json(json!({ "ok": true })))
}
