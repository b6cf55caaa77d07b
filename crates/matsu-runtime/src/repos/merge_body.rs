//! The body of a merge. Each task's changes are merged with what has passed so far, checked as a task of its own, and only
//! then the branch moves. What conflicts or fails goes back to its agent, if that is wished, and the others go on.
//!
//! Every step is in the checkpoint before the next begins, and checks and agents are tasks of their own: a process that
//! ends in the middle leaves a job that the next one goes on with.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::json;

use matsu_core::change::Topic;
use matsu_core::error_code::ErrorCode;
use matsu_core::id::TaskId;
use matsu_core::job::end::clip;
use matsu_core::job::{Job, JobEnd, JobKind, Retry};
use matsu_core::limits::SAFETY_READ_EVERY;
use matsu_core::merge::{MergeEntry, MergeInput, MergeOrder, MergeProgress, MergeState, MergeStep};
use matsu_core::ports::agent::AgentHost;
use matsu_core::ports::store::ReadTasks;
use matsu_core::principal::Principal;
use matsu_core::receipt::Check;
use matsu_core::run::{Changes, RunOutput};
use matsu_core::task::{IdempotencyKey, ReviewState, Task, TaskStatus};

use crate::agents::{Agents, store_unavailable};
use crate::runtime::JobBody;
use crate::runtime::context::JobContext;
use crate::stop_signal::StopLevel;
use crate::tasks::{Resolves, Tasks};

use super::Repos;
use super::receipts::CheckAgain;

/// Characters of a reason.
const WHY_CHARS_MAX: usize = 500;

/// Files of a conflict that a reason names.
const NAMES_SHOWN: usize = 10;

/// Merges on a host.
pub struct MergeRuns {
    host: Arc<dyn AgentHost>,
}

impl MergeRuns {
    #[must_use]
    pub fn new(host: Arc<dyn AgentHost>) -> Self {
        Self { host }
    }
}

#[async_trait]
impl JobBody for MergeRuns {
    fn kind(&self) -> JobKind {
        JobKind::Merge
    }

    fn run_seconds_max(&self, _job: &Job) -> Option<u32> {
        None
    }

    async fn run(&self, cx: JobContext) -> JobEnd {
        let merging = Merging::begin(cx, Arc::clone(&self.host)).await;
        match merging {
            Ok(mut merging) => match merging.until_all_are_done().await {
                Ok(()) => merging.ended(),
                Err(end) => end,
            },
            Err(end) => end,
        }
    }
}

struct Merging {
    cx: JobContext,
    host: Arc<dyn AgentHost>,
    task: TaskId,
    owner: Principal,
    input: MergeInput,
    progress: MergeProgress,
}

impl Merging {
    async fn begin(cx: JobContext, host: Arc<dyn AgentHost>) -> Result<Self, JobEnd> {
        let broken =
            |why: &str| JobEnd::failed(ErrorCode::InvalidParams, format!("the stored merge cannot be read: {why}"));
        let input: MergeInput = serde_json::from_str(&cx.job.input_json).map_err(|error| broken(&error.to_string()))?;
        let task = cx.job.task_id.clone().ok_or_else(|| broken("it belongs to no task"))?;
        let store = cx.runtime().store();
        let known = store.run(ReadTasks(vec![task.clone()])).await.map_err(|error| store_unavailable(&error))?.pop();
        let owner = known.ok_or_else(|| broken("its task no longer exists"))?.owner;
        let progress = cx.job.checkpoint_json.as_deref().and_then(|text| serde_json::from_str(text).ok());
        let progress = match progress {
            Some(progress) => progress,
            None => {
                let tasks =
                    store.run(ReadTasks(input.tasks.clone())).await.map_err(|error| store_unavailable(&error))?;
                let target = host.merge_target(&input.repository, &input.into).await;
                let target = target.map_err(|why| JobEnd::failed(ErrorCode::MergeIncomplete, why))?;
                MergeProgress {
                    branch: input.into.clone(),
                    repository: input.repository.clone(),
                    base: target.commit.clone(),
                    head: target.commit,
                    has_branch: target.exists,
                    check: input.check.as_ref().map(|check| check.command.to_string()),
                    tasks: input.tasks.iter().map(|id| waiting(id, &tasks)).collect(),
                }
            }
        };
        Ok(Self { cx, host, task, owner, input, progress })
    }

    async fn until_all_are_done(&mut self) -> Result<(), JobEnd> {
        loop {
            if self.cx.stop.level() >= StopLevel::Yield {
                return Err(self.cx.stopped());
            }
            let is_ready = |entry: &MergeEntry| match entry.state {
                MergeState::Waiting => !entry.deferred,
                state => state == MergeState::Checking,
            };
            match self.progress.tasks.iter().position(is_ready) {
                Some(at) if self.progress.tasks[at].state == MergeState::Waiting => self.merge(at).await,
                Some(at) => self.check(at).await?,
                None if self.is_any_sent_back() => self.take_back().await?,
                None => return Ok(()),
            }
            self.save().await?;
        }
    }

    fn is_any_sent_back(&self) -> bool {
        self.progress.tasks.iter().any(|entry| entry.state == MergeState::SentBack)
    }

    async fn save(&self) -> Result<(), JobEnd> {
        let progress = json!(self.progress);
        self.cx.checkpoint(&progress).await.map_err(|error| store_unavailable(&error))?;
        self.cx.partial_output(&progress).await.map_err(|error| store_unavailable(&error))?;
        let (merged, all) = (self.progress.merged(), self.progress.tasks.len());
        self.cx.progress(&format!("{merged} of {all} tasks are merged into {}", self.input.into)).await;
        Ok(())
    }

    /// Merges the changes of one task with what has passed.
    async fn merge(&mut self, at: usize) {
        let changes = match self.changes(at).await {
            Ok(changes) => changes,
            Err(why) => {
                self.give_up(at, MergeState::Failed, &why);
                return;
            }
        };
        let entry = &self.progress.tasks[at];
        let message = format!("Merge {}: {}\n\nTask: {}", changes.branch, entry.title, entry.from);
        let (task_id, tip) = (&self.task, self.progress.head.as_str());
        let order =
            MergeOrder { task_id, tip, changes: &changes, resolves: entry.resolves.as_ref(), message: &message };
        match self.host.merge(order).await {
            Ok(MergeStep::Commit(commit)) => {
                let entry = &mut self.progress.tasks[at];
                (entry.state, entry.commit, entry.waits_for) = (MergeState::Checking, Some(commit), None);
            }
            Ok(MergeStep::Contained) => self.progress.tasks[at].state = MergeState::Merged,
            // Sent back now, it would conflict again with what comes of the other.
            Ok(MergeStep::Conflict(_)) if self.is_any_sent_back() => self.progress.tasks[at].deferred = true,
            Ok(MergeStep::Conflict(files)) => {
                let shown = files.iter().take(NAMES_SHOWN).cloned().collect::<Vec<_>>().join(", ");
                let why = format!("other changes touch the same lines of {shown}");
                let comment = conflict_words(&self.progress.head, &files);
                self.send_back(at, MergeState::Conflict, &why, &comment, changes).await;
            }
            Ok(MergeStep::Unresolved(files)) => {
                let shown = files.iter().take(NAMES_SHOWN).cloned().collect::<Vec<_>>().join(", ");
                let why = match files.as_slice() {
                    [] => "its agent changed nothing when the conflict was sent back".to_owned(),
                    _ => format!("its agent left conflict markers in {shown}"),
                };
                if changes.base == changes.head {
                    // There is nothing of its own that could be merged anew.
                    self.give_up(at, MergeState::Conflict, &why);
                    return;
                }
                let comment = conflict_words(&self.progress.head, &files);
                self.send_back(at, MergeState::Conflict, &why, &comment, changes).await;
            }
            Err(why) => self.give_up(at, MergeState::Failed, &why),
        }
    }

    /// Checks the merged commit, and moves the branch if it passes.
    async fn check(&mut self, at: usize) -> Result<(), JobEnd> {
        let commit = self.progress.tasks[at].commit.clone().unwrap_or_default();
        let Some(check) = self.input.check.clone() else { return self.take(at, commit).await };
        let Some(id) = self.progress.tasks[at].waits_for.clone() else {
            match self.start_check(at, &commit, &check).await {
                Ok(id) => self.progress.tasks[at].waits_for = Some(id),
                Err(why) => self.give_up(at, MergeState::Failed, &format!("it could not be checked: {why}")),
            }
            return Ok(());
        };
        let over = self.any_over(&[id]).await?;
        let Some(task) = over.first() else {
            self.give_up(at, MergeState::Failed, "the task that checked it no longer exists");
            return Ok(());
        };
        if task.status == TaskStatus::Completed {
            return self.take(at, commit).await;
        }
        let output = self.output(&task.id).await;
        let why = output.receipt.as_ref().and_then(|receipt| receipt.why.clone());
        let why = why.unwrap_or_else(|| format!("the check is {}", task.status));
        let comment = check_words(&self.progress.head, &check, &why, &output.check_output);
        match self.changes(at).await {
            Ok(changes) => self.send_back(at, MergeState::CheckFailed, &why, &comment, changes).await,
            Err(error) => self.give_up(at, MergeState::Failed, &error),
        }
        Ok(())
    }

    async fn start_check(&self, at: usize, commit: &str, check: &Check) -> Result<TaskId, String> {
        let entry = &self.progress.tasks[at];
        let changes = self.changes(at).await?;
        let merged = Changes { base: self.progress.head.clone(), head: commit.to_owned(), ..changes };
        // The same again after a restart is the same task.
        let key = IdempotencyKey {
            principal: self.owner.clone(),
            tool: "merge".to_owned(),
            key: format!("{} {commit}", self.task),
            body_hash: String::new(),
        };
        let again = CheckAgain {
            title: format!("check of {} merged into {}", entry.task_id, self.input.into),
            of: entry.from.clone(),
            changes: merged,
            check: check.clone(),
            parent: Some(self.task.clone()),
            idempotency: Some(key),
        };
        let started = Repos::of(self.cx.runtime()).check_again(&self.owner, again).await;
        started.map(|started| started.task.id).map_err(|error| error.to_string())
    }

    /// The branch gets a commit that passed.
    async fn take(&mut self, at: usize, commit: String) -> Result<(), JobEnd> {
        let from = self.progress.has_branch.then_some(self.progress.head.as_str());
        let moved = self.host.move_branch(&self.input.repository, &self.input.into, from, &commit).await;
        if let Err(why) = moved {
            let output_json = serde_json::to_string(&self.progress).ok();
            let code = ErrorCode::MergeIncomplete.to_string();
            return Err(JobEnd::Failed { code, message: why, retry: Retry::Never, output_json });
        }
        (self.progress.head, self.progress.has_branch) = (commit, true);
        let entry = &mut self.progress.tasks[at];
        (entry.state, entry.why, entry.waits_for) = (MergeState::Merged, None, None);
        Ok(())
    }

    fn give_up(&mut self, at: usize, state: MergeState, why: &str) {
        let entry = &mut self.progress.tasks[at];
        (entry.state, entry.why, entry.waits_for) = (state, Some(clip(why, WHY_CHARS_MAX)), None);
    }

    /// Its agent works on it in the same conversation, while that is allowed: on what is merged so far, with its own
    /// changes merged into that. So the work of the others is there, and stays unless the agent changes it.
    async fn send_back(&mut self, at: usize, state: MergeState, why: &str, comment: &str, changes: Changes) {
        self.give_up(at, state, why);
        let entry = &self.progress.tasks[at];
        if entry.sent_back >= self.input.fixes {
            return;
        }
        let (on, merge) = (Some(self.progress.head.clone()), Some(self.task.clone()));
        let resolves = Resolves { changes: changes.clone(), on, merge };
        let sent = self.sent(&entry.from.clone(), comment, resolves).await;
        match sent {
            Ok(next) => {
                let entry = &mut self.progress.tasks[at];
                entry.sent_back += 1;
                entry.resolves = (state == MergeState::Conflict).then_some(changes);
                (entry.state, entry.waits_for) = (MergeState::SentBack, Some(next));
            }
            Err(error) => self.give_up(at, state, &format!("{why}; it was not sent back: {error}")),
        }
    }

    /// The task in which its agent works on. One that was started before this process came is taken.
    async fn sent(&self, from: &TaskId, comment: &str, resolves: Resolves) -> Result<TaskId, String> {
        let runtime = self.cx.runtime();
        let task = Tasks::of(runtime).read_own(&self.owner, from).await.map_err(|error| error.to_string())?;
        let before = task.reviews.iter().find(|review| review.state == ReviewState::SentBack);
        if let Some(next) = before.and_then(|review| review.next_task.clone()) {
            return Ok(next);
        }
        let sent = Repos::of(runtime).send_changes_back_with(&self.owner, from, comment, Some(resolves)).await;
        sent.map(|task| task.id).map_err(|error| error.to_string())
    }

    /// Waits for the next agent that has ended, and merges what it left.
    async fn take_back(&mut self) -> Result<(), JobEnd> {
        let waits = |entry: &MergeEntry| entry.waits_for.clone().filter(|_| entry.state == MergeState::SentBack);
        let ids: Vec<TaskId> = self.progress.tasks.iter().filter_map(waits).collect();
        let over = self.any_over(&ids).await?;
        self.progress.tasks.iter_mut().for_each(|entry| entry.deferred = false);
        if over.is_empty() {
            for at in 0..self.progress.tasks.len() {
                if self.progress.tasks[at].state == MergeState::SentBack {
                    self.give_up(at, MergeState::Failed, "the task in which its agent worked no longer exists");
                }
            }
        }
        for task in over {
            let at = self.progress.tasks.iter().position(|entry| waits(entry).as_ref() == Some(&task.id));
            let Some(at) = at else { continue };
            // What it left in conflict is looked at again, and named.
            if task.status == TaskStatus::Completed || self.has_left_conflicts(&task.id).await {
                let entry = &mut self.progress.tasks[at];
                (entry.state, entry.from, entry.waits_for) = (MergeState::Waiting, task.id.clone(), None);
            } else {
                self.give_up(
                    at,
                    MergeState::Failed,
                    &format!("its agent could not fix it: {} is {}", task.id, task.status),
                );
            }
        }
        Ok(())
    }

    /// Those of these tasks that are over, as soon as there is one; none if they are gone.
    async fn any_over(&self, ids: &[TaskId]) -> Result<Vec<Task>, JobEnd> {
        let (cx, runtime) = (&self.cx, self.cx.runtime());
        let topics: Vec<Topic> = ids.iter().map(Topic::task).collect();
        let wait = async {
            // Before the first look, or an end in between would be slept through.
            let subscription = runtime.hub().subscribe(&topics);
            loop {
                if let Ok(tasks) = runtime.store().run(ReadTasks(ids.to_vec())).await {
                    let is_gone = tasks.is_empty();
                    let over: Vec<Task> = tasks.into_iter().filter(|task| task.status.is_terminal()).collect();
                    if is_gone || !over.is_empty() {
                        return Some(over);
                    }
                }
                tokio::select! {
                    biased;
                    _ = cx.stop.at_least(StopLevel::Yield) => return None,
                    () = subscription.woken() => {}
                    () = runtime.clock().sleep(SAFETY_READ_EVERY) => {}
                }
            }
        };
        let waited = cx.waiting_for_descendants(wait).await.map_err(|error| store_unavailable(&error))?;
        waited.ok_or_else(|| cx.stopped())
    }

    async fn changes(&self, at: usize) -> Result<Changes, String> {
        let from = &self.progress.tasks[at].from;
        Agents::of(self.cx.runtime()).changes_of(&self.owner, from, None).await.map_err(|error| error.to_string())
    }

    async fn has_left_conflicts(&self, id: &TaskId) -> bool {
        let jobs = Tasks::of(self.cx.runtime()).jobs_of(id).await.unwrap_or_default();
        let code = jobs.into_iter().next_back().and_then(|job| job.error_code);
        code.as_deref() == Some(ErrorCode::ConflictsLeft.as_str())
    }

    async fn output(&self, id: &TaskId) -> RunOutput {
        let jobs = Tasks::of(self.cx.runtime()).jobs_of(id).await.unwrap_or_default();
        let text = jobs.into_iter().next_back().and_then(|job| job.output_json).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_default()
    }

    fn ended(self) -> JobEnd {
        let output_json = serde_json::to_string(&self.progress).unwrap_or_else(|_| "{}".to_owned());
        let (merged, all) = (self.progress.merged(), self.progress.tasks.len());
        if merged == all {
            return JobEnd::Completed { output_json };
        }
        let left = self.progress.tasks.iter().filter(|entry| entry.state != MergeState::Merged);
        let left: Vec<String> = left
            .map(|entry| format!("{} ({}: {})", entry.task_id, entry.state, entry.why.as_deref().unwrap_or("-")))
            .collect();
        let into = &self.input.into;
        let not_merged = clip(&left.join("; "), 700);
        let message = format!(
            "{merged} of {all} tasks are merged into {into}; not merged: {not_merged}; merge them again with matsu merge \
             TASK… --into {into}"
        );
        let code = ErrorCode::MergeIncomplete.to_string();
        JobEnd::Failed { code, message, retry: Retry::Never, output_json: Some(output_json) }
    }
}

fn waiting(id: &TaskId, tasks: &[Task]) -> MergeEntry {
    let title = tasks.iter().find(|task| task.id == *id).map(|task| clip(&task.title, 100)).unwrap_or_default();
    MergeEntry {
        task_id: id.clone(),
        title,
        state: MergeState::Waiting,
        why: None,
        sent_back: 0,
        deferred: false,
        resolves: None,
        from: id.clone(),
        commit: None,
        waits_for: None,
    }
}

/// What the agent of changes that conflict reads. No file: it has changed nothing, and nothing was marked.
fn conflict_words(tip: &str, files: &[String]) -> String {
    let named = match files {
        [] => "a file that one side deleted and the other changed, or that is not text".to_owned(),
        _ => format!("these files:\n\n{}", files.join("\n")),
    };
    format!(
        "Your changes are to be merged with those of other tasks, and conflict with them in {named}\n\nThe other \
         changes are in commit {tip}. Your working tree now has the files of that commit, with your changes merged \
         into them. Conflicts are between markers (<<<<<<<, =======, >>>>>>>): the part above ======= is the others', \
         the part below is yours. Files without markers that conflict were deleted by one side, or are not text: keep \
         or remove them, and combine what they need. Resolve each conflict so that the work of the others stays and \
         yours is done, remove the markers, test it, then end. A conflict that you leave unchanged counts as not \
         resolved."
    )
}

/// What the agent reads whose changes do not pass together with the others.
fn check_words(tip: &str, check: &Check, why: &str, output: &str) -> String {
    format!(
        "Your changes were merged with those of other tasks, and the check failed on the result ({why}).\nCommand: \
         {}\nThe end of its output:\n\n{}\n\nWithout your changes it passes. The other changes are in commit {tip}. Your \
         working tree now has the files of that commit, with your changes merged into them. Find the cause and fix it in \
         the files here, then end. Keep what the others did.",
        check.command,
        output.trim_end()
    )
}
