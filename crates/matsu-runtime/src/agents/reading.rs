//! Reading runs: what they said, from anywhere, and what they changed.

use matsu_core::id::TaskId;
use matsu_core::job::Job;
use matsu_core::page::PageRequest;
use matsu_core::ports::store::{JobFilter, OutputFrom, OutputRange, OutputSlice, OutputStream};
use matsu_core::principal::Principal;
use matsu_core::run::{Changes, RunInput, RunOutput};
use matsu_core::task::Task;

use crate::runtime::Runtime;
use crate::tasks::TaskError;

/// A part of what a run said.
#[derive(Debug)]
pub struct RunLog {
    pub task: Task,
    pub agent: String,
    /// The part is one of the result: the run keeps no log of its own.
    pub is_result: bool,
    pub slice: OutputSlice,
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

impl Runtime {
    /// What a run was doing, or its result where it keeps no other log; from this byte on.
    ///
    /// # Errors
    /// `NotFound` for a foreign task; `Invalid` if it has no such run.
    pub async fn run_log(&self, owner: &Principal, id: &TaskId, wish: LogWish<'_>) -> Result<RunLog, TaskError> {
        let task = self.read(owner, id).await?;
        let (job, input) = self.run_of(id, wish.agent).await?;
        let range = |stream| OutputRange { stream, from: wish.from, bytes_max: wish.bytes_max };
        if !wish.result_only {
            let slice = self.store().read_output(&job.id, range(OutputStream::Log)).await?;
            if slice.total > 0 {
                return Ok(RunLog { task, agent: input.agent, is_result: false, slice });
            }
        }
        let slice = self.store().read_output(&job.id, range(OutputStream::Result)).await?;
        Ok(RunLog { task, agent: input.agent, is_result: true, slice })
    }

    /// What a run in a worktree has changed.
    ///
    /// # Errors
    /// `NotFound` for a foreign task; `Invalid` if the run changed nothing that could be shown.
    pub async fn changes_of(&self, owner: &Principal, id: &TaskId, agent: Option<&str>) -> Result<Changes, TaskError> {
        self.read(owner, id).await?;
        let (job, _) = self.run_of(id, agent).await?;
        let output = job.output_json.as_deref().and_then(|text| serde_json::from_str::<RunOutput>(text).ok());
        let output = output.unwrap_or_default();
        output.changes.ok_or_else(|| {
            TaskError::Invalid(match output.left_work {
                Some(left) => format!("task {id} has no patch: {}. Its files are in {}", left.why, left.folder),
                None => format!("task {id} has no patch: it did not write in a tree of its own, or has not ended"),
            })
        })
    }

    /// The last run of a task, or that of one agent.
    pub(super) async fn run_of(&self, id: &TaskId, agent: Option<&str>) -> Result<(Job, RunInput), TaskError> {
        let filter = JobFilter { task_id: Some(id.clone()), ..JobFilter::default() };
        let jobs = self.store().list_jobs(&filter, &PageRequest::new(None, Some(u32::MAX))).await?.items;
        let runs =
            jobs.into_iter().filter_map(|job| serde_json::from_str(&job.input_json).ok().map(|input| (job, input)));
        let mut runs = runs.filter(|(_, input): &(Job, RunInput)| agent.is_none_or(|agent| input.agent == agent));
        runs.next_back().ok_or_else(|| TaskError::Invalid(format!("task {id} is not a run of an agent")))
    }
}
