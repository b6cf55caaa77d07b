//! Submitting runs: checked as a whole before anything is stored, and stored as one task.

use serde_json::json;
use sha2::{Digest, Sha256};

use matsu_core::clock::Timestamp;
use matsu_core::id::{JobId, TaskId};
use matsu_core::job::{JobKind, NewJob, Priority};
use matsu_core::limits::{DELAY_MAX, JOB_INPUT_BYTES_MAX};
use matsu_core::ports::agent::{CheckedRun, RunRefusal, RunWish};
use matsu_core::ports::store::{InsertedTask, SessionClaim};
use matsu_core::principal::Principal;
use matsu_core::run::{RunInput, RunPresence};
use matsu_core::slot::Slot;
use matsu_core::task::{IdempotencyKey, NewTask, TaskKind};

use crate::tasks::{TaskError, Tasks};

use super::Agents;

/// How runs are queued.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// The tool that was called; an idempotency key is bound to it.
    pub tool: &'static str,
    pub priority: Priority,
    pub idempotency_key: Option<String>,
    /// What the key stands for: everything that was asked.
    pub body: String,
    /// Tasks that must be over before it begins.
    pub depends_on: Vec<TaskId>,
    /// It does not begin earlier.
    pub run_at: Option<Timestamp>,
    /// The task whose run asks for this one.
    pub parent: Option<TaskId>,
    /// The project folder of the client that asks.
    pub started_in: Option<String>,
    /// Why the first agent was chosen, if the choice was left to Matsu.
    pub chosen: Option<String>,
}

/// What was queued.
#[derive(Debug)]
pub struct StartedRuns {
    pub inserted: InsertedTask,
    /// The first run, as it was checked; they share directory, mode and isolation.
    pub first: CheckedRun,
}

/// Runs that were refused. Nothing was stored.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error("{}", .0.message)]
    Refused(RunRefusal),
    #[error(transparent)]
    Task(#[from] TaskError),
}

impl Agents<'_> {
    /// Queues one task with a run for each wish; at least one.
    ///
    /// # Errors
    /// The first wish that is refused; then nothing is stored.
    pub async fn start_runs(
        self,
        owner: &Principal,
        wishes: Vec<RunWish>,
        options: RunOptions,
    ) -> Result<StartedRuns, RunError> {
        let runs = self.check_runs(wishes)?;
        self.queue_runs(owner, runs, options).await
    }

    /// Checks wishes against the definitions and rules of this machine. Stores nothing.
    ///
    /// # Errors
    /// The first wish that is refused.
    pub fn check_runs(self, wishes: Vec<RunWish>) -> Result<Vec<CheckedRun>, RunError> {
        let host = self.host()?;
        wishes.into_iter().map(|wish| host.check(wish).map_err(RunError::Refused)).collect()
    }

    /// Queues one task with these runs; at least one.
    ///
    /// # Errors
    /// As the store's; a message that is too long.
    pub async fn queue_runs(
        self,
        owner: &Principal,
        mut runs: Vec<CheckedRun>,
        options: RunOptions,
    ) -> Result<StartedRuns, RunError> {
        let now = self.runtime.clock().now();
        let id = TaskId::mint(now);
        let alone = runs.len() == 1;
        // A run that names no conversation has one under its task's id, so that it can be resumed all the same.
        let conversation = |id: &TaskId, agent: &str| if alone { id.to_string() } else { format!("{id}.{agent}") };
        let is_named = runs.first().is_some_and(|run| !run.input.session.is_empty());
        self.check_dependencies(owner, &options.depends_on, options.parent.as_ref()).await?;
        for run in &mut runs {
            run.input.depends_on.clone_from(&options.depends_on);
            run.input.not_before = options.run_at.filter(|at| *at > now).map(Timestamp::as_millis);
            if run.input.session.is_empty() {
                run.input.session = conversation(&id, &run.input.agent);
            }
        }
        if let (Some(first), Some(why)) = (runs.first_mut(), &options.chosen) {
            first.note = Some(first.note.take().map_or_else(|| why.clone(), |note| format!("{why} {note}")));
        }
        let Some(mut first) = runs.first().cloned() else {
            return Err(TaskError::Invalid("name at least one agent".to_owned()).into());
        };
        let jobs = runs.iter().map(|run| job(&run.input, options.priority, now)).collect::<Result<_, _>>()?;
        let session = alone.then(|| SessionClaim {
            name: first.input.session.clone(),
            agent: first.input.agent.clone(),
            directory: first.input.directory.clone().unwrap_or_default(),
            resume: first.input.resume,
        });
        let presence = first.input.presence.as_ref();
        let task = NewTask {
            id,
            kind: TaskKind::Agent,
            owner: owner.clone(),
            project_id: presence.map(|presence| presence.project_id.to_string()),
            title: presence.map_or_else(|| title(&runs), |presence| given_title(presence, &options.body)),
            config_json: config(&first, &runs, options.started_in.as_deref()),
            budget: Vec::new(),
            assignee: presence.map(|presence| presence.agent_id.to_string()),
            parent_id: options.parent.clone(),
            depends_on: options.depends_on.clone(),
            jobs,
            idempotency: key(owner, &options),
            created_at: now,
        };
        let inserted = Tasks::of(self.runtime).submit_run(task, session).await?;
        if inserted.existed && !is_named {
            first.input.session = conversation(&inserted.task.id, &first.input.agent);
        }
        Ok(StartedRuns { inserted, first })
    }
}

fn job(input: &RunInput, priority: Priority, now: Timestamp) -> Result<NewJob, TaskError> {
    let input_json = serde_json::to_string(input).map_err(|error| TaskError::Invalid(error.to_string()))?;
    if input_json.len() > JOB_INPUT_BYTES_MAX {
        let message =
            format!("message and settings have {} bytes; at most {JOB_INPUT_BYTES_MAX} are allowed", input_json.len());
        return Err(TaskError::LimitExceeded(message));
    }
    Ok(NewJob {
        id: JobId::mint(now),
        kind: JobKind::AgentRun,
        priority,
        slot: Slot::AgentCli,
        input_json,
        cause_id: None,
        run_at: input.not_before.map_or(now, Timestamp::from_millis).min(now.plus(DELAY_MAX)),
        dedupe_key: None,
    })
}

fn title(runs: &[CheckedRun]) -> String {
    let names = runs.iter().map(|run| run.input.agent.as_str()).collect::<Vec<_>>().join(", ");
    let message = runs.first().map_or("", |run| run.input.message.as_str());
    let line = message.lines().find(|line| !line.trim().is_empty()).unwrap_or("");
    format!("{names}: {}", line.trim())
}

/// A task that a person gave to a named agent has that name, and its text is the person's alone.
fn given_title(to: &RunPresence, words: &str) -> String {
    let line = words.lines().find(|line| !line.trim().is_empty()).unwrap_or("");
    format!("{}: {}", to.agent_id, line.trim())
}

/// What people are shown about the task.
fn config(first: &CheckedRun, runs: &[CheckedRun], started_in: Option<&str>) -> String {
    json!({
        "agents": runs.iter().map(|run| run.input.agent.as_str()).collect::<Vec<_>>(),
        "mode": first.input.mode,
        "isolation": first.input.isolation,
        "confinement": first.confinement,
        "not_covered": first.not_covered,
        "working_directory": first.shown_directory,
        "depends_on": first.input.depends_on,
        "started_in": started_in,
        "run_at": first.input.not_before.map(|at| Timestamp::from_millis(at).to_string()),
    })
    .to_string()
}

fn key(owner: &Principal, options: &RunOptions) -> Option<IdempotencyKey> {
    let key = options.idempotency_key.clone()?;
    let digest = Sha256::digest(options.body.as_bytes());
    let body_hash = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    Some(IdempotencyKey { principal: owner.clone(), tool: options.tool.to_owned(), key, body_hash })
}
