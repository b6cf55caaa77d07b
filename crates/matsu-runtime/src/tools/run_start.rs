//! What `use_agent` and `use_agents` share: submit, and wait if that is wished. The same refusals in both modes.

mod wishes;

use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use matsu_core::clock::Timestamp;
use matsu_core::error_code::ErrorCode;
use matsu_core::id::TaskId;
use matsu_core::limits::RUN_AT_MAX;
use matsu_core::ports::agent::{CheckedRun, RunRefusal, RunWish};
use matsu_core::run::Mode;
use matsu_core::task::{Task, TaskStatus};

use super::task_report::{Detail, JobReport, OutputWish, TaskReport};
use crate::agents::{AUTO, Agents, RunError, RunOptions, StartedRuns};
use crate::tasks::status::{WaitFor, WaitRequest, Waits};
use crate::tool::{NativeTasks, ToolContext, ToolError, ToolReply, folders};

pub use wishes::{BudgetWish, CheckWish, IsolationWord, ModeWord, PriorityWord};

/// What the input of both tools says about the task itself.
///
/// # Errors
/// A time that is not one.
pub fn options_of(
    cx: &ToolContext,
    tool: &'static str,
    input: &impl Serialize,
    (priority, idempotency_key): (Option<PriorityWord>, Option<String>),
    (depends_on, run_at): (Option<Vec<String>>, Option<&str>),
) -> Result<RunOptions, ToolError> {
    Ok(RunOptions {
        tool,
        priority: PriorityWord::or_medium(priority),
        idempotency_key: idempotency_key.or_else(|| cx.call_key.clone()),
        body: serde_json::to_string(input).unwrap_or_default(),
        depends_on: distinct(depends_on.unwrap_or_default()),
        run_at: run_at.map(|at| begins_at(at, cx.runtime.clock().now())).transpose()?,
        parent: cx.run.as_ref().and_then(|run| run.task_id().cloned()),
        started_in: None,
        chosen: None,
    })
}

/// When a run that is put off begins.
fn begins_at(text: &str, now: Timestamp) -> Result<Timestamp, ToolError> {
    let expected = "a time such as 2026-01-31T03:00:00Z or a span such as 2h, at most 30 days ahead";
    let at = Timestamp::parse_or_span(text, now).filter(|at| at.since(now) <= RUN_AT_MAX);
    at.ok_or_else(|| ToolError::param("run_at", expected, text, format!("run_at must be {expected}, got {text}")))
}

/// A handle, and the result if it came in time.
#[derive(Default, Serialize, JsonSchema)]
pub struct Started {
    task_id: String,
    /// queued or running; with the result also completed.
    status: String,
    message: String,
    /// The state that it starts from, why this agent was chosen, and which ones were left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
    working_directory: String,
    mode: String,
    isolation: String,
    /// How the run is confined: sealed, fenced or open.
    confinement: String,
    /// What that confinement does not cover.
    not_covered: Vec<String>,
    revision: i64,
    /// Your name for the conversation, to resume it.
    session_id: String,
    /// Where a person can watch it.
    #[serde(skip_serializing_if = "Option::is_none")]
    watch: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<String>,
    /// Set if `result` is only a part: read on with get_task_status(output_offset).
    #[serde(skip_serializing_if = "Option::is_none")]
    next_output_offset: Option<u64>,
    /// Completed without output.
    #[serde(skip_serializing_if = "Option::is_none")]
    empty: Option<bool>,
    /// With several agents: the outcome of each so far.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    results: Vec<JobReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failed_count: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    question: Option<super::task_report::QuestionReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    changes: Option<super::task_report::ChangesReport>,
    /// The outcome of the check.
    #[serde(skip_serializing_if = "Option::is_none")]
    receipt: Option<super::task_report::ReceiptReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    waited_ms: Option<u64>,
}

/// What a wish says about its caller.
///
/// # Errors
/// `FORBIDDEN` for a caller that may start agents nowhere.
pub fn wish_of(cx: &ToolContext) -> Result<RunWish, ToolError> {
    let mode_max = softer(cx.run.as_ref().map(|run| run.mode), cx.session.as_ref().map(|session| session.mode_max()));
    Ok(RunWish { places: folders::places(cx)?, mode_max, ..RunWish::default() })
}

/// Of two bounds the one that allows less.
fn softer(one: Option<Mode>, other: Option<Mode>) -> Option<Mode> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

/// The wish with the name of an agent, and why it is this one if the caller left that open.
///
/// # Errors
/// None can do it.
pub async fn with_agent(cx: &ToolContext, wish: RunWish) -> Result<(RunWish, Option<String>), ToolError> {
    if wish.agent != AUTO {
        return Ok((wish, None));
    }
    let (agent, why) = Agents::of(&cx.runtime).choose_agent(&cx.principal, &wish).await?;
    Ok((RunWish { agent, ..wish }, Some(why)))
}

/// Checks runs against the definitions, the rules of this machine and the folders of the caller. Stores nothing.
///
/// # Errors
/// The first that is refused.
pub fn check(cx: &ToolContext, wishes: Vec<RunWish>) -> Result<Vec<CheckedRun>, ToolError> {
    let checked = Agents::of(&cx.runtime).check_runs(wishes)?;
    for run in &checked {
        folders::check_directory(cx, run.input.directory.as_deref())?;
    }
    Ok(checked)
}

/// Queues the runs as one task, and waits for it unless the call said `run_async`.
///
/// # Errors
/// The first run that is refused; the store's.
pub async fn start(
    cx: &ToolContext,
    wishes: Vec<RunWish>,
    options: RunOptions,
    run_async: bool,
) -> Result<ToolReply<Started>, ToolError> {
    let names_directory = wishes.first().is_some_and(|wish| wish.working_directory.is_some());
    let checked = check(cx, wishes)?;
    let directory = checked.first().filter(|_| names_directory).and_then(|run| run.input.directory.as_deref());
    let options = RunOptions { started_in: folders::project(cx, directory), ..options };
    let started = Agents::of(&cx.runtime).queue_runs(&cx.principal, checked, options).await?;
    let task = started.inserted.task.clone();
    if run_async {
        stage(cx, &task);
        let message = if started.inserted.existed { REPEATED } else { STARTED };
        return Ok(ToolReply::Done(Started::handle(cx, &started, &task, message)));
    }
    if cx.tasks == NativeTasks::Understood {
        return Ok(ToolReply::Deferred(task.id));
    }
    wait(cx, &started, &task.id).await
}

/// Each once, oldest first.
fn distinct(ids: Vec<String>) -> Vec<TaskId> {
    let mut ids: Vec<TaskId> = ids.into_iter().map(TaskId::from_text).collect();
    ids.sort();
    ids.dedup();
    ids
}

/// The message once the task is stored; it waits in the queue until an agent's slot is free.
const STARTED: &str = "Task queued; get its result with get_task_status";

/// The answer to a call that was made before.
const REPEATED: &str = "This is the task of an earlier call with the same key; nothing new was queued. Get its result with get_task_status";

/// The reply to a start shows the client the task as well.
fn stage(cx: &ToolContext, task: &Task) {
    if let Some(instance) = &cx.instance {
        cx.runtime.cursors().stage(instance, &task.id, task.revision);
    }
}

async fn wait(cx: &ToolContext, started: &StartedRuns, id: &TaskId) -> Result<ToolReply<Started>, ToolError> {
    cx.watched.set(std::slice::from_ref(id));
    let began = cx.runtime.clock().instant();
    let hold = cx.hold_max();
    let request = WaitRequest {
        owner: cx.principal.clone(),
        ids: vec![id.clone()],
        // All but the very first moment is known: this waits for the end, or for a question.
        since: Some([(id.clone(), started.inserted.task.revision.max(1))].into()),
        wait_for: WaitFor::All,
        hold,
        hold_max: Some(hold),
        instance: None,
        interrupt: None,
    };
    let reply = lending(cx, Waits::of(&cx.runtime).wait_for_tasks(request, &cx.caller)).await?;
    let Some(view) = reply.tasks.first() else { return Err(crate::tasks::TaskError::NotFound(id.clone()).into()) };
    let task = &view.task;
    let report = TaskReport::of(cx, task, Detail::Full, OutputWish::default()).await?;
    stage(cx, task);
    cx.shows(&[task]).await;
    if matches!(task.status, TaskStatus::Failed | TaskStatus::Cancelled) && report.results.is_empty() {
        return Err(run_failed(&report));
    }
    let message = message(task, &report);
    let waited_ms = u64::try_from((cx.runtime.clock().instant() - began).as_millis()).unwrap_or(u64::MAX);
    Ok(ToolReply::Done(
        Started { waited_ms: Some(waited_ms), ..Started::handle(cx, started, task, &message) }.with(report),
    ))
}

/// What the caller does next.
fn message(task: &Task, report: &TaskReport) -> String {
    let id = &task.id;
    if let Some(question) = &report.question {
        let answer = question.example(id);
        return format!("The agent asks a question and waits for the answer. Answer with answer_question {answer}.");
    }
    let state = match task.status {
        TaskStatus::Completed => return "Done.".to_owned(),
        TaskStatus::Failed => return "The task has failed; see results for the outcome of each agent.".to_owned(),
        TaskStatus::Cancelled => return "The task was cancelled; results contains what was done before.".to_owned(),
        TaskStatus::Running => "Still running",
        _ => "Not over yet",
    };
    format!("{state}. Do other work, then call get_task_status {{\"task_id\":\"{id}\",\"timeout\":600}} once.")
}

/// A wait that comes from inside a run lends the run's permit to what it waits for.
pub async fn lending<T>(cx: &ToolContext, wait: impl Future<Output = T>) -> T {
    match &cx.run {
        None => wait.await,
        Some(run) => {
            let wait = std::pin::pin!(wait);
            let mut wait = Some(wait);
            let lent = run.context.waiting_for_descendants(async {
                match wait.take() {
                    Some(wait) => Some(wait.await),
                    None => None,
                }
            });
            match lent.await {
                Ok(Some(value)) => value,
                // The run has ended meanwhile; the caller is answered all the same.
                _ => match wait {
                    Some(wait) => wait.await,
                    None => std::future::pending().await,
                },
            }
        }
    }
}

impl Started {
    fn handle(cx: &ToolContext, started: &StartedRuns, task: &Task, message: &str) -> Self {
        let input = &started.first.input;
        let message = match &started.first.note {
            Some(note) => format!("{message}. {note}").replace("..", "."),
            None => message.to_owned(),
        };
        Self {
            task_id: task.id.to_string(),
            status: task.status.to_string(),
            message,
            note: started.first.note.clone(),
            working_directory: started.first.shown_directory.clone(),
            mode: input.mode.to_string(),
            isolation: input.isolation.to_string(),
            confinement: started.first.confinement.map(|level| level.to_string()).unwrap_or_default(),
            not_covered: started.first.not_covered.clone(),
            revision: task.revision,
            session_id: input.session.clone(),
            watch: cx.watch_link(&task.id),
            ..Self::default()
        }
    }

    fn with(self, report: TaskReport) -> Self {
        Self {
            result: report.result,
            next_output_offset: report.next_output_offset,
            empty: report.empty,
            results: report.results,
            failed_count: report.failed_count,
            question: report.question,
            changes: report.changes,
            receipt: report.receipt,
            ..self
        }
    }
}

/// What a call that went on as a native task ends with: what it would have answered by itself.
pub async fn end_of_run(cx: &ToolContext, task: &Task) -> Result<Started, ToolError> {
    let report = TaskReport::of(cx, task, Detail::Full, OutputWish::default()).await?;
    if matches!(task.status, TaskStatus::Failed | TaskStatus::Cancelled) && report.results.is_empty() {
        return Err(run_failed(&report));
    }
    let config: serde_json::Value = serde_json::from_str(&task.config_json).unwrap_or_default();
    let word = |name: &str| config[name].as_str().unwrap_or_default().to_owned();
    let started = Started {
        task_id: task.id.to_string(),
        status: task.status.to_string(),
        message: message(task, &report),
        working_directory: word("working_directory"),
        mode: word("mode"),
        isolation: word("isolation"),
        confinement: word("confinement"),
        not_covered: serde_json::from_value(config["not_covered"].clone()).unwrap_or_default(),
        revision: task.revision,
        session_id: report.session_id.clone().unwrap_or_else(|| task.id.to_string()),
        watch: cx.watch_link(&task.id),
        ..Started::default()
    };
    cx.shows(&[task]).await;
    Ok(started.with(report))
}

/// A call that was to bring an answer and brings none has failed, and says so.
fn run_failed(report: &TaskReport) -> ToolError {
    let code = report.error_code.as_deref().and_then(ErrorCode::parse).unwrap_or(ErrorCode::TaskStopped);
    let error = report.error.clone().unwrap_or_else(|| format!("the task was {}", report.status));
    let details = json!({
        "task_id": report.task_id,
        "status": report.status,
        "exit_code": report.exit_code,
        "stdout_tail": report.stdout_tail,
        "stderr_tail": report.stderr_tail,
        "session_id": report.session_id,
        "result": report.result,
        "branch": report.changes.as_ref().map(|changes| changes.branch()),
        "receipt": report.receipt,
        "check_output": report.check_output,
        "retryable": report.retryable.unwrap_or(false),
    });
    ToolError { details, ..ToolError::new(code, error) }
}

impl From<RunRefusal> for ToolError {
    fn from(refusal: RunRefusal) -> Self {
        match refusal.param {
            Some(param) => {
                let error = Self::param(&param.name, &param.expected, &param.received, refusal.message);
                Self { code: refusal.code, ..error }
            }
            None => Self::new(refusal.code, refusal.message),
        }
    }
}

impl From<RunError> for ToolError {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Refused(refusal) => refusal.into(),
            RunError::Task(error) => error.into(),
        }
    }
}

/// How long a call that needs processes to be gone waits for that.
pub const PROCESSES_GONE_WITHIN: Duration = Duration::from_secs(6);

#[cfg(test)]
mod tests {
    use super::{Mode, softer};

    #[test]
    fn of_two_bounds_the_stricter_holds() {
        let (read, write) = (Some(Mode::ReadOnly), Some(Mode::WorkspaceWrite));
        assert_eq!(softer(None, None), None);
        assert_eq!((softer(read, None), softer(None, write)), (read, write));
        assert_eq!((softer(read, write), softer(write, read)), (read, read));
    }
}
