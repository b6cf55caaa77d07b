//! Reading runs: what they said, from anywhere, and what they changed.

use matsu_core::error_code::ErrorCode;
use matsu_core::id::TaskId;
use matsu_core::job::{Job, JobState};
use matsu_core::page::PageRequest;
use matsu_core::ports::store::{
    JobFilter, ListJobs, OutputFrom, OutputRange, OutputSlice, OutputStream, ReadOutput, StoreError,
};
use matsu_core::principal::Principal;
use matsu_core::run::{Changes, RunInput, RunOutput};
use matsu_core::task::{ReviewState, Task};

use crate::tasks::{TaskError, Tasks};

use super::Agents;

/// A part of what a run said.
#[derive(Debug)]
pub struct RunLog {
    pub task: Task,
    pub agent: String,
    /// The part is one of the result: the run keeps no log of its own.
    pub is_result: bool,
    pub slice: OutputSlice,
}

/// What a run changed.
#[derive(Debug)]
pub struct RunPatch {
    pub agent: String,
    pub changes: Changes,
    /// As git writes it.
    pub patch: Vec<u8>,
}

/// Which part of what a run printed is wanted.
#[derive(Clone, Copy, Debug)]
pub struct LogWish<'a> {
    /// Of several runs: which agent's.
    pub agent: Option<&'a str>,
    pub from: OutputFrom,
    pub result_only: bool,
    pub bytes_max: usize,
}

impl Agents<'_> {
    /// What a run was doing, or its result where it keeps no other log; from this byte on.
    ///
    /// # Errors
    /// `NotFound` for a foreign task; `Invalid` if it has no such run.
    pub async fn run_log(self, owner: &Principal, id: &TaskId, wish: LogWish<'_>) -> Result<RunLog, TaskError> {
        let task = Tasks::of(self.runtime).read(owner, id).await?;
        let (job, input) = self.run_of(id, wish.agent).await?;
        let range = |stream| OutputRange { stream, from: wish.from, bytes_max: wish.bytes_max };
        if !wish.result_only {
            let slice =
                self.runtime.store().run(ReadOutput { job: job.id.clone(), wish: range(OutputStream::Log) }).await?;
            if slice.total > 0 {
                return Ok(RunLog { task, agent: input.agent, is_result: false, slice });
            }
        }
        let slice =
            self.runtime.store().run(ReadOutput { job: job.id.clone(), wish: range(OutputStream::Result) }).await?;
        Ok(RunLog { task, agent: input.agent, is_result: true, slice })
    }

    /// What a run in a worktree has changed.
    ///
    /// # Errors
    /// `NotFound` for a foreign task; `Invalid` if it is not clear which run is meant, or it changed nothing that could
    /// be shown.
    pub async fn changes_of(self, owner: &Principal, id: &TaskId, agent: Option<&str>) -> Result<Changes, TaskError> {
        let run = self.meant_run(owner, id, RunChoice::done(agent, "diff TASK")).await?;
        run.changes(id)
    }

    /// What a run changed, as a patch.
    ///
    /// # Errors
    /// `NotFound` for a foreign task; it is not clear which run is meant; the run has no patch.
    pub async fn patch_of(self, owner: &Principal, id: &TaskId, agent: Option<&str>) -> Result<RunPatch, TaskError> {
        let run = self.meant_run(owner, id, RunChoice::done(agent, "diff TASK")).await?;
        let changes = run.changes(id)?;
        let no_patch = |message| StoreError::Refused { code: ErrorCode::ResourceNotFound, message };
        let patch = self.host()?.diff(&changes).await.map_err(no_patch)?;
        Ok(RunPatch { agent: run.agent().to_owned(), changes, patch })
    }

    /// The run that is meant: the only one, that of the agent that was named, or the only one that is done.
    ///
    /// # Errors
    /// `NotFound` for a foreign task; `Invalid` if it is not clear, with a command for each run.
    pub(crate) async fn meant_run(
        self,
        owner: &Principal,
        id: &TaskId,
        wish: RunChoice<'_>,
    ) -> Result<MeantRun, TaskError> {
        let task = Tasks::of(self.runtime).read(owner, id).await?;
        let mut runs = self.runs_of(id).await?;
        let names: Vec<String> = runs.iter().map(|run| run.agent().to_owned()).collect();
        if let Some(agent) = wish.agent {
            return of_agent(runs, agent).ok_or_else(|| no_run_of(id, agent, &names));
        }
        if runs.len() > 1 {
            let is_meant = |run: &MeantRun| match wish.prefers {
                Prefers::Done => run.job.state == JobState::Completed && run.has_changes(),
                Prefers::Applied => {
                    task.review_of(&run.job.id).is_some_and(|review| review.state == ReviewState::Applied)
                }
                Prefers::Nothing => false,
            };
            let unclear = || {
                let each: Vec<String> = runs
                    .iter()
                    .map(|run| format!("matsu {} --agent {} ({})", wish.command(id), run.agent(), run.check_state()))
                    .collect();
                TaskError::Invalid(format!("task {id} has runs of several agents; name one: {}", each.join("; ")))
            };
            let mut meant = (0..runs.len()).filter(|at| is_meant(&runs[*at]));
            return match (meant.next(), meant.next()) {
                (Some(only), None) => Ok(runs.swap_remove(only)),
                _ => Err(unclear()),
            };
        }
        runs.pop().ok_or_else(|| no_run(id))
    }

    /// The runs of a task, in the order of its agents. One that a pause has ended is shown by the one that went on.
    async fn runs_of(self, id: &TaskId) -> Result<Vec<MeantRun>, TaskError> {
        let filter = JobFilter { task_id: Some(id.clone()), ..JobFilter::default() };
        let jobs = self
            .runtime
            .store()
            .run(ListJobs { filter: filter.clone(), page: PageRequest::new(None, Some(u32::MAX)) })
            .await?
            .items;
        let replaced: Vec<String> = jobs.iter().filter_map(|job| job.cause_id.clone()).collect();
        let last = jobs.into_iter().filter(|job| !replaced.iter().any(|cause| cause == job.id.as_str()));
        Ok(last.filter_map(MeantRun::of).collect())
    }

    /// The last run of a task, or that of one agent.
    pub(super) async fn run_of(self, id: &TaskId, agent: Option<&str>) -> Result<(Job, RunInput), TaskError> {
        let mut runs = self.runs_of(id).await?;
        let names: Vec<String> = runs.iter().map(|run| run.agent().to_owned()).collect();
        let found = match agent {
            Some(agent) => of_agent(runs, agent).ok_or_else(|| no_run_of(id, agent, &names))?,
            None => runs.pop().ok_or_else(|| no_run(id))?,
        };
        Ok((found.job, found.input))
    }
}

/// The run that was given to this agent, else one that it has finished for another.
fn of_agent(mut runs: Vec<MeantRun>, agent: &str) -> Option<MeantRun> {
    let given = runs.iter().rposition(|run| run.agent() == agent);
    let at = given.or_else(|| runs.iter().rposition(|run| run.output.agent == agent))?;
    Some(runs.swap_remove(at))
}

fn no_run(id: &TaskId) -> TaskError {
    TaskError::Invalid(format!("task {id} is not a run of an agent"))
}

fn no_run_of(id: &TaskId, agent: &str, names: &[String]) -> TaskError {
    match names {
        [] => no_run(id),
        names => {
            let names = names.join(", ");
            TaskError::Invalid(format!("task {id} has no run of agent {agent}; its runs are of: {names}"))
        }
    }
}

/// Which run of a task is meant.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunChoice<'a> {
    /// Of several runs: which agent's.
    pub agent: Option<&'a str>,
    /// Which one is meant if none is named.
    pub prefers: Prefers,
    /// What a person types, with `TASK` for the id; shown where several runs could be meant.
    pub command: &'a str,
}

/// Of several runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Prefers {
    /// The only one that is done: with a check, the only one that passed it.
    Done,
    /// The only one whose changes are applied.
    Applied,
    /// None: it must be named.
    Nothing,
}

impl<'a> RunChoice<'a> {
    /// The run that is done.
    #[must_use]
    pub const fn done(agent: Option<&'a str>, command: &'a str) -> Self {
        Self { agent, prefers: Prefers::Done, command }
    }

    fn command(self, id: &TaskId) -> String {
        self.command.replace("TASK", id.as_str())
    }
}

/// A run that is looked at.
pub(crate) struct MeantRun {
    pub job: Job,
    pub input: RunInput,
    pub output: RunOutput,
}

impl MeantRun {
    fn of(job: Job) -> Option<Self> {
        let input: RunInput = serde_json::from_str(&job.input_json).ok()?;
        let output = job.output_json.as_deref().and_then(|text| serde_json::from_str(text).ok());
        Some(Self { job, input, output: output.unwrap_or_default() })
    }

    /// The agent it was given to: its name is what a person calls the run by, whichever agent has finished it.
    pub(crate) fn agent(&self) -> &str {
        &self.input.agent
    }

    /// What it has changed, if that can be shown.
    pub(crate) fn changes(&self, id: &TaskId) -> Result<Changes, TaskError> {
        self.output.changes.clone().ok_or_else(|| {
            TaskError::Invalid(match &self.output.left_work {
                Some(left) => format!("task {id} has no patch: {}. Its files are in {}", left.why, left.folder),
                None => format!("task {id} has no patch: it did not write in a worktree, or has not ended"),
            })
        })
    }

    fn has_changes(&self) -> bool {
        self.output.changes.as_ref().is_some_and(|changes| changes.base != changes.head)
    }

    fn check_state(&self) -> String {
        match self.output.receipt.as_ref() {
            Some(receipt) if receipt.passed => "passed its check".to_owned(),
            Some(_) => "failed its check".to_owned(),
            None => self.job.state.to_string(),
        }
    }
}
