//! A node at work: one dispatcher for each slot, and the upkeep beside them. Background tasks are spawned here; each is
//! awaited, and dropping the owner ends them.

use std::collections::HashMap;
use std::time::Duration;

use tokio::task::{Id, JoinSet};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use matsu_core::limits::{LINGER, SHUTDOWN_GRACE, STORE_CLOSE_MAX, TICK};
use matsu_core::slot::Slot;

use crate::runtime::{Runtime, Workers};
use crate::tasks::queue::dispatcher::{self, DISPATCHER_END_MAX};
use crate::upkeep::{UpkeepLoop, heart};

/// The runtime's part of a clean shutdown; the listeners and the store need the rest.
const LEAVE_MAX: Duration = SHUTDOWN_GRACE.saturating_sub(LINGER).saturating_sub(STORE_CLOSE_MAX);

/// A runtime at work. Dropping it is a crash: everything stops where it is, and the store still names this node.
pub struct Service {
    shutdown: CancellationToken,
    work: JoinSet<()>,
}

impl Service {
    /// A clean shutdown; returns when it is done.
    pub async fn stop(mut self) {
        self.shutdown.cancel();
        while self.work.join_next().await.is_some() {}
    }

    /// Starts all parts in the background.
    #[must_use]
    pub fn start(runtime: &Runtime) -> Self {
        let shutdown = CancellationToken::new();
        let mut work = JoinSet::new();
        let (runtime, token) = (runtime.clone(), shutdown.clone());
        work.spawn(async move { run(&runtime, token).await });
        Self { shutdown, work }
    }
}

/// Runs all parts until `shutdown` is cancelled, then ends what runs and takes leave of the store.
pub async fn run(runtime: &Runtime, shutdown: CancellationToken) {
    if !heart::register(runtime, &shutdown).await {
        return;
    }
    let stopped = CancellationToken::new();
    let mut upkeep = Parts::new(runtime, stopped.clone());
    upkeep.start(UpkeepLoop::ALL.iter().copied().map(Work::Upkeep));
    let mut dispatchers = Parts::new(runtime, shutdown.clone());
    if runtime.workers() == Workers::All {
        dispatchers.start(Slot::FOR_JOBS.iter().copied().map(Work::Dispatch));
    }
    tokio::select! {
        biased;
        () = dispatchers.watch() => {}
        () = upkeep.watch() => {}
    }
    let leave_by = runtime.clock().instant() + LEAVE_MAX;
    // The ticker and the orders go on until the last body is settled.
    tokio::select! {
        biased;
        _ = runtime.clock().within(DISPATCHER_END_MAX, dispatchers.join()) => {}
        () = upkeep.watch() => {}
    }
    drop(dispatchers);
    stopped.cancel();
    upkeep.join().await;
    leave(runtime, leave_by).await;
}

/// Whatever could not be settled before is settled here, or by the node that finds this one dead.
async fn leave(runtime: &Runtime, leave_by: Instant) {
    let node = runtime.node();
    let leave = runtime.store().reap_node(&node, runtime.clock().now());
    let left = leave_by.saturating_duration_since(runtime.clock().instant());
    match runtime.clock().within(left, leave).await {
        Some(Ok(_)) => tracing::info!(node.id = %node, "node deregistered"),
        Some(Err(error)) => tracing::warn!(%error, "node could not be deregistered"),
        None => tracing::warn!("node could not be deregistered in time"),
    }
}

#[derive(Clone, Copy, Debug)]
enum Work {
    Dispatch(Slot),
    Upkeep(UpkeepLoop),
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
