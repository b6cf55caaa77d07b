//! The runs of this process, for whoever ends one and wants to know what that took, and for calls that come from
//! inside a run: their waits lend the run's permit to what it started.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use matsu_core::id::TaskId;
use matsu_core::job::Lease;
use matsu_core::page::PageRequest;
use matsu_core::ports::store::TaskFilter;
use matsu_core::principal::Principal;
use matsu_core::run::Mode;

use crate::context::JobContext;
use crate::runtime::Runtime;

/// Where a run sits while it lasts.
#[derive(Clone)]
pub struct RunSeat {
    pub context: JobContext,
    pub mode: Mode,
    ended: watch::Receiver<Option<u32>>,
}

impl RunSeat {
    #[must_use]
    pub fn task_id(&self) -> Option<&TaskId> {
        self.context.job.task_id.as_ref()
    }

    /// How many processes were ended with it; waits for that.
    pub async fn processes_ended(&self) -> u32 {
        let mut ended = self.ended.clone();
        let processes = ended.wait_for(Option::is_some).await.ok().and_then(|processes| *processes);
        // Whoever would have said so was dropped: the shim ends the processes without anybody to tell.
        processes.unwrap_or(0)
    }
}

/// All of them, in the order they began.
#[derive(Default)]
pub struct LiveRuns {
    seats: Mutex<Vec<(Lease, RunSeat)>>,
}

impl LiveRuns {
    /// Takes a seat until what is returned is dropped.
    #[must_use]
    pub fn sit_down(self: &Arc<Self>, context: &JobContext, mode: Mode) -> Seated {
        let (ended, listener) = watch::channel(None);
        let lease = context.lease.clone();
        let seat = RunSeat { context: context.clone(), mode, ended: listener };
        self.lock().push((lease.clone(), seat));
        Seated { runs: Arc::clone(self), lease, ended }
    }

    /// The runs of these tasks.
    #[must_use]
    pub fn of_tasks(&self, tasks: &[TaskId]) -> Vec<RunSeat> {
        let seats = self.lock();
        let of_tasks = seats.iter().filter(|(_, seat)| seat.task_id().is_some_and(|id| tasks.contains(id)));
        of_tasks.map(|(_, seat)| seat.clone()).collect()
    }

    /// The run of this name, as its processes carry it.
    #[must_use]
    pub fn find(&self, job: &str, attempt: i64) -> Option<RunSeat> {
        let seats = self.lock();
        let found = seats.iter().find(|(lease, _)| lease.job_id.as_str() == job && lease.attempt == attempt);
        found.map(|(_, seat)| seat.clone())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(Lease, RunSeat)>> {
        self.seats.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Runtime {
    /// The runs of a task and of those it started, as far as they run in this process.
    pub async fn runs_below(&self, owner: &Principal, id: &TaskId) -> Vec<RunSeat> {
        let mut family = vec![id.clone()];
        let mut level = 0;
        while let Some(parent) = family.get(level).cloned() {
            level += 1;
            let filter = TaskFilter { parent: Some(parent), ..TaskFilter::default() };
            let children = self.list(owner, filter, &PageRequest::new(None, Some(u32::MAX))).await;
            family.extend(children.map(|page| page.items).unwrap_or_default().into_iter().map(|task| task.id));
        }
        self.live_runs().of_tasks(&family)
    }
}

/// A run's own end of its seat.
pub struct Seated {
    runs: Arc<LiveRuns>,
    lease: Lease,
    ended: watch::Sender<Option<u32>>,
}

impl Seated {
    pub fn set_processes_ended(&self, processes: u32) {
        self.ended.send_replace(Some(processes));
    }
}

impl Drop for Seated {
    fn drop(&mut self) {
        self.runs.lock().retain(|(lease, _)| *lease != self.lease);
    }
}
