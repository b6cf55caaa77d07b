//! The verbs on tasks: submit, enqueue, read, list, steer, stop, retry. Limits are checked here, where data enters.
//!
//! A handle belongs to the principal that made it. To any other it does not exist, and the answer is the same as for
//! an id that was never given out.

mod news;
mod open_tasks;
pub mod queue;
mod retry;
pub mod status;
mod stop;
pub mod wait;

use std::sync::Arc;

use matsu_core::change::ChangeCursor;
use matsu_core::clock::Timestamp;
use matsu_core::error_code::ErrorCode;
use matsu_core::id::TaskId;
use matsu_core::job::end::clip;
use matsu_core::job::{Job, JobState, NewJob};
use matsu_core::limits::{JOB_INPUT_BYTES_MAX, JOBS_PER_CALL_MAX, TASK_CONFIG_BYTES_MAX, TITLE_CHARS_MAX};
use matsu_core::page::{Page, PageRequest};
use matsu_core::ports::store::{
    ChangeBatch, ChangesSince, Enqueue, Enqueued, InsertRun, InsertedTask, JobFilter, ListJobs, ListTasks, MarkRead,
    ReadChangeCursor, ReadSummary, ReadTask, ReadTasks, SessionClaim, SetStatus, Steer, StoreError, Summary,
    TakeBackRead, TaskFilter, TaskLookup,
};
use matsu_core::principal::Principal;
use matsu_core::task::{NewTask, Task};

use crate::access::Access;
use crate::runtime::service;

pub(crate) use news::News;
pub(crate) use open_tasks::OpenTasks;
pub(crate) use retry::Resolves;
pub use stop::StopReport;

/// Why a verb was refused.
#[derive(Debug, thiserror::Error)]
pub enum TaskError {
    /// It never existed, was removed, or belongs to another principal.
    #[error("Task ID not found or expired.")]
    NotFound(TaskId),
    /// It may be read, but is not the caller's to change.
    #[error("task {0} was assigned to you by another user; end it with report_completed")]
    NotYours(TaskId),
    /// The caller must ask differently.
    #[error("{0}")]
    Invalid(String),
    /// A bound of the system.
    #[error("{0}")]
    LimitExceeded(String),
    /// The same call may succeed later.
    #[error("the store is not available: {0}")]
    Unavailable(String),
    #[error(transparent)]
    Store(StoreError),
}

impl TaskError {
    /// The word a user meets.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::NotFound(_) => ErrorCode::TaskNotFound,
            Self::NotYours(_) => ErrorCode::Forbidden,
            Self::Invalid(_) => ErrorCode::InvalidParams,
            Self::LimitExceeded(_) => ErrorCode::LimitExceeded,
            Self::Unavailable(_) => ErrorCode::StoreUnavailable,
            Self::Store(error) => error.code(),
        }
    }

    /// From an error that many share.
    pub(crate) fn shared(id: &TaskId, error: &Arc<StoreError>) -> Self {
        match &**error {
            StoreError::NotFound { .. } => Self::NotFound(id.clone()),
            StoreError::Unavailable(why) => Self::Unavailable(why.clone()),
            error => Self::Store(StoreError::Internal(error.to_string())),
        }
    }
}

impl From<StoreError> for TaskError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::NotFound { what: "task", id } => Self::NotFound(TaskId::from_text(id)),
            StoreError::LimitExceeded(what) => Self::LimitExceeded(what),
            StoreError::Unavailable(why) => Self::Unavailable(why),
            error => Self::Store(error),
        }
    }
}

service! {
    /// Tasks: submit, enqueue, read, list, steer, stop, retry.
    Tasks
}

impl Tasks<'_> {
    /// Those of these tasks that are there, of any owner.
    ///
    /// # Errors
    /// As the store's.
    pub async fn by_id(self, ids: &[TaskId]) -> Result<Vec<Task>, StoreError> {
        self.runtime.store().run(ReadTasks(ids.to_vec())).await
    }

    /// A task, or what is left of it, of any owner.
    ///
    /// # Errors
    /// As the store's.
    pub async fn any(self, id: &TaskId) -> Result<TaskLookup, StoreError> {
        self.runtime.store().run(ReadTask(id.clone())).await
    }

    /// What an overview counts.
    ///
    /// # Errors
    /// As the store's.
    pub async fn summary(self, owner: &Principal, failed_since: Timestamp) -> Result<Summary, StoreError> {
        self.runtime.store().run(ReadSummary { owner: owner.clone(), failed_since }).await
    }

    /// Where the list of changes ends now.
    ///
    /// # Errors
    /// As the store's.
    pub async fn change_cursor(self) -> Result<ChangeCursor, StoreError> {
        self.runtime.store().run(ReadChangeCursor).await
    }

    /// What changed after this place in the list.
    ///
    /// # Errors
    /// As the store's.
    pub async fn changes_since(self, cursor: ChangeCursor, rows_max: u32) -> Result<ChangeBatch, StoreError> {
        self.runtime.store().run(ChangesSince { cursor, rows_max }).await
    }

    /// Stores a task with its first jobs. The store sets its depth and counts its siblings.
    ///
    /// # Errors
    /// `Invalid` or `LimitExceeded` for what cannot be taken; a closed parent or a reused key as the store says.
    pub async fn submit(self, mut task: NewTask) -> Result<InsertedTask, TaskError> {
        check_jobs(&task.jobs)?;
        if task.config_json.len() > TASK_CONFIG_BYTES_MAX {
            let bytes = task.config_json.len();
            let message = format!("the task's settings of {bytes} bytes are larger than {TASK_CONFIG_BYTES_MAX}");
            return Err(TaskError::LimitExceeded(message));
        }
        task.title = clip(&task.title, TITLE_CHARS_MAX);
        self.runtime.part::<OpenTasks>().admit(&**self.runtime.store(), &task.owner).await?;
        Ok(self.runtime.store().run(task).await?)
    }

    /// As [`Tasks::submit`], for a run that belongs to a conversation.
    ///
    /// # Errors
    /// As [`Tasks::submit`]; a conversation that cannot be taken as the store says.
    pub(crate) async fn submit_run(
        self,
        mut task: NewTask,
        session: Option<SessionClaim>,
    ) -> Result<InsertedTask, TaskError> {
        check_jobs(&task.jobs)?;
        task.title = clip(&task.title, TITLE_CHARS_MAX);
        self.runtime.part::<OpenTasks>().admit(&**self.runtime.store(), &task.owner).await?;
        Ok(self.runtime.store().run(InsertRun { task, session }).await?)
    }

    /// Adds jobs to a task, all or none.
    ///
    /// # Errors
    /// `NotFound` for a foreign task, `LimitExceeded` for too much, `Closed` where the task takes no more.
    pub async fn enqueue(self, owner: &Principal, id: &TaskId, jobs: Vec<NewJob>) -> Result<Enqueued, TaskError> {
        check_jobs(&jobs)?;
        if jobs.is_empty() {
            return Err(TaskError::Invalid("name at least one job".to_owned()));
        }
        self.read(owner, id).await?;
        // A caller that paused the task and now adds work to it wants the work done.
        let resume_for = Some(owner.clone());
        let request = Enqueue { task_id: Some(id.clone()), jobs, resume_for, now: self.runtime.clock().now() };
        Ok(self.runtime.store().run(request).await?)
    }

    /// The progress that the first running job of a task has noted, in words.
    ///
    /// # Errors
    /// A store that is away.
    pub async fn progress_of(self, id: &TaskId) -> Result<Option<String>, TaskError> {
        let filter = JobFilter { task_id: Some(id.clone()), state: Some(JobState::Running), ..JobFilter::default() };
        let running = self.runtime.store().run(ListJobs { filter, page: PageRequest::new(None, Some(1)) }).await?;
        Ok(running.items.first().and_then(Job::progress_line))
    }

    /// All jobs of a task, oldest first.
    pub(crate) async fn jobs_of(self, id: &TaskId) -> Result<Vec<Job>, TaskError> {
        let filter = JobFilter { task_id: Some(id.clone()), ..JobFilter::default() };
        let mut jobs = Vec::new();
        let mut after = None;
        loop {
            let page = self
                .runtime
                .store()
                .run(ListJobs { filter: filter.clone(), page: PageRequest::new(after, Some(u32::MAX)) })
                .await?;
            jobs.extend(page.items);
            after = page.next;
            if after.is_none() {
                return Ok(jobs);
            }
        }
    }

    /// The owner's task.
    ///
    /// # Errors
    /// `NotFound` if it is not there, expired, or belongs to another principal.
    pub async fn read(self, owner: &Principal, id: &TaskId) -> Result<Task, TaskError> {
        match self.lookup(owner, id).await? {
            TaskLookup::Found(task) => Ok(*task),
            TaskLookup::Expired { .. } => Err(TaskError::NotFound(id.clone())),
        }
    }

    /// As [`Tasks::read`], for callers that want to change it.
    ///
    /// # Errors
    /// `NotYours` for a task that a session was only given to work on.
    pub async fn read_own(self, owner: &Principal, id: &TaskId) -> Result<Task, TaskError> {
        let task = self.read(owner, id).await?;
        if task.owner == *owner { Ok(task) } else { Err(TaskError::NotYours(id.clone())) }
    }

    /// As [`Tasks::read`], but answers for an expired task with what is left of it.
    ///
    /// # Errors
    /// `NotFound` if there never was such a task, or it belongs to another principal.
    pub async fn lookup(self, owner: &Principal, id: &TaskId) -> Result<TaskLookup, TaskError> {
        let found = self.runtime.store().run(ReadTask(id.clone())).await?;
        let visible = match &found {
            TaskLookup::Found(task) => Access::of(self.runtime).sees(owner, task).await?,
            TaskLookup::Expired { owner: whose, .. } => whose == owner,
        };
        if visible { Ok(found) } else { Err(TaskError::NotFound(id.clone())) }
    }

    /// The owner's tasks, newest first.
    ///
    /// # Errors
    /// As the store's.
    pub async fn list(
        self,
        owner: &Principal,
        filter: TaskFilter,
        page: &PageRequest,
    ) -> Result<Page<Task>, TaskError> {
        let filter = TaskFilter { owner: Some(owner.clone()), ..filter };
        Ok(self.runtime.store().run(ListTasks { filter: filter.clone(), page: page.clone() }).await?)
    }

    /// Pause, block, resume. Repeating it changes nothing.
    ///
    /// # Errors
    /// `NotFound` for a foreign task; `Illegal` where the rules forbid it.
    pub async fn steer(
        self,
        owner: &Principal,
        id: &TaskId,
        to: Steer,
        message: Option<String>,
    ) -> Result<Task, TaskError> {
        self.read_own(owner, id).await?;
        let request =
            SetStatus { task_id: id.clone(), to, by: owner.clone(), message, now: self.runtime.clock().now() };
        let task = self.runtime.store().run(request).await?;
        self.runtime.look_for_orders();
        Ok(task)
    }

    /// As [`Tasks::mark_read`] for what the owner was shown, where a store that cannot be written now must not turn a
    /// good answer into an error. What could not be noted counts as unread and is kept longer.
    pub async fn note_read(self, owner: &Principal, shown: &[&Task]) {
        if let Err(error) = self.mark_read(owner, &Self::unread(owner, shown)).await {
            tracing::debug!(%error, "could not store that results were read");
        }
    }

    /// Those of the tasks whose end the owner sees here for the first time: one that has ended since was not seen to.
    /// What is not the owner's is left out.
    #[must_use]
    pub fn unread(owner: &Principal, shown: &[&Task]) -> Vec<TaskId> {
        let unread = |task: &&&Task| task.owner == *owner && task.status.is_terminal() && task.first_read_at.is_none();
        shown.iter().filter(unread).map(|task| task.id.clone()).collect()
    }

    /// Notes that the owner has read the ends of these tasks, and returns the time of that.
    ///
    /// # Errors
    /// As the store's.
    pub async fn mark_read(self, owner: &Principal, ids: &[TaskId]) -> Result<Timestamp, TaskError> {
        let now = self.runtime.clock().now();
        if !ids.is_empty() {
            self.runtime.store().run(MarkRead { ids: ids.to_vec(), now }).await?;
            self.runtime.part::<News>().forget(owner);
        }
        Ok(now)
    }

    /// The client of the owner has received replies that show the ends of these tasks. Ids of others are ignored.
    ///
    /// # Errors
    /// As the store's.
    pub async fn acknowledge(self, owner: &Principal, ids: Vec<TaskId>) -> Result<(), TaskError> {
        let found = self.runtime.store().run(ReadTasks(ids)).await?;
        let unread = Self::unread(owner, &found.iter().collect::<Vec<_>>());
        self.mark_read(owner, &unread).await.map(drop)
    }

    /// The reply that showed these results was lost.
    pub(crate) async fn take_back_read(
        self,
        owner: &Principal,
        ids: Vec<TaskId>,
        read_at: Timestamp,
    ) -> Result<(), StoreError> {
        let taken = self.runtime.plain_store().run(TakeBackRead { ids, read_at }).await;
        self.runtime.part::<News>().forget(owner);
        taken
    }
}

fn check_jobs(jobs: &[NewJob]) -> Result<(), TaskError> {
    if jobs.len() > JOBS_PER_CALL_MAX {
        let message = format!("one call may queue at most {JOBS_PER_CALL_MAX} jobs, got {}", jobs.len());
        return Err(TaskError::LimitExceeded(message));
    }
    match jobs.iter().map(|job| job.input_json.len()).find(|bytes| *bytes > JOB_INPUT_BYTES_MAX) {
        Some(bytes) => {
            let message = format!("a job's input of {bytes} bytes is larger than {JOB_INPUT_BYTES_MAX}");
            Err(TaskError::LimitExceeded(message))
        }
        None => Ok(()),
    }
}
