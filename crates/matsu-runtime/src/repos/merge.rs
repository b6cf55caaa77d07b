//! Starting a merge: the changes of several tasks into one branch, as a task of its own.

use serde_json::json;

use matsu_core::id::{JobId, TaskId};
use matsu_core::job::{JobKind, NewJob, Priority};
use matsu_core::limits::{MERGE_FIXES_MAX, MERGE_TASKS_MAX};
use matsu_core::merge::{MergeInput, MergeProgress};
use matsu_core::principal::Principal;
use matsu_core::receipt::Check;
use matsu_core::run::{Changes, RunInput};
use matsu_core::slot::Slot;
use matsu_core::task::{NewTask, ReviewState, Task, TaskKind};

use super::Repos;
use crate::agents::{Agents, RunChoice};
use crate::tasks::{TaskError, Tasks};

/// What a caller wants.
#[derive(Clone, Debug)]
pub struct MergeWish {
    pub tasks: Vec<TaskId>,
    /// Absent: a new branch.
    pub into: Option<String>,
    /// Absent: the check of the tasks, if they have one.
    pub check: Option<Check>,
    /// How often each task goes back to its agent.
    pub fixes: u32,
}

fn no(why: &str) -> TaskError {
    TaskError::Invalid(format!("nothing was merged: {why}"))
}

impl Repos<'_> {
    /// Queues a merge.
    ///
    /// # Errors
    /// `NotFound` for a foreign task; `Invalid` for tasks without changes or of several repositories, and for a branch
    /// that cannot be moved.
    pub async fn start_merge(self, owner: &Principal, wish: MergeWish) -> Result<Task, TaskError> {
        let MergeWish { mut tasks, into, check, fixes } = wish;
        // A task can only depend on older ones, so this is also the order of dependencies.
        tasks.sort();
        tasks.dedup();
        if tasks.is_empty() || tasks.len() > MERGE_TASKS_MAX {
            return Err(no(&format!("name 1 to {MERGE_TASKS_MAX} tasks, got {}", tasks.len())));
        }
        if fixes > MERGE_FIXES_MAX {
            return Err(no(&format!("fix must be at most {MERGE_FIXES_MAX}, got {fixes}")));
        }
        let mut found = Vec::new();
        for id in &tasks {
            found.push(self.mergeable(owner, id).await?);
        }
        let repository = found[0].0.repository.clone();
        if let Some((other, _)) = found.iter().find(|(changes, _)| changes.repository != repository) {
            return Err(no(&format!("the tasks are of two repositories, {repository} and {}", other.repository)));
        }
        let check = match check {
            Some(check) => Some(check),
            None => common_check(&found)?,
        };
        let now = self.runtime.clock().now();
        let id = TaskId::mint(now);
        let into = into.unwrap_or_else(|| {
            let text = id.as_str();
            format!("matsu/merge-{}", text[text.len().saturating_sub(6)..].to_lowercase())
        });
        let host = Agents::of(self.runtime).host()?;
        host.merge_target(&repository, &into).await.map_err(|why| no(&why))?;
        let title = format!("merge of {} tasks into {into}", tasks.len());
        let config = json!({ "merges": tasks, "into": into, "working_directory": repository }).to_string();
        let input = MergeInput { repository, into, tasks, check, fixes };
        let job = NewJob {
            id: JobId::mint(now),
            kind: JobKind::Merge,
            priority: Priority::Medium,
            slot: Slot::Cpu,
            input_json: serde_json::to_string(&input).map_err(|error| no(&error.to_string()))?,
            cause_id: None,
            run_at: now,
            dedupe_key: None,
        };
        let task = NewTask {
            id,
            kind: TaskKind::Agent,
            owner: owner.clone(),
            project_id: None,
            title,
            config_json: config,
            budget: Vec::new(),
            assignee: None,
            parent_id: None,
            depends_on: Vec::new(),
            jobs: vec![job],
            idempotency: None,
            created_at: now,
        };
        Ok(Tasks::of(self.runtime).submit_run(task, None).await?.task)
    }

    /// Where a merge stands.
    ///
    /// # Errors
    /// `NotFound` for a foreign task; `Invalid` for one that is no merge.
    pub async fn merge_of(self, owner: &Principal, id: &TaskId) -> Result<(Task, MergeProgress), TaskError> {
        let task = Tasks::of(self.runtime).read(owner, id).await?;
        let job = Tasks::of(self.runtime).jobs_of(id).await?.into_iter().find(|job| job.kind == JobKind::Merge);
        let job = job.ok_or_else(|| TaskError::Invalid(format!("task {id} is not a merge")))?;
        let text = job.output_json.or(job.checkpoint_json).unwrap_or_default();
        Ok((task, serde_json::from_str(&text).unwrap_or_default()))
    }

    async fn mergeable(self, owner: &Principal, id: &TaskId) -> Result<(Changes, RunInput), TaskError> {
        let task = Tasks::of(self.runtime).read_own(owner, id).await?;
        if !task.status.is_terminal() {
            return Err(no(&format!("task {id} is {}; wait until it has ended", task.status)));
        }
        let run = Agents::of(self.runtime).meant_run(owner, id, RunChoice::done(None, "apply TASK")).await?;
        let changes = run.changes(id)?;
        let (job, input) = (run.job, run.input);
        if changes.base == changes.head {
            return Err(no(&format!("the run of task {id} changed no file; leave it out")));
        }
        match task.review_of(&job.id) {
            Some(review) if review.state == ReviewState::SentBack => {
                let next = review.next_task.as_ref().map(|next| format!("; name {next} instead")).unwrap_or_default();
                Err(no(&format!("task {id} was sent back{next}")))
            }
            Some(review) if review.state == ReviewState::Discarded => {
                Err(no(&format!("the changes of task {id} were discarded; leave it out")))
            }
            _ => Ok((changes, input)),
        }
    }
}

/// The one check that the tasks have. Without one nothing is checked.
fn common_check(found: &[(Changes, RunInput)]) -> Result<Option<Check>, TaskError> {
    let mut checks: Vec<&Check> = Vec::new();
    for check in found.iter().filter_map(|(_, input)| input.check.as_ref()) {
        if !checks.contains(&check) {
            checks.push(check);
        }
    }
    match checks.as_slice() {
        [] => Ok(None),
        [check] => Ok(Some((*check).clone())),
        _ => Err(no("the tasks have different checks; name one with --check")),
    }
}
