//! The bodies this process runs, as seen by the code that may stop them. The dispatchers add and remove them; the
//! ticker and the orders only signal those that are there.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::task::AbortHandle;
use tokio::time::Instant;

use matsu_core::id::TaskId;
use matsu_core::job::{JobKind, Lease};
use matsu_core::limits::PROGRESS_EVERY;
use matsu_core::ports::store::{Order, OrderKind, ProgressNote};
use matsu_core::slot::Slot;

use super::context::{Notes, Spend};
use super::run_clock::{Act, Cause, Counting, RunClock};
use crate::stop_signal::StopSender;

#[derive(Default)]
pub struct Running {
    /// In start order: few enough to walk, and all are signalled in the same order every time.
    jobs: Mutex<Vec<RunningJob>>,
    /// Attempts for which a body was started, until the store has answered for their end. A dispatcher that breaks
    /// loses what it knew; an attempt that was begun must not be begun again all the same.
    begun: Mutex<HashSet<Lease>>,
    /// When progress of a task, or of a job without one, was last shown.
    shown: Mutex<HashMap<String, Instant>>,
}

pub struct RunningJob {
    pub lease: Lease,
    pub task_id: Option<TaskId>,
    pub kind: JobKind,
    pub slot: Slot,
    pub clock: RunClock,
    pub stop: StopSender,
    pub task: AbortHandle,
    pub notes: Arc<Notes>,
}

/// What is left of a body that has ended.
pub struct Ended {
    pub kind: JobKind,
    pub cause: Option<Cause>,
    pub notes: Arc<Notes>,
}

impl RunningJob {
    /// Jobs of one task take turns together.
    fn progress_key(&self) -> &str {
        self.task_id.as_ref().map_or(self.lease.job_id.as_str(), TaskId::as_str)
    }

    fn act(&self, act: Act) {
        match act {
            Act::Stop(level) => self.stop.send(level),
            Act::Kill => self.task.abort(),
        }
    }
}

impl Running {
    pub fn insert(&self, job: RunningJob) {
        metrics::gauge!("matsu_jobs_running", "slot" => job.slot.as_str()).increment(1.0);
        self.begun().insert(job.lease.clone());
        self.lock().push(job);
    }

    /// Whether a body was started for this attempt whose end the store has not answered for.
    #[must_use]
    pub fn was_begun(&self, lease: &Lease) -> bool {
        self.begun().contains(lease)
    }

    /// The store has answered for the end of this attempt.
    pub fn settled(&self, lease: &Lease) {
        self.begun().remove(lease);
    }

    pub fn notes(&self, lease: &Lease) -> Option<Arc<Notes>> {
        self.lock().iter().find(|job| job.lease == *lease).map(|job| Arc::clone(&job.notes))
    }

    pub fn remove(&self, lease: &Lease) -> Option<Ended> {
        let mut jobs = self.lock();
        let at = jobs.iter().position(|job| job.lease == *lease)?;
        let job = jobs.remove(at);
        metrics::gauge!("matsu_jobs_running", "slot" => job.slot.as_str()).decrement(1.0);
        Some(Ended { kind: job.kind, cause: job.clock.cause(), notes: job.notes })
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[must_use]
    pub fn contains(&self, lease: &Lease) -> bool {
        self.lock().iter().any(|job| job.lease == *lease)
    }

    #[must_use]
    pub fn leases(&self) -> Vec<Lease> {
        self.lock().iter().map(|job| job.lease.clone()).collect()
    }

    /// Bodies of the slot that hold a permit: not those that wait for descendants or for a person.
    #[must_use]
    pub fn holding(&self, slot: Slot) -> u32 {
        let holding = self.lock().iter().filter(|job| job.slot == slot && job.notes.holds_permit()).count();
        u32::try_from(holding).unwrap_or(u32::MAX)
    }

    /// Bodies whose work would end with this process.
    #[must_use]
    pub fn bound_here(&self) -> usize {
        self.lock().iter().filter(|job| !job.kind.outlives_owner()).count()
    }

    /// Ends the programs of chats. Bodies with a task end with their task.
    pub fn end_chats(&self) {
        for job in self.lock().iter_mut().filter(|job| job.kind == JobKind::AgentChat) {
            if let Some(act) = job.clock.order(OrderKind::Abort) {
                job.act(act);
            }
        }
    }

    /// Whether a body runs whose work would go on without this process.
    #[must_use]
    pub fn any_outlives(&self) -> bool {
        self.lock().iter().any(|job| job.kind.outlives_owner())
    }

    /// Whether a body runs that does its work in this very process.
    #[must_use]
    pub fn any_inside(&self) -> bool {
        self.lock().iter().any(|job| job.kind.runs_inside())
    }

    /// One second has passed for every job.
    pub fn tick(&self) {
        for job in self.lock().iter_mut() {
            let counting = if job.notes.is_parked() { Counting::StandsStill } else { Counting::Runs };
            let mut acts = vec![job.clock.tick(counting)];
            if counting == Counting::Runs {
                acts.push(match job.notes.spend_second() {
                    Spend::Enough => None,
                    Spend::Low => job.clock.budget_low(),
                    Spend::Over => job.clock.budget_over(),
                });
            }
            acts.into_iter().flatten().for_each(|act| job.act(act));
        }
    }

    pub fn apply(&self, orders: &[Order]) {
        let mut jobs = self.lock();
        for order in orders {
            if let Some(job) = jobs.iter_mut().find(|job| job.lease == order.lease)
                && let Some(act) = job.clock.order(order.kind)
            {
                job.act(act);
            }
        }
    }

    /// The store has taken every lease from this node. Bodies end; what outlives them is taken over by the next owner.
    pub fn lose_all(&self) {
        for job in self.lock().iter_mut() {
            let act = if job.kind.outlives_owner() { job.clock.shut_down() } else { job.clock.order(OrderKind::Abort) };
            if let Some(act) = act {
                job.act(act);
            }
        }
    }

    /// What a body does has gone on for this long already, in other processes.
    pub fn set_ran(&self, lease: &Lease, seconds: u32) {
        if let Some(job) = self.lock().iter_mut().find(|job| job.lease == *lease) {
            job.clock.set_ran(seconds);
        }
    }

    pub fn shut_down(&self, slot: Slot) {
        self.each_of(slot, |job| job.clock.shut_down());
    }

    /// A body whose work outlives it is only dropped: to abort would end the work.
    pub fn abort_now(&self, slot: Slot) {
        self.each_of(slot, |job| if job.kind.outlives_owner() { None } else { job.clock.abort_now() });
    }

    pub fn kill(&self, slot: Slot) {
        self.each_of(slot, |_| Some(Act::Kill));
    }

    /// Drops what a dispatcher that is no longer there had started; their tasks ended with it.
    pub fn forget(&self, slot: Slot) {
        self.lock().retain(|job| {
            if job.slot == slot {
                metrics::gauge!("matsu_jobs_running", "slot" => slot.as_str()).decrement(1.0);
            }
            job.slot != slot
        });
    }

    /// Progress of all tasks whose turn has come, which begins anew with that.
    #[must_use]
    pub fn take_due_progress(&self, now: Instant) -> Vec<(ProgressNote, Arc<Notes>)> {
        let jobs = self.lock();
        let mut turns = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        // Whose turn is over is as good as one that never had any.
        turns.retain(|_, shown_at| now.saturating_duration_since(*shown_at) < PROGRESS_EVERY);
        let speaking = jobs.iter().filter(|job| job.notes.has_progress() && !turns.contains_key(job.progress_key()));
        let due: Vec<_> = speaking
            .filter_map(|job| {
                let note = ProgressNote { lease: job.lease.clone(), progress_json: job.notes.take_progress()? };
                Some((note, Arc::clone(&job.notes), job.progress_key().to_owned()))
            })
            .collect();
        turns.extend(due.iter().map(|(_, _, who)| (who.clone(), now)));
        due.into_iter().map(|(note, notes, _)| (note, notes)).collect()
    }

    /// Bodies whose seconds the runtime counts.
    #[must_use]
    pub fn metered(&self) -> Vec<(Lease, Arc<Notes>)> {
        let jobs = self.lock();
        let metered = jobs.iter().filter(|job| job.notes.is_metered());
        metered.map(|job| (job.lease.clone(), Arc::clone(&job.notes))).collect()
    }

    /// Bodies that left something to be mended.
    #[must_use]
    pub fn to_mend(&self) -> Vec<(Lease, Arc<Notes>)> {
        let jobs = self.lock();
        let left = jobs.iter().filter(|job| job.notes.has_mends());
        left.map(|job| (job.lease.clone(), Arc::clone(&job.notes))).collect()
    }

    fn each_of(&self, slot: Slot, mut decide: impl FnMut(&mut RunningJob) -> Option<Act>) {
        for job in self.lock().iter_mut().filter(|job| job.slot == slot) {
            if let Some(act) = decide(job) {
                job.act(act);
            }
        }
    }

    fn begun(&self) -> MutexGuard<'_, HashSet<Lease>> {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<RunningJob>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
