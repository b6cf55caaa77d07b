//! The runs of this process, for callers that end one and want to know what that took, and for calls that come from
//! inside a run: their waits lend the run's permit to what it started.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use matsu_core::id::{AgentId, JobId, RunId, TaskId};
use matsu_core::job::Lease;
use matsu_core::page::PageRequest;
use matsu_core::ports::agent::{ConnectBack, Places, Resume};
use matsu_core::ports::store::{ListTasks, ReadJob, StoreError, TaskFilter};
use matsu_core::principal::Principal;
use matsu_core::run::{Mode, RunInput};
use matsu_core::secret::Token;
use matsu_core::usage::Usage;

use crate::runtime::context::JobContext;
use crate::tasks::Tasks;

use super::own_session::OwnSession;

use super::Agents;

/// Where a run sits while it lasts.
#[derive(Clone)]
pub struct RunHandle {
    /// New with every start of a program.
    pub run_id: RunId,
    /// Shows that a connection comes through this run's own socket.
    pub socket_key: Token,
    /// Whom it works for, and as whom.
    pub owner: Principal,
    pub agent_id: AgentId,
    /// The vendor's name of the conversation that it goes on with.
    pub resumes: Option<String>,
    pub context: JobContext,
    pub mode: Mode,
    /// Where it works, and so what it may name for others.
    pub places: Places,
    /// What its processes call with, whatever they present.
    pub token: Token,
    /// Toolsets and tools beyond `sessions`.
    pub grants: Arc<str>,
    /// What its job has cost so far.
    used: Option<Usage>,
    /// What this run alone has cost so far.
    run_used: Option<Usage>,
    ended: watch::Receiver<Option<u32>>,
}

impl RunHandle {
    #[must_use]
    pub fn task_id(&self) -> Option<&TaskId> {
        self.context.job.task_id.as_ref()
    }

    /// How many processes were ended with it; waits for that.
    pub async fn processes_ended(&self) -> u32 {
        let mut ended = self.ended.clone();
        let processes = ended.wait_for(Option::is_some).await.ok().and_then(|processes| *processes);
        // The task that would have said so was dropped: the supervisor ends the processes, and no report of it comes.
        processes.unwrap_or(0)
    }
}

/// All of them, in the order they began.
#[derive(Default)]
pub struct LiveRuns {
    handles: Mutex<Vec<(Lease, RunHandle)>>,
}

impl LiveRuns {
    /// Registers a run until the guard is dropped.
    #[must_use]
    pub fn register(
        self: &Arc<Self>,
        context: &JobContext,
        input: &RunInput,
        own: &OwnSession,
        back: &ConnectBack,
        resume: Option<&Resume>,
    ) -> RunGuard {
        let (ended, listener) = watch::channel(None);
        let lease = context.lease.clone();
        let directory = input.directory.as_ref().map(PathBuf::from);
        let places = Places { roots: directory.iter().cloned().collect(), cwd: directory };
        let handle = RunHandle {
            run_id: own.run_id().clone(),
            socket_key: own.socket_key().clone(),
            owner: own.session().owner.clone(),
            agent_id: own.session().agent_id.clone(),
            resumes: resume.map(|resume| resume.vendor_session.clone()),
            context: context.clone(),
            mode: input.mode,
            places,
            token: own.token().clone(),
            grants: back.grants.as_str().into(),
            used: None,
            run_used: None,
            ended: listener,
        };
        self.lock().push((lease.clone(), handle));
        RunGuard { runs: Arc::clone(self), lease, ended }
    }

    /// The runs of these tasks.
    #[must_use]
    pub fn of_tasks(&self, tasks: &[TaskId]) -> Vec<RunHandle> {
        let handles = self.lock();
        let of_tasks = handles.iter().filter(|(_, handle)| handle.task_id().is_some_and(|id| tasks.contains(id)));
        of_tasks.map(|(_, handle)| handle.clone()).collect()
    }

    /// The run of this name, as its processes carry it.
    #[must_use]
    pub fn find(&self, job: &str, attempt: i64) -> Option<RunHandle> {
        let handles = self.lock();
        let found = handles.iter().find(|(lease, _)| lease.job_id.as_str() == job && lease.attempt == attempt);
        found.map(|(_, handle)| handle.clone())
    }

    /// The run of this id.
    #[must_use]
    pub fn by_id(&self, run: &RunId) -> Option<RunHandle> {
        let handles = self.lock();
        handles.iter().find(|(_, handle)| handle.run_id == *run).map(|(_, handle)| handle.clone())
    }

    /// What a job whose run is here has cost so far.
    #[must_use]
    pub fn used(&self, job: &JobId) -> Option<Usage> {
        let handles = self.lock();
        handles.iter().find(|(lease, _)| lease.job_id == *job).and_then(|(_, handle)| handle.used)
    }

    /// What the runs of one person that are here have cost so far.
    #[must_use]
    pub fn used_by(&self, owner: &Principal) -> Usage {
        let handles = self.lock();
        let of_owner = handles.iter().filter(|(_, handle)| handle.owner == *owner);
        of_owner.filter_map(|(_, handle)| handle.run_used).fold(Usage::default(), Usage::plus)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(Lease, RunHandle)>> {
        self.handles.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Agents<'_> {
    /// The runs of agents that go on in this process.
    #[must_use]
    pub fn live_runs(self) -> Arc<LiveRuns> {
        self.runtime.part()
    }

    /// Whether this store has ever had such a job. One that does not answer is taken to know it.
    pub async fn knows_job(self, job: &JobId) -> bool {
        !matches!(self.runtime.store().run(ReadJob(job.clone())).await, Err(StoreError::NotFound { .. }))
    }

    /// The runs of a task and of those it started, as far as they run in this process. What a run started belongs to
    /// its session, and yet ends with it.
    pub async fn runs_below(self, owner: &Principal, id: &TaskId) -> Vec<RunHandle> {
        if Tasks::of(self.runtime).read(owner, id).await.is_err() {
            return Vec::new();
        }
        let mut family = vec![id.clone()];
        let mut level = 0;
        while let Some(parent) = family.get(level).cloned() {
            level += 1;
            let filter = TaskFilter { parent: Some(parent), ..TaskFilter::default() };
            let children = self
                .runtime
                .store()
                .run(ListTasks { filter: filter.clone(), page: PageRequest::new(None, Some(u32::MAX)) })
                .await;
            family.extend(children.map(|page| page.items).unwrap_or_default().into_iter().map(|task| task.id));
        }
        self.runtime.part::<LiveRuns>().of_tasks(&family)
    }
}

/// The run's own side of its handle.
pub struct RunGuard {
    runs: Arc<LiveRuns>,
    lease: Lease,
    ended: watch::Sender<Option<u32>>,
}

impl RunGuard {
    /// Where its program is. What it asks others to do is meant from there: a run with a tree of its own does not reach
    /// past it into the user's.
    pub fn works_in(&self, directory: Option<PathBuf>) {
        let mut handles = self.runs.lock();
        if let (Some(directory), Some((_, handle))) =
            (directory, handles.iter_mut().find(|(lease, _)| *lease == self.lease))
        {
            handle.places = Places { roots: vec![directory.clone()], cwd: Some(directory) };
        }
    }

    /// What the job, and this run alone, has cost so far.
    pub fn set_used(&self, job: Usage, run: Usage) {
        if let Some((_, handle)) = self.runs.lock().iter_mut().find(|(lease, _)| *lease == self.lease) {
            (handle.used, handle.run_used) = (Some(job), Some(run));
        }
    }

    pub fn set_processes_ended(&self, processes: u32) {
        self.ended.send_replace(Some(processes));
    }
}

impl Drop for RunGuard {
    fn drop(&mut self) {
        self.runs.lock().retain(|(lease, _)| *lease != self.lease);
    }
}
