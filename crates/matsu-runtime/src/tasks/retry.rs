//! The same work once more, as a new task.

use std::collections::HashSet;

use matsu_core::budget::BudgetLine;
use matsu_core::clock::Timestamp;
use matsu_core::id::{JobId, TaskId};
use matsu_core::job::{Job, JobKind, JobState, NewJob};
use matsu_core::ports::store::{InsertedTask, ReadBudget, ReadTasks, SessionClaim};
use matsu_core::principal::Principal;
use matsu_core::research::search::ResearchConfig;
use matsu_core::run::{Changes, Continues, RunCheckpoint, RunInput, RunOutput};
use matsu_core::task::{IdempotencyKey, NewTask, Task, TaskKind, TaskStatus};

use super::TaskError;

use super::Tasks;

/// Changes that conflict, and what the agent gets them merged with.
pub(crate) struct Resolves {
    pub changes: Changes,
    /// A commit. Absent: the user's files as they are.
    pub on: Option<String>,
    /// The merge that sends them back: the same again after a restart is the same task.
    pub merge: Option<TaskId>,
}

impl Tasks<'_> {
    /// Starts a finished task again: same kind, settings, budget and jobs, new ids. The first one stays as it is.
    ///
    /// # Errors
    /// `NotFound` for a foreign task, `Invalid` for one that has not ended.
    pub async fn retry(self, owner: &Principal, id: &TaskId) -> Result<InsertedTask, TaskError> {
        let (old, jobs) = self.ended(owner, id).await?;
        let mut keys = HashSet::new();
        // Two jobs of one key were never open at the same time; queued together the second would be refused.
        let wanted = jobs.into_iter().filter(|job| job.dedupe_key.as_ref().is_none_or(|key| keys.insert(key.clone())));
        let now = self.runtime.clock().now();
        let jobs = wanted.map(|job| again(job, now)).collect();
        let task = self.anew(old, jobs, now).await?;
        // Not through the bound on one call: the jobs were taken once already.
        Ok(self.runtime.store().run(task).await?)
    }

    /// Goes on with the runs of a task that ended before they were done: in the same conversation where the program
    /// can resume one, and from the files that the run has left.
    ///
    /// # Errors
    /// As [`Tasks::retry`]; `Invalid` where nothing is left to go on with.
    pub async fn retry_continuing(self, owner: &Principal, id: &TaskId) -> Result<InsertedTask, TaskError> {
        let (old, jobs) = self.ended(owner, id).await?;
        let now = self.runtime.clock().now();
        let is_replaced = |job: &Job| jobs.iter().any(|later| later.cause_id.as_deref() == Some(job.id.as_str()));
        let open = jobs.iter().filter(|job| job.kind == JobKind::AgentRun && !is_replaced(job));
        let mut going_on = Vec::new();
        let mut session = None;
        for job in open.filter(|job| job.state != JobState::Completed) {
            let (input, claim) = going_on_with(job)?;
            session = claim;
            going_on.push(again(Job { input_json: input, ..job.clone() }, now));
        }
        if going_on.is_empty() {
            let message =
                format!("{id} has no run that ended before it was done; matsu retry {id} runs it from the start");
            return Err(TaskError::Invalid(message));
        }
        // A conversation is claimed by one task; where there are several runs, none of them has a claim.
        let session = session.filter(|_| going_on.len() == 1);
        let task = self.anew(old, going_on, now).await?;
        self.submit_run(task, session).await
    }

    /// Sends a comment into the conversation of a run that has ended: a new round on the same branch, as a new task.
    ///
    /// # Errors
    /// `Invalid` where the conversation cannot be resumed.
    pub(crate) async fn send_back(
        self,
        owner: &Principal,
        id: &TaskId,
        comment: &str,
        resolves: Option<Resolves>,
    ) -> Result<InsertedTask, TaskError> {
        let (old, jobs) = self.ended(owner, id).await?;
        let no = |why: &str| TaskError::Invalid(format!("the comment was not sent back: {why}"));
        let mut runs = jobs.into_iter().filter(|job| job.kind == JobKind::AgentRun);
        let (Some(job), None) = (runs.next_back(), runs.next()) else {
            return Err(no("the task has several runs; start a new task with the comment"));
        };
        let mut input: RunInput = serde_json::from_str(&job.input_json).map_err(|error| no(&error.to_string()))?;
        let output: RunOutput =
            job.output_json.as_deref().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
        if output.session_id.is_none() || output.agent != input.agent {
            return Err(no("the conversation of its agent cannot be resumed; start a new task with the comment"));
        }
        if comment.trim().is_empty() {
            return Err(no("it is empty; write what the agent should do"));
        }
        comment.clone_into(&mut input.message);
        (input.resume, input.continues, input.verifies) = (true, None, None);
        let idempotency = resolves.as_ref().and_then(|it| it.merge.as_ref()).map(|merge| IdempotencyKey {
            principal: owner.clone(),
            tool: "merge".to_owned(),
            key: format!("{merge} sends back {id}"),
            body_hash: String::new(),
        });
        (input.resolves, input.resolves_on) = resolves.map_or((None, None), |it| (Some(it.changes), it.on));
        // Its branch has what they changed, and its conversation what they came to.
        (input.depends_on, input.not_before) = (Vec::new(), None);
        let claim = SessionClaim {
            name: input.session.clone(),
            agent: input.agent.clone(),
            directory: input.directory.clone().unwrap_or_default(),
            resume: true,
        };
        let input_json = serde_json::to_string(&input).map_err(|error| no(&error.to_string()))?;
        let now = self.runtime.clock().now();
        let task = self.anew(old, vec![again(Job { input_json, ..job }, now)], now).await?;
        self.submit_run(NewTask { idempotency, ..task }, Some(claim)).await
    }

    async fn ended(self, owner: &Principal, id: &TaskId) -> Result<(Task, Vec<Job>), TaskError> {
        let old = self.read_own(owner, id).await?;
        if !old.status.is_terminal() && old.status != TaskStatus::Finished {
            return Err(TaskError::Invalid(format!("{id} is {}; wait until it has ended, then retry", old.status)));
        }
        if old.is_unstarted() {
            let message = format!(
                "{id} was never started, so it cannot be retried; `matsu status {id}` says why. A schedule tries again at \
                 its next time, and a webhook with its next delivery"
            );
            return Err(TaskError::Invalid(message));
        }
        let jobs = self.jobs_of(id).await?;
        Ok((old, jobs))
    }

    async fn anew(self, old: Task, jobs: Vec<NewJob>, now: Timestamp) -> Result<NewTask, TaskError> {
        let budget = self.runtime.store().run(ReadBudget(old.id.clone())).await?;
        // Those that are gone were over.
        let awaited = self.runtime.store().run(ReadTasks(old.depends_on())).await?;
        let depends_on = awaited.into_iter().map(|task| task.id).collect();
        Ok(NewTask {
            id: TaskId::mint(now),
            config_json: settings(&old),
            kind: old.kind,
            owner: old.owner,
            project_id: old.project_id,
            title: old.title,
            budget: budget.into_iter().map(|line| BudgetLine { used: 0, ..line }).collect(),
            assignee: old.assignee,
            // The one who started it may have ended long ago.
            parent_id: None,
            depends_on,
            jobs,
            idempotency: None,
            created_at: now,
        })
    }
}

fn again(job: Job, now: Timestamp) -> NewJob {
    let id = if job.kind == JobKind::Search { JobId::mint_search(now) } else { JobId::mint(now) };
    NewJob {
        id,
        kind: job.kind,
        priority: job.priority,
        slot: job.slot,
        input_json: job.input_json,
        cause_id: Some(job.id.to_string()),
        run_at: now,
        dedupe_key: job.dedupe_key,
    }
}

/// The input of a run that goes on where this job ended, and the conversation that it takes.
fn going_on_with(job: &Job) -> Result<(String, Option<SessionClaim>), TaskError> {
    let unreadable = |error: serde_json::Error| TaskError::Invalid(format!("{} cannot be read: {error}", job.id));
    let mut input: RunInput = serde_json::from_str(&job.input_json).map_err(unreadable)?;
    let checkpoint: RunCheckpoint =
        job.checkpoint_json.as_deref().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    input = input.after(checkpoint.tried.len());
    input.fallback.clear();
    // Under the name of the task's conversation only the first agent's can be resumed.
    let is_first = checkpoint.tried.is_empty();
    let claim = (checkpoint.vendor_session.is_some() && is_first).then(|| SessionClaim {
        name: input.session.clone(),
        agent: input.agent.clone(),
        directory: input.directory.clone().unwrap_or_default(),
        resume: true,
    });
    let task = input.message.strip_prefix(INTERRUPTED).unwrap_or(&input.message);
    input.message = format!("{INTERRUPTED}{task}");
    input.continues = Some(Continues { vendor_session: checkpoint.vendor_session, place: checkpoint.place });
    Ok((serde_json::to_string(&input).map_err(unreadable)?, claim))
}

/// What an agent reads before its task when it goes on with it.
const INTERRUPTED: &str = "An earlier run of this task ended before it was done. What it changed is in the files here, \
                           if it changed any. Check what is done already, then continue. The task:\n\n";

/// A person asks for the repetition and calls no `stop_task` afterwards: research ends with its last search.
fn settings(old: &Task) -> String {
    if old.kind != TaskKind::Research {
        return old.config_json.clone();
    }
    let config: ResearchConfig = serde_json::from_str(&old.config_json).unwrap_or_default();
    let config = ResearchConfig { ends_when_done: true, ..config };
    serde_json::to_string(&config).unwrap_or_else(|_| old.config_json.clone())
}
