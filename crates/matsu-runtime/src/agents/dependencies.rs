//! Runs that begin later: at a time, or after other tasks. The store holds their jobs until then; here is decided
//! whether they begin, and with what.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use matsu_core::error_code::ErrorCode;
use matsu_core::id::TaskId;
use matsu_core::job::{Job, JobEnd, JobKind};
use matsu_core::limits::{DEPENDENCIES_MAX, DEPENDENCIES_TEXT_BYTES_MAX, TICK};
use matsu_core::page::PageRequest;
use matsu_core::ports::store::{
    JobFilter, ListJobs, OutputFrom, OutputRange, OutputStream, ReadOutput, ReadTasks, StoreError,
};
use matsu_core::principal::Principal;
use matsu_core::run::{Changes, RunInput, RunOutput};
use matsu_core::task::{Task, TaskKind, TaskStatus};

use crate::runtime::Runtime;
use crate::runtime::context::JobContext;
use crate::tasks::{TaskError, Tasks};

use super::run_body::store_unavailable;

use super::Agents;

/// Of one result.
const EACH_BYTES_MAX: usize = 8 * 1024;

/// Tasks that are looked at to find everything that comes before one.
const CLOSURE_MAX: usize = 500;

impl Agents<'_> {
    /// Refuses tasks that cannot be waited for: unknown ones, and those that wait for the caller themselves.
    pub(super) async fn check_dependencies(
        self,
        owner: &Principal,
        ids: &[TaskId],
        parent: Option<&TaskId>,
    ) -> Result<(), TaskError> {
        if ids.len() > DEPENDENCIES_MAX {
            let message = format!("depends_on names {} tasks; at most {DEPENDENCIES_MAX} are allowed", ids.len());
            return Err(TaskError::LimitExceeded(message));
        }
        for id in ids {
            Tasks::of(self.runtime).read(owner, id).await?;
        }
        let Some(parent) = parent.filter(|_| !ids.is_empty()) else { return Ok(()) };
        let before = self.all_before(ids).await?;
        let mut above = Some(parent.clone());
        while let Some(id) = above.take() {
            if before.contains_key(&id) {
                return Err(TaskError::Invalid(format!(
                    "depends_on makes a cycle: task {id} ends only after this task, so this task cannot wait for it. \
                     Leave out {id} and the tasks that wait for it"
                )));
            }
            above = self.runtime.store().run(ReadTasks(vec![id])).await?.pop().and_then(|task| task.parent_id);
        }
        Ok(())
    }

    /// These tasks and everything that they waited for. What was started first comes first.
    pub(crate) async fn all_before(self, ids: &[TaskId]) -> Result<BTreeMap<TaskId, Task>, StoreError> {
        let mut found = BTreeMap::new();
        let mut next = ids.to_vec();
        while !next.is_empty() && found.len() < CLOSURE_MAX {
            let tasks = self.runtime.store().run(ReadTasks(next.clone())).await?;
            next = tasks.iter().flat_map(Task::depends_on).filter(|id| !found.contains_key(id)).collect();
            next.sort();
            next.dedup();
            found.extend(tasks.into_iter().map(|task| (task.id.clone(), task)));
        }
        Ok(found)
    }
}

/// Whether a run that has not begun may begin.
///
/// # Errors
/// What becomes of its job instead.
pub(super) async fn may_begin(cx: &JobContext, input: &RunInput) -> Result<(), JobEnd> {
    let now = cx.runtime().clock().now();
    if let Some(at) = input.not_before.map(matsu_core::clock::Timestamp::from_millis)
        && at > now
    {
        // Further away than a job can be put off at once: it is looked at in between.
        return Err(JobEnd::Requeue { run_at: Some(at) });
    }
    let ids = &input.depends_on;
    let tasks = cx.runtime().store().run(ReadTasks(ids.to_vec())).await.map_err(|error| store_unavailable(&error))?;
    for id in ids {
        let why = match tasks.iter().find(|task| task.id == *id).map(|task| task.status) {
            Some(TaskStatus::Completed | TaskStatus::Finished) => continue,
            Some(status @ (TaskStatus::Failed | TaskStatus::Cancelled)) => format!("is {status}"),
            // The store lets no such job go; if it ever does, the run still waits.
            Some(_) => return Err(JobEnd::Requeue { run_at: Some(now.plus(TICK)) }),
            None => "has expired, and its result with it".to_owned(),
        };
        let message = format!(
            "task {id}, which this one depends on, {why}. Start the work again with a depends_on that names completed \
             tasks"
        );
        return Err(JobEnd::failed(ErrorCode::DependencyFailed, message));
    }
    Ok(())
}

/// What the tasks before a run came to, in words behind its message; and what they changed, in the order in which it
/// is put together.
pub(super) async fn take_results(cx: &JobContext, input: &mut RunInput) -> Result<Vec<Changes>, JobEnd> {
    if input.depends_on.is_empty() {
        return Ok(Vec::new());
    }
    let read = async {
        let runtime = cx.runtime();
        let before = Agents::of(runtime).all_before(&input.depends_on).await?;
        let mut onto = Vec::new();
        let mut text = String::new();
        let bytes_max = EACH_BYTES_MAX.min(DEPENDENCIES_TEXT_BYTES_MAX / input.depends_on.len());
        for (id, task) in &before {
            let runs = runs_of(runtime, id).await?;
            let is_named = input.depends_on.contains(id);
            if is_named && task.kind == TaskKind::Research {
                let _ = write!(text, "\n[{id}] Research: {}. Read it with get_materials.\n", task.title);
            }
            for (job, output) in &runs {
                if is_named {
                    let result = result(runtime, job, bytes_max).await?;
                    let _ = write!(text, "\n[{id}] {}: {}\n{}\n", output.agent, task.title, result.trim_end());
                    text.push_str(&changed(output, runs.len() == 1));
                }
            }
            // Several agents that did the same are alternatives; which one is wanted is not known.
            if let [(_, RunOutput { changes: Some(changes), .. })] = runs.as_slice()
                && changes.base != changes.head
            {
                onto.push(changes.clone());
            }
        }
        Ok::<_, StoreError>((onto, text))
    };
    let (onto, text) = read.await.map_err(|error| store_unavailable(&error))?;
    let _ =
        write!(input.message, "\n\nThis task was started after others, which are completed. Their results:\n{text}");
    Ok(onto)
}

async fn runs_of(runtime: &Runtime, id: &TaskId) -> Result<Vec<(Job, RunOutput)>, StoreError> {
    let filter = JobFilter { task_id: Some(id.clone()), ..JobFilter::default() };
    let jobs = runtime
        .store()
        .run(ListJobs { filter: filter.clone(), page: PageRequest::new(None, Some(u32::MAX)) })
        .await?
        .items;
    let runs = jobs.into_iter().filter(|job| job.kind == JobKind::AgentRun);
    Ok(runs
        .filter_map(|job| Some((serde_json::from_str(job.output_json.as_deref()?).ok()?, job)).map(|(o, j)| (j, o)))
        .collect())
}

async fn result(runtime: &Runtime, job: &Job, bytes_max: usize) -> Result<String, StoreError> {
    let wish = OutputRange { stream: OutputStream::Result, from: OutputFrom::Byte(0), bytes_max };
    let slice = runtime.store().run(ReadOutput { job: job.id.clone(), wish }).await?;
    let left = slice.total.saturating_sub(slice.end);
    Ok(if left == 0 { slice.marked() } else { format!("{}\n[… {left} more bytes]", slice.marked()) })
}

fn changed(output: &RunOutput, is_only: bool) -> String {
    let Some(changes) = output.changes.as_ref().filter(|changes| changes.base != changes.head) else {
        return String::new();
    };
    let Changes { base, head, files, branch, .. } = changes;
    let place = if is_only { "" } else { "not " };
    format!(
        "[It changed {files} files on {branch}: git diff {base} {head}. If you work in a separate tree, these \
         changes are {place}in it.]\n"
    )
}
