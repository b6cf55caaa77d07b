//! Where bodies and background tasks are spawned: bodies into the crew of their dispatcher, background tasks into the
//! sets of [`Runtime::run`]. Each is awaited, and dropping the owner ends them.

use std::any::Any;
use std::collections::HashMap;
use std::future::pending;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use matsu_core::error_code::ErrorCode;
use matsu_core::job::{Job, JobEnd, JobKind, Lease, Retry};
use matsu_core::limits::{LINGER, SHUTDOWN_GRACE, STORE_CLOSE_MAX, TICK};
use matsu_core::slot::Slot;

use crate::context::{JobContext, Notes, Taken, open_meter};
use crate::options::Workers;
use crate::runtime::Runtime;
use crate::stop_signal::StopSpeaker;
use crate::upkeep::{Part, heart};

use super::dispatcher::{self, DISPATCHER_END_MAX};
use super::ending::{BodyEnd, failed};
use super::run_clock::RunClock;
use super::running::RunningJob;

/// The running bodies of one dispatcher.
#[derive(Default)]
pub struct Crew {
    bodies: JoinSet<JobEnd>,
    leases: HashMap<Id, Lease>,
}

impl Crew {
    /// Starts a claimed job and puts it among the running ones.
    pub fn start(&mut self, runtime: &Runtime, job: Job, taken: Taken) {
        let lease = Lease { job_id: job.id.clone(), attempt: job.attempt };
        let (speaker, stop) = StopSpeaker::new();
        let notes = Arc::new(Notes::default());
        let (kind, slot, task_id) = (job.kind, job.slot, job.task_id.clone());
        let body = runtime.bodies().of(kind);
        // A body that panics here would take its dispatcher along, and after that the next one.
        let bound = body.as_ref().map(|body| catch_unwind(AssertUnwindSafe(|| body.run_seconds_max(&job))));
        let clock = RunClock::new(bound.and_then(|bound| bound.ok().flatten()));
        let context = JobContext::new(runtime.clone(), job, lease.clone(), stop, Arc::clone(&notes), taken);
        let task = self.bodies.spawn(async move {
            let Some(body) = body else { return no_body(kind) };
            match open_meter(&context).await {
                Some(end) => end,
                None => body.run(context).await,
            }
        });
        self.leases.insert(task.id(), lease.clone());
        runtime.running().insert(RunningJob { lease, task_id, kind, slot, clock, speaker, task, notes });
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bodies.is_empty()
    }

    /// The next body that ends. Waits for ever if none runs. Nothing is lost if this is dropped.
    pub async fn ended(&mut self) -> (Lease, BodyEnd) {
        loop {
            match self.bodies.join_next_with_id().await {
                Some(joined) => {
                    if let Some(ended) = self.settle(joined) {
                        return ended;
                    }
                }
                None => pending().await,
            }
        }
    }

    /// One that has already ended, if there is one.
    pub fn try_ended(&mut self) -> Option<(Lease, BodyEnd)> {
        loop {
            let joined = self.bodies.try_join_next_with_id()?;
            if let Some(ended) = self.settle(joined) {
                return Some(ended);
            }
        }
    }

    fn settle(&mut self, joined: Result<(Id, JobEnd), JoinError>) -> Option<(Lease, BodyEnd)> {
        let (id, end) = match joined {
            Ok((id, end)) => (id, BodyEnd::Returned(end)),
            Err(error) => (error.id(), broken(error)),
        };
        self.leases.remove(&id).map(|lease| (lease, end))
    }
}

fn broken(error: JoinError) -> BodyEnd {
    match error.try_into_panic() {
        Ok(payload) => BodyEnd::Panicked(panic_message(payload.as_ref())),
        Err(_) => BodyEnd::Killed,
    }
}

fn panic_message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "the job panicked".to_owned())
}

/// Only kinds that have a body are claimed, so this is a defect.
fn no_body(kind: JobKind) -> JobEnd {
    let message = format!("no body for this kind in this process: {kind}");
    failed(ErrorCode::InternalError, message, Retry::Never, None)
}

/// The runtime's part of a clean shutdown; the listeners and the store need the rest.
const LEAVE_MAX: Duration = SHUTDOWN_GRACE.saturating_sub(LINGER).saturating_sub(STORE_CLOSE_MAX);

/// A runtime at work. Dropping it is a crash: everything stops where it is, and the store still names this node.
pub struct Service {
    shutdown: CancellationToken,
    work: JoinSet<()>,
}

impl Service {
    /// Cancel it to begin a clean shutdown.
    #[must_use]
    pub fn shutdown_token(&self) -> &CancellationToken {
        &self.shutdown
    }

    /// A clean shutdown; returns when it is done.
    pub async fn stop(mut self) {
        self.shutdown.cancel();
        while self.work.join_next().await.is_some() {}
    }
}

impl Runtime {
    /// Starts all parts in the background.
    #[must_use]
    pub fn start(&self) -> Service {
        let shutdown = CancellationToken::new();
        let mut work = JoinSet::new();
        let (runtime, token) = (self.clone(), shutdown.clone());
        work.spawn(async move { runtime.run(token).await });
        Service { shutdown, work }
    }

    /// Runs all parts until `shutdown` is cancelled, then ends what runs and takes leave of the store.
    pub async fn run(&self, shutdown: CancellationToken) {
        if !heart::register(self, &shutdown).await {
            return;
        }
        let stopped = CancellationToken::new();
        let mut upkeep = Parts::new(self, stopped.clone());
        upkeep.start(Part::ALL.iter().copied().map(Work::Upkeep));
        let mut dispatchers = Parts::new(self, shutdown.clone());
        if self.workers() == Workers::All {
            dispatchers.start(Slot::FOR_JOBS.iter().copied().map(Work::Dispatch));
        }
        tokio::select! {
            biased;
            () = dispatchers.watch() => {}
            () = upkeep.watch() => {}
        }
        let leave_by = self.clock().instant() + LEAVE_MAX;
        // The ticker and the orders go on until the last body is settled.
        tokio::select! {
            biased;
            _ = self.clock().within(DISPATCHER_END_MAX, dispatchers.join()) => {}
            () = upkeep.watch() => {}
        }
        drop(dispatchers);
        stopped.cancel();
        upkeep.join().await;
        self.leave(leave_by).await;
    }

    /// Whatever could not be settled before is settled here, or by the node that finds this one dead.
    async fn leave(&self, leave_by: Instant) {
        let node = self.node();
        let leave = self.store().reap_node(&node, self.clock().now());
        let left = leave_by.saturating_duration_since(self.clock().instant());
        match self.clock().within(left, leave).await {
            Some(Ok(_)) => tracing::info!(node.id = %node, "node deregistered"),
            Some(Err(error)) => tracing::warn!(%error, "node could not be deregistered"),
            None => tracing::warn!("node could not be deregistered in time"),
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Work {
    Dispatch(Slot),
    Upkeep(Part),
}

/// Parts that are started again if they break, until their token is cancelled.
struct Parts {
    runtime: Runtime,
    until: CancellationToken,
    tasks: JoinSet<()>,
    works: HashMap<Id, Work>,
}

impl Parts {
    fn new(runtime: &Runtime, until: CancellationToken) -> Self {
        Self { runtime: runtime.clone(), until, tasks: JoinSet::new(), works: HashMap::new() }
    }

    fn start(&mut self, works: impl IntoIterator<Item = Work>) {
        for work in works {
            let (runtime, until) = (self.runtime.clone(), self.until.clone());
            let task = match work {
                Work::Dispatch(slot) => self.tasks.spawn(async move { dispatcher::run(&runtime, slot, &until).await }),
                Work::Upkeep(part) => self.tasks.spawn(async move { part.run(&runtime, &until).await }),
            };
            self.works.insert(task.id(), work);
        }
    }

    /// Keeps the parts running. Returns when they have been ordered to end.
    async fn watch(&mut self) {
        loop {
            let joined = tokio::select! {
               biased;
                () = self.until.cancelled() => return,
                joined = self.tasks.join_next(), if !self.tasks.is_empty() => joined,
            };
            let Some(Err(broken)) = joined else { continue };
            if let Some(work) = self.works.remove(&broken.id()) {
                tracing::error!(part = ?work, error = %broken, "background task failed; it is started again");
                self.runtime.clock().sleep(TICK).await;
                self.start([work]);
            }
        }
    }

    async fn join(&mut self) {
        while let Some(joined) = self.tasks.join_next().await {
            if let Err(error) = joined {
                tracing::error!(%error, "background task failed during shutdown");
            }
        }
    }
}
