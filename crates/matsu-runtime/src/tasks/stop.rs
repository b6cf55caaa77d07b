//! Stopping a task, softly or at once.
//!
//! The order is stored before the caller waits: if the caller goes away, or this process ends, the grace clocks of the
//! nodes that run the jobs carry the stop to its end.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use matsu_core::change::Topic;
use matsu_core::clock::Clock;
use matsu_core::id::{JobId, TaskId};
use matsu_core::job::{Job, JobKind, Lease};
use matsu_core::limits::{ABORT_GRACE, GRACE, TICK};
use matsu_core::ports::agent::{AgentHost, Program, TraceState};
use matsu_core::ports::store::{KeepWork, ReadJob, ReadLeftRuns, ReadTasks, StopTask, StoppedTask, StoreError};
use matsu_core::principal::Principal;
use matsu_core::run::RunInput;
use matsu_core::task::{StopMode, StopReason, Task};

use crate::runtime::Workers;
use crate::snapshots::{Seen, SharedReader};
use crate::tasks::queue::adoptions::{Adoptions, held_jobs};
use crate::tasks::wait::{Check, Condition, Waited, after, wait_until};

use super::TaskError;

use super::Tasks;

/// The nodes' own clocks need this long to bring every body to an end; a tick of each may come late.
const STOP_MAX: Duration = GRACE.saturating_add(ABORT_GRACE).saturating_add(TICK.saturating_mul(3));

/// What came of a stop.
#[derive(Clone, Debug)]
pub struct StopReport {
    /// As it stands now.
    pub task: Task,
    pub cancelled_queued: i64,
    pub cancelled_running: i64,
    /// It had ended before, and nothing was changed.
    pub was_terminal: bool,
    /// The grace period was not enough, and what still ran was cancelled without its result.
    pub escalated: bool,
    /// How long running jobs have to end.
    pub grace: Option<Duration>,
    pub waited_ms: u64,
}

/// How often what runs here is looked at while it ends.
const LOOK_EVERY: Duration = Duration::from_millis(50);

impl Tasks<'_> {
    /// Stops a task and all that it started. A graceful stop returns when the last job has ended, which the nodes see
    /// to within the grace period; if even that fails, the rest is cancelled. A caller that goes away loses nothing.
    ///
    /// # Errors
    /// `NotFound` for an unknown or foreign task. Stopping a finished one is an answer, not an error.
    pub async fn stop(
        self,
        owner: &Principal,
        id: &TaskId,
        mode: StopMode,
        reason: StopReason,
        caller: &CancellationToken,
    ) -> Result<StopReport, TaskError> {
        self.read_own(owner, id).await?;
        let began = self.runtime.clock().instant();
        self.catch_up(Some(id)).await?;
        let stopped = self.ask_to_stop(id, mode, reason).await?;
        let mut report = StopReport {
            cancelled_queued: stopped.cancelled_queued,
            cancelled_running: stopped.cancelled_running,
            was_terminal: stopped.was_terminal,
            escalated: false,
            grace: (mode == StopMode::Graceful).then_some(GRACE),
            waited_ms: 0,
            task: stopped.task,
        };
        if !report.task.status.is_terminal() {
            match self.wait_for_end(id, caller).await {
                Waited::Ready(task) => report.task = task,
                Waited::CallerDisconnected => {}
                Waited::Timeout => {
                    let stopped = self.ask_to_stop(id, StopMode::Immediate, reason).await?;
                    report.cancelled_running += stopped.cancelled_running;
                    // It may have ended by itself, unheard.
                    report.escalated = !stopped.was_terminal;
                    report.task = stopped.task;
                }
            }
        }
        report.waited_ms = u64::try_from((self.runtime.clock().instant() - began).as_millis()).unwrap_or(u64::MAX);
        Ok(report)
    }

    /// Tasks with a run of an agent on this machine, whether this process follows it or its daemon has left.
    ///
    /// # Errors
    /// A store that is away.
    pub async fn runs_here(self) -> Result<BTreeSet<TaskId>, TaskError> {
        Ok(self.jobs_of_runs().await?.into_iter().filter_map(|job| job.task_id).collect())
    }

    /// Those of [`Tasks::runs_here`] whose program, or its check, is in this state. Those that are in none wait for
    /// their next program.
    ///
    /// # Errors
    /// A store that is away.
    pub async fn runs_that_are(self, state: TraceState) -> Result<BTreeSet<TaskId>, TaskError> {
        let is_so = |job: &Job| {
            let trace = self.runtime.agents().and_then(|host| host.trace(&job.id));
            trace.is_some_and(|trace| trace.state == state)
        };
        let jobs = self.jobs_of_runs().await?.into_iter();
        Ok(jobs.filter(is_so).filter_map(|job| job.task_id).collect())
    }

    async fn jobs_of_runs(self) -> Result<Vec<Job>, TaskError> {
        let mut jobs = Vec::new();
        // What is left becomes held when this node takes it over. Read in this order, no run is missed.
        for left in self.runtime.store().run(ReadLeftRuns).await? {
            if left.host == self.runtime.host() {
                jobs.push(self.runtime.store().run(ReadJob(left.lease.job_id.clone())).await?);
            }
        }
        jobs.extend(self.held_runs().await?);
        Ok(jobs)
    }

    /// Cancels every task with a run on this machine, ends the programs of chats, and waits for their ends. Returns the
    /// tasks that have ended.
    ///
    /// # Errors
    /// A store that is away.
    pub async fn end_runs(self) -> Result<BTreeSet<TaskId>, TaskError> {
        let deadline = self.runtime.clock().instant() + STOP_MAX;
        // What another daemon has left is taken over first: only an owner can end it.
        while !self.follows_all_runs().await? && self.runtime.clock().instant() < deadline {
            self.runtime.part::<Adoptions>().look_now();
            self.runtime.clock().sleep(LOOK_EVERY).await;
        }
        self.catch_up(None).await?;
        self.runtime.running().end_chats();
        let mut stopped = BTreeSet::new();
        for id in self.runs_here().await? {
            if !self.ask_to_stop(&id, StopMode::Immediate, StopReason::UserCancelled).await?.was_terminal {
                stopped.insert(id);
            }
        }
        let mut ended = BTreeSet::new();
        for id in stopped {
            if let Waited::Ready(_) = self.wait_for_end(&id, &CancellationToken::new()).await {
                ended.insert(id);
            }
        }
        // A task is cancelled at once; its processes have their grace.
        while (self.runtime.running().any_outlives() || !self.held_runs().await?.is_empty())
            && self.runtime.clock().instant() < deadline
        {
            self.runtime.clock().sleep(LOOK_EVERY).await;
        }
        Ok(ended)
    }

    /// Waits until the store has what runs on this machine had printed before this process came, and how those ended
    /// that are over: a stop takes their jobs away, and nothing can be stored after it. `of`: only runs of this task and
    /// of those below it.
    async fn catch_up(self, of: Option<&TaskId>) -> Result<(), TaskError> {
        let Some(host) = self.runtime.agents().filter(|_| self.runtime.workers() == Workers::All) else {
            return Ok(());
        };
        let deadline = self.runtime.clock().instant() + STOP_MAX;
        while self.is_behind(host.as_ref(), of).await? {
            if self.runtime.clock().instant() > deadline {
                tracing::warn!("a stop no longer waits for the output of a run");
                return Ok(());
            }
            self.runtime.part::<Adoptions>().look_now();
            self.runtime.clock().sleep(LOOK_EVERY).await;
        }
        Ok(())
    }

    async fn is_behind(self, host: &dyn AgentHost, of: Option<&TaskId>) -> Result<bool, TaskError> {
        let jobs = host.jobs_with_runs();
        if jobs.is_empty() {
            return Ok(false);
        }
        let left = self.runtime.store().run(ReadLeftRuns).await?;
        for id in jobs {
            let job = match self.runtime.store().run(ReadJob(id.clone())).await {
                Ok(job) => job,
                Err(StoreError::NotFound { .. }) => continue,
                Err(error) => return Err(error.into()),
            };
            let lease = Lease { job_id: job.id.clone(), attempt: job.attempt };
            let is_left = left.iter().any(|left| left.lease == lease);
            let is_held = job.owner_node.as_ref() == Some(&self.runtime.node()) && !job.state.is_finished();
            if job.kind != JobKind::AgentRun || !(is_left || is_held) || !self.is_below(&job, of).await? {
                continue;
            }
            let is_read = || self.runtime.running().notes(&lease).is_some_and(|notes| notes.is_caught_up());
            let is_behind = match host.trace(&id) {
                Some(trace) if trace.program == Program::Agent => match trace.state {
                    TraceState::Alive => is_left || !is_read(),
                    TraceState::Ended | TraceState::Lost | TraceState::MachineRestarted => true,
                    TraceState::NotBegun => false,
                },
                _ => false,
            };
            // Without its definition it cannot be followed.
            if is_behind && is_defined(host, &job) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether a job belongs to this task or to one below it.
    async fn is_below(self, job: &Job, of: Option<&TaskId>) -> Result<bool, TaskError> {
        let Some(of) = of else { return Ok(true) };
        let mut task = job.task_id.clone();
        while let Some(id) = task {
            if id == *of {
                return Ok(true);
            }
            task = self.runtime.store().run(ReadTasks(vec![id])).await?.pop().and_then(|task| task.parent_id);
        }
        Ok(false)
    }

    /// For a process that ends with its command: waits until it has ended the runs of jobs that were stopped, and ends
    /// those that it does not follow.
    ///
    /// # Errors
    /// A store that is away.
    pub async fn end_stopped(self, jobs: &[JobId]) -> Result<(), TaskError> {
        let deadline = self.runtime.clock().instant() + STOP_MAX;
        let is_running = || self.runtime.running().leases().iter().any(|lease| jobs.contains(&lease.job_id));
        while is_running() && self.runtime.clock().instant() < deadline {
            self.runtime.clock().sleep(LOOK_EVERY).await;
        }
        let Some(host) = self.runtime.agents() else { return Ok(()) };
        for id in jobs {
            if self.runtime.store().run(ReadJob(id.clone())).await?.state.is_finished() {
                self.give_up_runs(host.as_ref(), id).await?;
            }
        }
        Ok(())
    }

    /// Ends what is left of the runs of a job that is over, and adds to the job what they have changed.
    pub(crate) async fn give_up_runs(self, host: &dyn AgentHost, job: &JobId) -> Result<(), StoreError> {
        let adoptions = self.runtime.part::<Adoptions>();
        let _alone = adoptions.giving_up().await;
        if let Some(work) = host.give_up(job, None).await {
            self.runtime
                .store()
                .run(KeepWork { job: job.clone(), work: work.clone(), now: self.runtime.clock().now() })
                .await?;
        }
        Ok(())
    }

    /// Whether every run on this machine has a body in this process: a job that is cancelled before its body begins
    /// gets none, and its program would be left alone.
    async fn follows_all_runs(self) -> Result<bool, TaskError> {
        if self.runtime.store().run(ReadLeftRuns).await?.iter().any(|left| left.host == self.runtime.host()) {
            return Ok(false);
        }
        let held = self.held_runs().await?;
        let lease = |job: &Job| Lease { job_id: job.id.clone(), attempt: job.attempt };
        Ok(held.iter().all(|job| self.runtime.running().contains(&lease(job))))
    }

    async fn held_runs(self) -> Result<Vec<Job>, TaskError> {
        let held = held_jobs(self.runtime, None).await?;
        Ok(held.into_iter().filter(|job| job.kind.outlives_owner()).collect())
    }

    async fn ask_to_stop(self, id: &TaskId, mode: StopMode, reason: StopReason) -> Result<StoppedTask, TaskError> {
        let request = StopTask { task_id: id.clone(), mode, reason, now: self.runtime.clock().now() };
        let stopped = self.runtime.store().run(request).await?;
        // The wake-up of the queues says the same; this one cannot be lost.
        self.runtime.look_for_orders();
        Ok(stopped)
    }

    async fn wait_for_end(self, id: &TaskId, caller: &CancellationToken) -> Waited<Task> {
        let mut ended = Ended { clock: *self.runtime.clock(), reader: self.runtime.snapshots().reader(id.clone()) };
        let deadline = after(self.runtime.clock(), STOP_MAX);
        wait_until(self.runtime.hub(), self.runtime.clock(), &[Topic::task(id)], Some(deadline), caller, &mut ended)
            .await
    }
}

fn is_defined(host: &dyn AgentHost, job: &Job) -> bool {
    let input: Option<RunInput> = serde_json::from_str(&job.input_json).ok();
    input.is_some_and(|input| host.agents().iter().any(|agent| agent.name == input.agent))
}

/// The task has ended.
struct Ended {
    clock: Clock,
    reader: SharedReader,
}

impl Condition for Ended {
    type Value = Task;

    async fn look(&mut self) -> Check<Task> {
        match self.reader.read().await {
            Ok(Seen::Found(task)) if task.status.is_terminal() => Check::Ready((*task).clone()),
            Ok(_) => Check::NotYet,
            Err(_) => Check::NotBefore(after(&self.clock, TICK)),
        }
    }
}
