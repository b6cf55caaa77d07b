//! What becomes of the changes of a run: applied, taken back, discarded. Each decision is stored with the task.

use matsu_core::id::TaskId;
use matsu_core::job::Job;
use matsu_core::page::{Page, PageRequest};
use matsu_core::ports::agent::{AgentHost, ApplyError};
use matsu_core::ports::store::{SetReview, TaskFilter};
use matsu_core::principal::Principal;
use matsu_core::run::{Changes, RunInput, RunOutput};
use matsu_core::task::{Review, ReviewState, Task, TaskKind};

use crate::runtime::Runtime;
use crate::tasks::TaskError;

/// Changes that were written into the user's tree.
#[derive(Debug)]
pub struct AppliedChanges {
    pub task: Task,
    pub changes: Changes,
    /// Files with conflict markers.
    pub conflicts: Vec<String>,
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

/// A run whose changes are decided about.
struct Reviewed {
    task: Task,
    job: Job,
    agent: String,
    changes: Changes,
}

impl Reviewed {
    fn state(&self) -> Option<ReviewState> {
        self.task.review_of(&self.job.id).map(|review| review.state)
    }
}

impl Runtime {
    /// Writes the changes of a run into the tree that it began with.
    ///
    /// # Errors
    /// `Invalid` with the reason; nothing was written.
    pub async fn apply_changes(
        &self,
        owner: &Principal,
        id: &TaskId,
        agent: Option<&str>,
        keep_conflicts: bool,
    ) -> Result<AppliedChanges, TaskError> {
        let run = self.reviewed(owner, id, agent).await?;
        match self.apply_reviewed(run, keep_conflicts).await? {
            Ok(applied) => Ok(applied),
            Err((_, files)) => Err(refused(&format!(
                "you and the run changed the same lines; nothing was written. Files: {}. Next: matsu apply {id} \
                 --merge writes them with conflict markers; matsu apply {id} --send-back lets the agent resolve them; or \
                 undo yours in these files and apply again",
                files.join(", ")
            ))),
        }
    }

    /// The changes, or the files that conflict.
    async fn apply_reviewed(
        &self,
        run: Reviewed,
        keep_conflicts: bool,
    ) -> Result<Result<AppliedChanges, (Reviewed, Vec<String>)>, TaskError> {
        if run.state() == Some(ReviewState::Applied) {
            let id = &run.task.id;
            return Err(refused(&format!("they were applied already. Take them back with: matsu apply {id} --undo")));
        }
        match self.agent_host()?.apply(&run.job.id, &run.changes, keep_conflicts).await {
            Ok(applied) => {
                let task = self.decide(&run, Some(ReviewState::Applied), None).await?;
                Ok(Ok(AppliedChanges { task, changes: run.changes, conflicts: applied.conflicts }))
            }
            Err(ApplyError::AlreadyThere) => {
                self.decide(&run, Some(ReviewState::Applied), None).await?;
                Err(refused("they are in your tree already; nothing was written"))
            }
            Err(ApplyError::Conflicts(files)) => Ok(Err((run, files))),
            Err(ApplyError::Failed(why)) => Err(refused(&why)),
        }
    }

    /// As [`Runtime::apply_changes`]; changes that conflict go back to their agent, which resolves the conflicts in the
    /// same conversation, on the user's tree as it is now.
    ///
    /// # Errors
    /// `Invalid` with the reason; nothing was written or sent.
    pub async fn apply_or_send_back(&self, owner: &Principal, id: &TaskId) -> Result<AppliedOrSent, TaskError> {
        let run = self.reviewed(owner, id, None).await?;
        let (run, conflicts) = match self.apply_reviewed(run, false).await? {
            Ok(applied) => return Ok(AppliedOrSent::Applied(Box::new(applied))),
            Err(conflict) => conflict,
        };
        let started = self.send_back(owner, id, &to_resolve(&conflicts), Some(run.changes.clone())).await?;
        self.decide(&run, Some(ReviewState::SentBack), Some(started.task.id.clone())).await?;
        Ok(AppliedOrSent::Sent { task: Box::new(started.task), conflicts })
    }

    /// Takes changes back that were applied, and keeps what was changed since.
    ///
    /// # Errors
    /// `Invalid` with the reason; nothing was written.
    pub async fn undo_apply(
        &self,
        owner: &Principal,
        id: &TaskId,
        agent: Option<&str>,
    ) -> Result<(Task, Changes), TaskError> {
        let run = self.reviewed(owner, id, agent).await?;
        let no = |why: &str| TaskError::Invalid(format!("the changes were not taken back: {why}"));
        if run.state() != Some(ReviewState::Applied) {
            return Err(no("they were not applied"));
        }
        match self.agent_host()?.undo_apply(&run.job.id, &run.changes).await {
            // A person has done it by hand.
            Ok(()) | Err(ApplyError::AlreadyThere) => {}
            Err(ApplyError::Conflicts(files)) => {
                let files = files.join(", ");
                return Err(no(&format!(
                    "the same lines were changed since; nothing was written. Files: {files}. Change them back by hand"
                )));
            }
            Err(ApplyError::Failed(why)) => return Err(no(&why)),
        }
        let task = self.decide(&run, None, None).await?;
        Ok((task, run.changes))
    }

    /// Removes the branch of a run. Its commits stay under `refs/matsu/TASK`.
    ///
    /// # Errors
    /// `Invalid` for changes that were applied, and for a branch that cannot be removed.
    pub async fn discard_changes(
        &self,
        owner: &Principal,
        id: &TaskId,
        agent: Option<&str>,
    ) -> Result<(Task, Changes), TaskError> {
        let run = self.reviewed(owner, id, agent).await?;
        let no = |why: &str| TaskError::Invalid(format!("the changes were not discarded: {why}"));
        match run.state() {
            Some(ReviewState::Applied) => {
                return Err(no(&format!("they were applied. Take them back first: matsu apply {id} --undo")));
            }
            Some(ReviewState::Discarded) => return Err(no("they were discarded already")),
            Some(ReviewState::SentBack) | None => {}
        }
        self.agent_host()?.discard(&run.changes).await.map_err(|why| no(&why))?;
        let task = self.decide(&run, Some(ReviewState::Discarded), None).await?;
        Ok((task, run.changes))
    }

    /// Sends a comment on the changes back to the agent, which works on in the same conversation, on the same branch and
    /// in a task of its own.
    ///
    /// # Errors
    /// `Invalid` for changes that were applied or discarded, and for a conversation that cannot be resumed.
    pub async fn send_changes_back(&self, owner: &Principal, id: &TaskId, comment: &str) -> Result<Task, TaskError> {
        let run = self.reviewed(owner, id, None).await?;
        if let Some(state @ (ReviewState::Applied | ReviewState::Discarded)) = run.state() {
            return Err(TaskError::Invalid(format!("the comment was not sent back: the changes are {state}")));
        }
        let started = self.send_back(owner, id, comment, None).await?;
        self.decide(&run, Some(ReviewState::SentBack), Some(started.task.id.clone())).await?;
        Ok(started.task)
    }

    /// Runs with changes among one page of the caller's tasks, newest first.
    ///
    /// # Errors
    /// As the store's.
    pub async fn branches(&self, owner: &Principal, page: &PageRequest) -> Result<Page<RunBranch>, TaskError> {
        let filter = TaskFilter { kind: Some(TaskKind::Agent), ..TaskFilter::default() };
        let tasks = self.list(owner, filter, page).await?;
        let mut items = Vec::new();
        for task in tasks.items {
            for job in self.jobs_of(&task.id).await? {
                let Some((agent, changes)) = changed(&job) else { continue };
                let state = task.review_of(&job.id).map(|review| review.state);
                items.push(RunBranch { task: task.clone(), agent, changes, state });
            }
        }
        Ok(Page { items, next: tasks.next })
    }

    fn agent_host(&self) -> Result<&std::sync::Arc<dyn AgentHost>, TaskError> {
        self.agents().ok_or_else(|| TaskError::Invalid("this process knows no agents".to_owned()))
    }

    async fn reviewed(&self, owner: &Principal, id: &TaskId, agent: Option<&str>) -> Result<Reviewed, TaskError> {
        let changes = self.changes_of(owner, id, agent).await?;
        let task = self.read_own(owner, id).await?;
        let (job, input) = self.run_of(id, agent).await?;
        if changes.base == changes.head {
            return Err(TaskError::Invalid(format!("the run of task {id} changed no file")));
        }
        Ok(Reviewed { task, job, agent: input.agent, changes })
    }

    async fn decide(
        &self,
        run: &Reviewed,
        state: Option<ReviewState>,
        next_task: Option<TaskId>,
    ) -> Result<Task, TaskError> {
        let now = self.clock().now();
        let (job_id, agent) = (run.job.id.clone(), run.agent.clone());
        let review = state.map(|state| Review { job_id, agent, state, at: now, next_task });
        let request = SetReview { task_id: run.task.id.clone(), job_id: run.job.id.clone(), review, now };
        Ok(self.store().set_review(request).await?)
    }
}

/// What the agent reads.
fn to_resolve(files: &[String]) -> String {
    format!(
        "The user's files have changed since you began, and your changes conflict with them. Your working tree now has the \
         user's files as they are, with your changes merged into them. There are conflict markers (<<<<<<<, =======, \
         >>>>>>>) in: {}. The part above ======= is the user's, the part below is yours. Resolve each so that what the user \
         wrote stays and your work is done, remove the markers, test it, then end.",
        files.join(", ")
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
