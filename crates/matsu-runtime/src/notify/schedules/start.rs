//! Starts work without a person: as the owner of a schedule or a webhook, by the tools that a client calls.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value, json};

use matsu_core::error_code::ErrorCode;
use matsu_core::id::{JobId, TaskId};
use matsu_core::ports::store::ReadUser;
use matsu_core::principal::Principal;
use matsu_core::schedule::{Firing, FiringOutcome, Plan, Schedule};
use matsu_core::unstarted::Unstarted;
use matsu_core::webhook::Webhook;

use crate::access::Access;
use crate::dispatch::{self, Reply};
use crate::runtime::Runtime;
use crate::tasks::TaskError;
use crate::tool::{ToolContext, Workplace, folders};
use crate::tools::TOOLS;

/// Whether the owner may still work here.
pub async fn has_owner(runtime: &Runtime, owner: &Principal) -> Result<bool, TaskError> {
    Ok(*owner == Principal::local_user() || runtime.store().run(ReadUser(owner.clone())).await?.is_some())
}

/// What came of a time. The id of the firing is the idempotency key, so a second try finds the task of the first.
pub async fn start(runtime: &Runtime, schedule: &Schedule, firing: &Firing) -> Result<FiringOutcome, TaskError> {
    let cx = context(runtime, &schedule.owner, schedule.directory.as_deref()).await?;
    Ok(match begin(&cx, schedule, firing).await {
        Ok(task) => FiringOutcome::Started(task),
        Err(refused) => FiringOutcome::Failed(Box::new(unstarted(runtime, &Source::of_schedule(schedule), refused))),
    })
}

async fn begin(cx: &ToolContext, schedule: &Schedule, firing: &Firing) -> Result<TaskId, Refused> {
    check_folder(schedule.directory.as_deref())?;
    match &schedule.plan {
        Plan::Run(arguments) => call(cx, "use_agent", with_key(arguments, firing.id.as_str())).await,
        Plan::Research { task, searches } => {
            let task = call(cx, "create_task", with_key(task, firing.id.as_str())).await?;
            let queued = [("task_id", json!(task)), ("queries", json!(searches))];
            let queued = queued.map(|(name, value)| (name.to_owned(), value)).into_iter().collect();
            call(cx, "queue_searches", queued).await.map(|_| task)
        }
    }
}

/// Work for a folder that is gone is not done in another one.
///
/// # Errors
/// It is not there.
pub fn check_folder(directory: Option<&str>) -> Result<(), Refused> {
    match directory {
        Some(folder) if !Path::new(folder).is_dir() => {
            let why = format!("the folder {folder} does not exist; create it, or name another one");
            Err(Refused { code: ErrorCode::InvalidParams.as_str().to_owned(), why })
        }
        _ => Ok(()),
    }
}

/// What starts work by itself.
pub struct Source<'a> {
    kind: &'static str,
    name: &'a str,
    owner: &'a Principal,
    directory: Option<&'a str>,
    /// The agent of a run; absent: it is research.
    agent: Option<&'a str>,
}

impl<'a> Source<'a> {
    fn of_schedule(schedule: &'a Schedule) -> Self {
        let agent = match &schedule.plan {
            Plan::Run(run) => run.get("cli_name").and_then(Value::as_str),
            Plan::Research { .. } => None,
        };
        let directory = schedule.directory.as_deref();
        Self { kind: "schedule", name: &schedule.name, owner: &schedule.owner, directory, agent }
    }

    pub fn of_webhook(webhook: &'a Webhook) -> Self {
        let agent = webhook.run.get("cli_name").and_then(Value::as_str);
        let directory = webhook.directory.as_deref();
        Self { kind: "webhook", name: &webhook.name, owner: &webhook.owner, directory, agent }
    }
}

/// Why a tool refused.
pub struct Refused {
    pub code: String,
    pub why: String,
}

/// The task that tells the owner that nothing was started.
pub fn unstarted(runtime: &Runtime, source: &Source<'_>, refused: Refused) -> Unstarted {
    let (now, Refused { code, why }) = (runtime.clock().now(), refused);
    let Source { kind, name, owner, directory, agent } = source;
    let message = format!(
        "the {kind} {name} could not start its work: {}. Correct this, or remove the {kind} and add a corrected one. \
         Earlier results: matsu {kind} history {name}",
        why.trim_end_matches('.')
    );
    Unstarted {
        task_id: TaskId::mint(now),
        job_id: JobId::mint(now),
        owner: (*owner).clone(),
        title: format!("{kind} {name} could not start {}", agent.unwrap_or("its research")),
        started_in: directory.map(|directory| folders::project_of(Path::new(directory))),
        agents: agent.iter().map(|agent| (*agent).to_owned()).collect(),
        code,
        why,
        message,
        at: now,
    }
}

/// Starts a run: its task, or why there is none. A second try with the same key finds the task of the first.
pub async fn start_run(
    runtime: &Runtime,
    owner: &Principal,
    directory: Option<&str>,
    arguments: &Map<String, Value>,
    key: &str,
) -> Result<Result<TaskId, Refused>, TaskError> {
    if let Err(refused) = check_folder(directory) {
        return Ok(Err(refused));
    }
    let cx = context(runtime, owner, directory).await?;
    Ok(call(&cx, "use_agent", with_key(arguments, key)).await)
}

/// As the owner, in the folder of the schedule or the webhook.
pub async fn context(runtime: &Runtime, owner: &Principal, directory: Option<&str>) -> Result<ToolContext, TaskError> {
    let directory = directory.map(PathBuf::from);
    let workplace = Workplace { roots: directory.iter().cloned().collect(), cwd: directory, project: None };
    let rights = Access::of(runtime).rights_of(owner).await?;
    Ok(ToolContext {
        workplace: Arc::new(workplace),
        rights: Arc::new(rights),
        ends_when_done: true,
        ..ToolContext::new(runtime.clone(), owner.clone())
    })
}

fn with_key(arguments: &Map<String, Value>, key: &str) -> Map<String, Value> {
    let mut arguments = arguments.clone();
    arguments.insert("idempotency_key".to_owned(), json!(key));
    arguments
}

/// The id of the task that a tool has started, or why it refused.
async fn call(cx: &ToolContext, tool: &str, arguments: Map<String, Value>) -> Result<TaskId, Refused> {
    let Some(entry) = TOOLS.iter().find(|entry| entry.name == tool) else {
        let code = ErrorCode::InternalError.as_str().to_owned();
        return Err(Refused { code, why: format!("there is no tool {tool}") });
    };
    match dispatch::call(entry, cx, arguments).await {
        Reply::Task(id) => Ok(id),
        Reply::Done { body, is_error: false } => Ok(TaskId::from_text(body["task_id"].as_str().unwrap_or_default())),
        Reply::Done { body, .. } | Reply::Interrupted { body, .. } => {
            let text = |field: &str, usual: &str| body[field].as_str().unwrap_or(usual).to_owned();
            let code = text("error_code", ErrorCode::InternalError.as_str());
            Err(Refused { code, why: text("error", "refused") })
        }
    }
}
