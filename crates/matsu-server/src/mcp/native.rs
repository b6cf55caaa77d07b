//! Stored tasks as native MCP tasks.

mod questions;

use std::sync::Arc;
use std::time::Duration;

use matsu_core::clock::Timestamp;
use matsu_core::error_code::ErrorCode;
use matsu_core::id::TaskId;
use matsu_core::limits::WAIT_KEPT_AFTER_READ;
use matsu_core::task::{StopMode, StopReason, Task, TaskKind, TaskStatus};
use matsu_runtime::TaskError;
use matsu_runtime::agents::Agents;
use matsu_runtime::chats::sessions::Delivery;
use matsu_runtime::tasks::Tasks;
use matsu_runtime::tool::ToolContext;
use matsu_runtime::tool::native_task::{DeferredWaits, NativeLookup, NativeTask};
use matsu_runtime::tools::{run_is_over, wait_is_over};
use rmcp::ErrorData;
use rmcp::model::{
    CallToolResponse, CreateTaskResult, DetailedTask, GetTaskResult, InputResponses, JsonObject, TaskPayload,
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::listing::result;
use crate::app::App;
use crate::auth::Caller;

/// How often a client may ask, at first and after a while.
const POLL_FIRST: Duration = Duration::from_millis(1_000);
const POLL_LATER: Duration = Duration::from_millis(5_000);
const POLL_LATER_AFTER: Duration = Duration::from_secs(60);

/// Stored tasks as one caller may see and end them.
pub struct NativeTaskCalls {
    app: App,
    caller: Caller,
    /// Whether the client can put a question to its user.
    can_ask: bool,
    /// Cancelled when the client is gone.
    listening: CancellationToken,
}

impl NativeTaskCalls {
    #[must_use]
    pub fn new(app: App, caller: Caller, listening: CancellationToken) -> Self {
        Self { app, caller, can_ask: false, listening }
    }

    /// Whether the client says that it can put a question to its user.
    #[must_use]
    pub fn with_questions(self, can_ask: bool) -> Self {
        Self { can_ask, ..self }
    }

    /// The answer to a call that goes on as a task. Its row is stored already.
    ///
    /// # Errors
    /// No such task of this caller's.
    pub async fn created(&self, id: &TaskId) -> Result<CallToolResponse, ErrorData> {
        let task =
            Tasks::of(self.app.runtime()).read(&self.caller.principal, id).await.map_err(|error| refused(&error))?;
        Ok(CallToolResponse::Task(CreateTaskResult::new(self.seed(&task))))
    }

    /// # Errors
    /// No such task of this caller's.
    pub async fn find(&self, id: &str) -> Result<NativeLookup, ErrorData> {
        let (principal, id) = (&self.caller.principal, TaskId::from_text(id));
        let found =
            DeferredWaits::of(self.app.runtime()).native_task(principal, &id, Duration::ZERO, &self.listening).await;
        found.map_err(|error| refused(&error))
    }

    /// Ending a wait ends the wait and nothing else. Repeating it changes nothing.
    ///
    /// # Errors
    /// No such task of this caller's.
    pub async fn cancel(&self, id: &str) -> Result<(), ErrorData> {
        let (mode, reason) = (StopMode::Immediate, StopReason::UserCancelled);
        let (principal, id) = (&self.caller.principal, TaskId::from_text(id));
        let stopped = Tasks::of(self.app.runtime()).stop(principal, &id, mode, reason, &self.listening).await;
        stopped.map(drop).map_err(|error| refused(&error))
    }

    /// What came of a task, as far as its own result goes.
    pub async fn outcome(&self, native: &NativeTask, delivery: &Arc<Delivery>) -> TaskPayload {
        let task = &native.task;
        match (task.status, &native.arrived) {
            (TaskStatus::Completed, Some(arrived)) => {
                let (structured, is_error) = wait_is_over(&self.tool_context(delivery), arrived).await;
                TaskPayload::Completed { result: body(structured, is_error) }
            }
            (TaskStatus::Completed | TaskStatus::Failed, _) if task.kind == TaskKind::Agent => {
                self.of_run(task, delivery).await
            }
            (TaskStatus::Completed | TaskStatus::Failed, _) => TaskPayload::Completed { result: see(task) },
            (TaskStatus::Cancelled, _) => TaskPayload::Cancelled,
            (TaskStatus::InputRequired, _) => self.open_questions(task, delivery).await,
            _ => TaskPayload::Working,
        }
    }

    /// What the tool that started a run would answer now.
    async fn of_run(&self, task: &Task, delivery: &Arc<Delivery>) -> TaskPayload {
        let (structured, is_error) = run_is_over(&self.tool_context(delivery), task).await;
        TaskPayload::Completed { result: body(structured, is_error) }
    }

    fn tool_context(&self, delivery: &Arc<Delivery>) -> ToolContext {
        let own = ToolContext::new(self.app.runtime().clone(), self.caller.principal.clone());
        ToolContext { rights: Arc::clone(&self.caller.rights), delivery: Arc::clone(delivery), ..own }
    }

    /// A question that was answered meanwhile is asked no more. A client that cannot ask its user gets the question as
    /// the result, as a call without a task would: otherwise it waits for an answer that it cannot give.
    async fn open_questions(&self, task: &Task, delivery: &Arc<Delivery>) -> TaskPayload {
        let open = Agents::of(self.app.runtime()).open_questions(&task.id).await.unwrap_or_default();
        match (open.is_empty(), self.can_ask) {
            (true, _) => TaskPayload::Working,
            (false, true) => TaskPayload::InputRequired { input_requests: questions::asked(&open) },
            (false, false) => self.of_run(task, delivery).await,
        }
    }

    /// Hands answers to the run that asked. What answers no open question is ignored, as the extension says.
    ///
    /// # Errors
    /// No such task of this caller's; an answer that the question does not allow.
    pub async fn answer(&self, id: &str, responses: &InputResponses) -> Result<(), ErrorData> {
        self.find(id).await?;
        let (runtime, id) = (self.app.runtime(), TaskId::from_text(id));
        let open = Agents::of(runtime).open_questions(&id).await.map_err(|error| refused(&error))?;
        for (job, answer) in questions::answers(&open, responses) {
            Agents::of(runtime)
                .answer(&self.caller.principal, &id, Some(&job), &answer)
                .await
                .map_err(|error| refused(&error))?;
        }
        Ok(())
    }

    /// The task with what came of it.
    pub async fn shown(&self, task: &Task, payload: TaskPayload) -> GetTaskResult {
        let mut seed = self.seed(task);
        if task.status == TaskStatus::Running && task.status_message.is_none() {
            // Without the store the counts are shown, which the task has itself.
            let progress = Tasks::of(self.app.runtime()).progress_of(&task.id).await.ok().flatten();
            seed.status_message = progress.or(seed.status_message);
        }
        GetTaskResult::new(DetailedTask::new(seed, payload))
    }

    fn seed(&self, task: &Task) -> rmcp::model::Task {
        let status = match task.status {
            TaskStatus::Completed => rmcp::model::TaskStatus::Completed,
            TaskStatus::Failed => rmcp::model::TaskStatus::Failed,
            TaskStatus::Cancelled => rmcp::model::TaskStatus::Cancelled,
            TaskStatus::InputRequired => rmcp::model::TaskStatus::InputRequired,
            TaskStatus::Queued
            | TaskStatus::Running
            | TaskStatus::Finished
            | TaskStatus::Paused
            | TaskStatus::Blocked => rmcp::model::TaskStatus::Working,
        };
        let age = self.app.runtime().clock().now().since(task.created_at);
        let poll = if age < POLL_LATER_AFTER { POLL_FIRST } else { POLL_LATER };
        let native =
            rmcp::model::Task::new(task.id.as_str(), status, task.created_at.to_string(), task.updated_at.to_string());
        let native = native.with_poll_interval_ms(millis(poll)).with_status_message(words(task));
        match kept_until(task, self.app.runtime().results_kept()) {
            Some(until) => native.with_ttl_ms(millis(until.since(task.created_at))),
            None => native,
        }
    }

    /// A client polls an unknown id for ever, so one that was known ends for good.
    #[must_use]
    pub fn expired(&self, id: &str, status: TaskStatus) -> GetTaskResult {
        let now = self.app.runtime().clock().now().to_string();
        let message = format!("Task ID not found or expired. It had ended as {status}.");
        let error = json!({ "code": -32602, "message": message });
        let task = rmcp::model::Task::new(id, rmcp::model::TaskStatus::Failed, now.clone(), now);
        GetTaskResult::new(DetailedTask::new(task, TaskPayload::Failed { error: object(error) }))
    }
}

/// When a finished task is removed; reading brings that forward for a wait only.
fn kept_until(task: &Task, results_kept: Duration) -> Option<Timestamp> {
    let finished = task.finished_at.filter(|_| task.status.is_terminal())?;
    let until = finished.plus(results_kept);
    let read = task.first_read_at.filter(|_| task.kind == TaskKind::Wait);
    Some(read.map_or(until, |read| read.plus(WAIT_KEPT_AFTER_READ).min(until)))
}

/// What a person or a model may read about a task under way.
fn words(task: &Task) -> String {
    if let Some(message) = &task.status_message {
        return message.clone();
    }
    if task.status == TaskStatus::InputRequired {
        return "waiting for an answer; read the question with get_task_status, answer it with answer_question"
            .to_owned();
    }
    let counts = &task.counts;
    let ended = counts.total() - counts.unfinished();
    match (task.status.is_terminal(), counts.total()) {
        (_, 0) | (true, 1) => task.status.to_string(),
        (true, total) => format!("{}: {} of {total} jobs failed", task.status, counts.failed),
        (false, total) => format!("{}: {ended} of {total} jobs done", task.status),
    }
}

/// A task whose result is read with the tool.
fn see(task: &Task) -> JsonObject {
    let message = format!("The task ended as {}. Call get_task_status with its task_id to read it.", task.status);
    body(json!({ "ok": true, "task_id": task.id, "status": task.status, "message": message }), false)
}

fn body(structured: Value, is_error: bool) -> JsonObject {
    serde_json::to_value(result(structured, is_error)).map(object).unwrap_or_default()
}

fn object(value: Value) -> JsonObject {
    match value {
        Value::Object(fields) => fields,
        _ => JsonObject::new(),
    }
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

fn refused(error: &TaskError) -> ErrorData {
    match error.code() {
        ErrorCode::TaskNotFound | ErrorCode::InvalidParams => ErrorData::invalid_params(error.to_string(), None),
        _ => ErrorData::internal_error(error.to_string(), None),
    }
}
