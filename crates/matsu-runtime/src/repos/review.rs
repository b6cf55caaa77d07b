//! What becomes of the changes of a run: applied, taken back, discarded. Each decision is stored with the task.

use matsu_core::id::TaskId;
use matsu_core::job::Job;
use matsu_core::page::{Page, PageRequest};
use matsu_core::ports::agent::{ApplyError, Conflict, ConflictKind, conflict_words};
use matsu_core::ports::store::{SetReview, TaskFilter};
use matsu_core::principal::Principal;
use matsu_core::receipt::Receipt;
use matsu_core::run::{Changes, RunInput, RunOutput};
use matsu_core::task::{Review, ReviewState, Task, TaskKind};

use super::Repos;
use crate::agents::{Agents, MeantRun, Prefers, RunChoice};
use crate::tasks::{Resolves, TaskError, Tasks};

/// Changes that were written into the user's tree.
#[derive(Debug)]
pub struct AppliedChanges {
    pub task: Task,
    pub changes: Changes,
    /// Files that both have changed; with conflict markers where they can have them.
    pub conflicts: Vec<Conflict>,
    /// Tasks whose changes the run began with, and which were not applied.
    pub missing: Vec<TaskId>,
    /// Whose they are, and what the check of them came to.
    pub agent: String,
    pub receipt: Option<Box<Receipt>>,
}

/// What became of changes that were to be applied or to go back to their agent.
#[derive(Debug)]
pub enum AppliedOrSent {
    Applied(Box<AppliedChanges>),
    /// The task that resolves the conflicts in these files.
    Sent {
        task: Box<Task>,
        conflicts: Vec<String>,
    },
}

/// A run with changes, in a list.
#[derive(Debug)]
pub struct RunBranch {
    pub task: Task,
    pub agent: String,
    pub changes: Changes,
    pub state: Option<ReviewState>,
}

/// Why changes cannot be written as they are.
enum Unmerged {
    Conflicts(Vec<Conflict>),
    /// The run itself left conflict markers in these files.
    Markers(Vec<String>),
}

impl Unmerged {
    fn files(&self) -> Vec<String> {
        match self {
            Self::Conflicts(conflicts) => conflicts.iter().map(|conflict| conflict.path.clone()).collect(),
            Self::Markers(files) => files.clone(),
        }
    }

    fn words(&self) -> String {
        match self {
            Self::Conflicts(conflicts) => format!("conflicts in {}", conflict_words(conflicts)),
            Self::Markers(files) => format!("the run left conflict markers in {}", files.join(", ")),
        }
    }

    /// What a person can do.
    fn next(&self, id: &TaskId) -> String {
        let has = |kind: ConflictKind| matches!(self, Self::Conflicts(all) if all.iter().any(|one| one.kind == kind));
        if has(ConflictKind::Folder) {
            return format!(
                "Next: where one side has a file and the other a folder, move yours away and apply again; or let the \
                 agent resolve it with matsu apply {id} --send-back"
            );
        }
        format!(
            "Next: matsu apply {id} --merge writes text files with conflict markers, and other files in the version \
             that is left; matsu apply {id} --send-back lets the agent resolve the conflicts; or undo your changes in \
             these files and apply again"
        )
    }
}

/// A run whose changes are decided about.
struct Reviewed {
    task: Task,
    job: Job,
    agent: String,
    changes: Changes,
    receipt: Option<Box<Receipt>>,
}

impl Reviewed {
    fn state(&self) -> Option<ReviewState> {
        self.task.review_of(&self.job.id).map(|review| review.state)
    }
}

impl Repos<'_> {
    /// Writes the changes of a run into the tree that it began with.
    ///
    /// # Errors
    /// `Invalid` with the reason; nothing was written.
    pub async fn apply_changes(
        self,
        owner: &Principal,
        id: &TaskId,
        agent: Option<&str>,
        keep_conflicts: bool,
    ) -> Result<AppliedChanges, TaskError> {
        let run = self.reviewed(owner, id, RunChoice::done(agent, "apply TASK")).await?;
        match self.apply_reviewed(run, keep_conflicts).await? {
            Ok(applied) => Ok(applied),
            Err((_, conflict)) => {
                Err(refused(&format!("{}. Nothing was written. {}", conflict.words(), conflict.next(id))))
            }
        }
    }

    /// The changes, or what conflicts.
    async fn apply_reviewed(
        self,
        run: Reviewed,
        keep_conflicts: bool,
    ) -> Result<Result<AppliedChanges, (Reviewed, Unmerged)>, TaskError> {
        if run.state() == Some(ReviewState::Applied) {
            let id = &run.task.id;
            return Err(refused(&format!("they were applied already. Take them back with: matsu apply {id} --undo")));
        }
        match Agents::of(self.runtime).host()?.apply(&run.job.id, &run.changes, keep_conflicts).await {
            Ok(applied) => {
                let task = self.decide(&run, Some(ReviewState::Applied), None).await?;
                let missing = self.missing_before(&run).await?;
                let Reviewed { changes, agent, receipt, .. } = run;
                Ok(Ok(AppliedChanges { task, changes, conflicts: applied.conflicts, missing, agent, receipt }))
            }
            Err(ApplyError::AlreadyThere) => {
                self.decide(&run, Some(ReviewState::Applied), None).await?;
                Err(refused("they are in your tree already; nothing was written"))
            }
            Err(ApplyError::Conflicts(files)) => Ok(Err((run, Unmerged::Conflicts(files)))),
            Err(ApplyError::Markers(files)) => Ok(Err((run, Unmerged::Markers(files)))),
            Err(ApplyError::Failed(why)) => Err(refused(&why)),
        }
    }

    /// As [`Repos::apply_changes`]; changes that conflict go back to their agent, which resolves the conflicts in the
    /// same conversation, on the user's tree as it is now.
    ///
    /// # Errors
    /// `Invalid` with the reason; nothing was written or sent.
    pub async fn apply_or_send_back(self, owner: &Principal, id: &TaskId) -> Result<AppliedOrSent, TaskError> {
        let run = self.reviewed(owner, id, RunChoice::done(None, "apply TASK")).await?;
        let (run, conflict) = match self.apply_reviewed(run, false).await? {
            Ok(applied) => return Ok(AppliedOrSent::Applied(Box::new(applied))),
            Err(conflict) => conflict,
        };
        let resolves = Resolves { changes: run.changes.clone(), on: None, merge: None };
        let started = Tasks::of(self.runtime).send_back(owner, id, &to_resolve(&conflict), Some(resolves)).await?;
        self.decide(&run, Some(ReviewState::SentBack), Some(started.task.id.clone())).await?;
        Ok(AppliedOrSent::Sent { task: Box::new(started.task), conflicts: conflict.files() })
    }

    /// Takes changes back that were applied, and keeps what was changed since.
    ///
    /// # Errors
    /// `Invalid` with the reason; nothing was written.
    pub async fn undo_apply(
        self,
        owner: &Principal,
        id: &TaskId,
        agent: Option<&str>,
    ) -> Result<(Task, Changes), TaskError> {
        let choice = RunChoice { agent, prefers: Prefers::Applied, command: "apply TASK --undo" };
        let run = self.reviewed(owner, id, choice).await?;
        let no = |why: &str| TaskError::Invalid(format!("the changes were not taken back: {why}"));
        if run.state() != Some(ReviewState::Applied) {
            return Err(no("they were not applied"));
        }
        match Agents::of(self.runtime).host()?.undo_apply(&run.job.id, &run.changes).await {
            // A person has done it by hand.
            Ok(()) | Err(ApplyError::AlreadyThere) => {}
            Err(ApplyError::Conflicts(files)) => {
                let files = Unmerged::Conflicts(files).files().join(", ");
                return Err(no(&format!(
                    "the same lines were changed since; nothing was written. Files: {files}. Change them back by hand"
                )));
            }
            Err(error @ (ApplyError::Markers(_) | ApplyError::Failed(_))) => return Err(no(&error.to_string())),
        }
        let task = self.decide(&run, None, None).await?;
        Ok((task, run.changes))
    }

    /// Removes the branch of a run. Returns the reference under `refs/matsu` that still has its commits, if there is one.
    ///
    /// # Errors
    /// `Invalid` for changes that were applied, and for a branch that cannot be removed.
    pub async fn discard_changes(
        self,
        owner: &Principal,
        id: &TaskId,
        agent: Option<&str>,
    ) -> Result<(Task, Changes, Option<String>), TaskError> {
        let choice = RunChoice { agent, prefers: Prefers::Nothing, command: "discard TASK" };
        let run = self.reviewed(owner, id, choice).await?;
        let no = |why: &str| TaskError::Invalid(format!("the changes were not discarded: {why}"));
        match run.state() {
            Some(ReviewState::Applied) => {
                return Err(no(&format!("they were applied. Take them back first: matsu apply {id} --undo")));
            }
            Some(ReviewState::Discarded) => return Err(no("they were discarded already")),
            Some(ReviewState::SentBack) | None => {}
        }
        let kept_by = Agents::of(self.runtime).host()?.discard(&run.changes).await.map_err(|why| no(&why))?;
        let task = self.decide(&run, Some(ReviewState::Discarded), None).await?;
        Ok((task, run.changes, kept_by))
    }

    /// Sends a comment on the changes back to the agent, which works on in the same conversation, on the same branch and
    /// in a task of its own.
    ///
    /// # Errors
    /// `Invalid` for changes that were applied or discarded, and for a conversation that cannot be resumed.
    pub async fn send_changes_back(self, owner: &Principal, id: &TaskId, comment: &str) -> Result<Task, TaskError> {
        self.send_changes_back_with(owner, id, comment, None).await
    }

    /// The same; the agent begins with its changes merged into something else.
    pub(super) async fn send_changes_back_with(
        self,
        owner: &Principal,
        id: &TaskId,
        comment: &str,
        resolves: Option<Resolves>,
    ) -> Result<Task, TaskError> {
        let run = self.reviewed(owner, id, RunChoice::done(None, "apply TASK")).await?;
        if let Some(state @ (ReviewState::Applied | ReviewState::Discarded)) = run.state() {
            return Err(TaskError::Invalid(format!("the comment was not sent back: the changes are {state}")));
        }
        let started = Tasks::of(self.runtime).send_back(owner, id, comment, resolves).await?;
        self.decide(&run, Some(ReviewState::SentBack), Some(started.task.id.clone())).await?;
        Ok(started.task)
    }

    /// Runs with changes, newest first. A page ends with the task that fills it.
    ///
    /// # Errors
    /// As the store's.
    pub async fn branches(self, owner: &Principal, page: &PageRequest) -> Result<Page<RunBranch>, TaskError> {
        let filter = TaskFilter { kind: Some(TaskKind::Agent), ..TaskFilter::default() };
        let (mut items, mut after) = (Vec::new(), page.after);
        let limit = usize::try_from(page.limit()).unwrap_or(usize::MAX);
        loop {
            // As many tasks as there are places left, so that none of a page is passed over.
            let places = u32::try_from(limit - items.len()).ok();
            let tasks = Tasks::of(self.runtime).list(owner, filter.clone(), &PageRequest::new(after, places)).await?;
            for task in tasks.items {
                for job in Tasks::of(self.runtime).jobs_of(&task.id).await? {
                    let Some((agent, changes)) = changed(&job) else { continue };
                    let state = task.review_of(&job.id).map(|review| review.state);
                    items.push(RunBranch { task: task.clone(), agent, changes, state });
                }
            }
            after = tasks.next;
            if after.is_none() || items.len() >= limit {
                return Ok(Page { items, next: after });
            }
        }
    }

    async fn reviewed(self, owner: &Principal, id: &TaskId, choice: RunChoice<'_>) -> Result<Reviewed, TaskError> {
        let run = Agents::of(self.runtime).meant_run(owner, id, choice).await?;
        let changes = run.changes(id)?;
        let task = Tasks::of(self.runtime).read_own(owner, id).await?;
        if changes.base == changes.head {
            return Err(TaskError::Invalid(format!("the run of task {id} changed no file")));
        }
        let MeantRun { job, input, output } = run;
        Ok(Reviewed { task, job, agent: input.agent, changes, receipt: output.receipt })
    }

    /// Tasks before this one whose changes its run began with and whose changes are not in the user's tree by an apply.
    async fn missing_before(self, run: &Reviewed) -> Result<Vec<TaskId>, TaskError> {
        let mut missing = Vec::new();
        for (id, task) in Agents::of(self.runtime).all_before(&run.task.depends_on()).await? {
            let is_missing = |job: &Job| {
                let state = task.review_of(&job.id).map(|review| review.state);
                changed(job).is_some() && state != Some(ReviewState::Applied)
            };
            if Tasks::of(self.runtime).jobs_of(&id).await?.iter().any(is_missing) {
                missing.push(id);
            }
        }
        Ok(missing)
    }

    async fn decide(
        self,
        run: &Reviewed,
        state: Option<ReviewState>,
        next_task: Option<TaskId>,
    ) -> Result<Task, TaskError> {
        let now = self.runtime.clock().now();
        let (job_id, agent) = (run.job.id.clone(), run.agent.clone());
        let review = state.map(|state| Review { job_id, agent, state, at: now, next_task });
        let request = SetReview { task_id: run.task.id.clone(), job_id: run.job.id.clone(), review, now };
        Ok(self.runtime.store().run(request).await?)
    }
}

/// What the agent reads.
fn to_resolve(conflict: &Unmerged) -> String {
    let named = match conflict {
        Unmerged::Conflicts(conflicts) => conflict_words(conflicts).replace("you and the run", "the user and you"),
        Unmerged::Markers(files) => files.join(", "),
    };
    format!(
        "The user's files have changed since you began, and your changes conflict with them. Your working tree now has \
         the user's files as they are, with your changes merged into them. There are conflict markers (<<<<<<<, \
         =======, >>>>>>>) in these files, unless they are not text or one side deleted them: {named}. The part above \
         ======= is the user's, the part below is yours. Resolve each so that what the user wrote stays and your work \
         is done, remove the markers, test it, then end."
    )
}

fn refused(why: &str) -> TaskError {
    TaskError::Invalid(format!("the changes were not applied: {why}"))
}

/// The agent of a run and what it changed; `None` for a run without changes.
fn changed(job: &Job) -> Option<(String, Changes)> {
    let input: RunInput = serde_json::from_str(&job.input_json).ok()?;
    let output: RunOutput = serde_json::from_str(job.output_json.as_deref()?).ok()?;
    let changes = output.changes.filter(|changes| changes.base != changes.head && input.verifies.is_none())?;
    Some((output.agent, changes))
}
