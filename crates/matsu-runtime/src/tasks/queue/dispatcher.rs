//! One dispatcher per slot: settles what ended and claims what is next, in one transaction.
//!
//! Invariants: an end is forgotten only when the store has answered for it; and the subscription is older than
//! every claim, so that work which arrives between a claim that found nothing and the sleep is not slept through.
//! An attempt is begun at most once, also by a dispatcher that takes the place of one that broke.

mod drain;
mod lone;

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use matsu_core::change::Topic;
use matsu_core::clock::Timestamp;
use matsu_core::error_code::ErrorCode;
use matsu_core::job::{Job, JobEnd, JobKind, JobState, Lease, Retry};
use matsu_core::limits::{LONE_AFTER, RETRY_FIRST, SAFETY_READ_EVERY, STORE_RETRY_FIRST};
use matsu_core::ports::store::{Claim, ClaimOutcome, Finish, FinishAndClaim, JobUpdate, StoreError, UpdateJob};
use matsu_core::slot::Slot;

use crate::runtime::context::{Taken, close_meter};
use crate::runtime::{Outage, Runtime};
use crate::tasks::queue::adoptions::Adoptions;
use crate::tasks::queue::lone::Lone;

use super::adoptions::held_jobs;
use super::crew::Crew;
use super::ending::{BodyEnd, final_end};
use super::share::Share;

pub use drain::DISPATCHER_END_MAX;

/// Another thread may just be running what this one has begun: a body with little to do ends within a few turns.
const NEW_BODY_TURNS: u32 = 4;

/// How late a delayed job may get in line while others keep all workers busy.
const DUE_EVERY: Duration = Duration::from_millis(50);

/// Claims and runs jobs of one slot until the shutdown, then brings them to an end.
pub async fn run(runtime: &Runtime, slot: Slot, shutdown: &CancellationToken) {
    // Before the first claim, and for good: see the invariant above.
    let subscription = runtime.hub().subscribe(&[Topic::queue(slot)]);
    runtime.running().forget(slot);
    let mut dispatcher = Dispatcher::new(runtime, slot);
    while !shutdown.is_cancelled() {
        let turn = tokio::select! {
            biased;
            turn = dispatcher.turn() => turn,
            () = drain::step_takes_too_long(runtime, shutdown) => break,
        };
        match turn {
            Ok(_) if !dispatcher.finishes.is_empty() => {}
            Ok(until) => tokio::select! {
                biased;
                () = shutdown.cancelled() => {}
                (lease, end) = dispatcher.crew.ended() => dispatcher.ended.push_back((lease, end)),
                () = subscription.woken() => {}
                () = runtime.clock().sleep_until(until) => {}
            },
            Err(pause) => tokio::select! {
                biased;
                () = shutdown.cancelled() => {}
                () = runtime.clock().sleep(pause) => {}
            },
        }
    }
    dispatcher.drain().await;
}

struct Dispatcher<'a> {
    runtime: &'a Runtime,
    slot: Slot,
    crew: Crew,
    /// Bodies that have ended and were not looked at yet.
    ended: VecDeque<(Lease, BodyEnd)>,
    /// Ended here, not yet known to be settled there.
    finishes: Vec<Ending>,
    outage: Outage,
    share: Share,
    /// From when on a claim looks for delayed jobs whose time has come.
    due_from: Instant,
    /// When to look for a job that must run alone.
    lone_look: Instant,
    /// A claim may have been committed whose answer never came, or a dispatcher broke: look for jobs of this node that
    /// no body runs.
    must_adopt: bool,
}

struct Ending {
    kind: JobKind,
    finish: Finish,
    /// The store could not write the true end, so this one only reports that.
    is_replaced: bool,
}

impl<'a> Dispatcher<'a> {
    fn new(runtime: &'a Runtime, slot: Slot) -> Self {
        let outage = Outage::new("dispatcher");
        // A dispatcher that broke and was started again finds the jobs of the one before.
        let (crew, share) = (Crew::default(), Share::default());
        let (ended, finishes, due_from) = (VecDeque::new(), Vec::new(), runtime.clock().instant());
        let lone_look = due_from + LONE_AFTER;
        Self { runtime, slot, crew, ended, finishes, outage, share, due_from, lone_look, must_adopt: true }
    }

    /// One round: what ended, the store, and what ended meanwhile. Can be dropped at any await: an end is in
    /// `ended` or in `finishes` until the store has answered for it.
    async fn turn(&mut self) -> Result<Instant, Duration> {
        if self.ended.is_empty() {
            self.collect().await
        } else {
            self.let_bodies_end(0).await
        }
        self.look_for_lone().await?;
        let until = self.step().await?;
        self.let_bodies_end(NEW_BODY_TURNS).await;
        Ok(until.min(self.lone_look))
    }

    /// Takes all bodies that have ended, so that they share one transaction.
    async fn collect(&mut self) {
        while let Some(ended) = self.crew.try_ended() {
            self.ended.push_back(ended);
        }
        while let Some((lease, _)) = self.ended.front() {
            last_words(self.runtime, lease).await;
            if let Some((lease, end)) = self.ended.pop_front() {
                self.note(lease, end);
            }
        }
    }

    /// Bodies that end at about the same time share a transaction: other futures that are ready run first, for as long
    /// as that brings in more ends, and then this many times in vain.
    async fn let_bodies_end(&mut self, in_vain_max: u32) {
        self.collect().await;
        let mut in_vain = 0;
        while !self.crew.is_empty() && in_vain <= in_vain_max {
            let before = self.finishes.len();
            tokio::task::yield_now().await;
            self.collect().await;
            in_vain = if self.finishes.len() == before { in_vain + 1 } else { 0 };
        }
    }

    fn note(&mut self, lease: Lease, end: BodyEnd) {
        let Some(ended) = self.runtime.running().remove(&lease) else { return };
        if let BodyEnd::Panicked(message) = &end {
            tracing::error!(job.id = %lease.job_id, kind = %ended.kind, message, "a job panicked");
        }
        let end = final_end(ended.kind, ended.cause, end, ended.notes.take_partial_output());
        if end == JobEnd::StillRuns {
            tracing::info!(job.id = %lease.job_id, "a run goes on without this process");
            self.settled(&lease);
            return;
        }
        self.finishes.push(Ending { kind: ended.kind, finish: Finish { lease, end }, is_replaced: false });
    }

    /// One transaction with the store, if there is anything to write or to claim. Returns until when there is nothing
    /// to do, or how long to leave the store alone.
    async fn step(&mut self) -> Result<Instant, Duration> {
        if self.must_adopt || self.runtime.part::<Adoptions>().take(self.slot) {
            self.must_adopt = true;
            let adopted = self.adopt().await;
            self.outage.note(&adopted).map_or(Ok(()), Err)?;
        }
        let safety = self.runtime.clock().instant() + SAFETY_READ_EVERY;
        let lone = self.runtime.part::<Lone>();
        let _gate = lone.gate.read().await;
        let jobs_max = self.claimable();
        let may_claim = self.runtime.is_claiming() && !lone.holds_others_back();
        let claim = self.claim(jobs_max).filter(|_| may_claim);
        let is_claiming = claim.is_some();
        let wakes_due = claim.as_ref().is_some_and(|claim| claim.wakes_due);
        if self.finishes.is_empty() && !is_claiming {
            return Ok(self.share.next_look().map_or(safety, |next| next.min(safety)));
        }
        let outcome = self.exchange(claim).await?;
        let found_enough = is_claiming && outcome.claimed.len() == jobs_max as usize;
        self.note_due(found_enough);
        let mut next = outcome.next_run_at.map(|at| self.instant_of(at)).or(self.share.next_look());
        let is_share = self.runtime.nodes_at_work() > 1 && found_enough;
        if is_share || (is_claiming && !found_enough && !wakes_due) {
            // That was this node's share, and there may be more jobs that no other node takes; or something may be due.
            next = Some(self.runtime.clock().instant());
        }
        if next.is_none() && !outcome.claimed.is_empty() {
            // Only a claim that finds nothing says when the next retry is due: ask again before one can be late.
            next = Some(self.runtime.clock().instant() + RETRY_FIRST);
        }
        for job in outcome.claimed {
            self.begin(job, Taken::Claimed);
        }
        if !self.finishes.is_empty() {
            return Err(STORE_RETRY_FIRST);
        }
        // Wall time can jump, so no sleep is longer than the safety interval.
        Ok(next.map_or(safety, |next| next.min(safety)))
    }

    fn claimable(&mut self) -> u32 {
        let (limit, holding) = (self.runtime.limits().of(self.slot), self.runtime.running().holding(self.slot));
        self.share.claimable(limit, holding, self.runtime.nodes_at_work(), self.runtime.clock().instant())
    }

    /// While every claim finds as much as it wants, delayed jobs get in line a moment late.
    fn note_due(&mut self, found_enough: bool) {
        let now = self.runtime.clock().instant();
        match found_enough {
            true if self.due_from <= now => self.due_from = now + DUE_EVERY,
            true => {}
            false => self.due_from = now,
        }
    }

    /// `None`: there is nothing that this node could take.
    fn claim(&self, jobs_max: u32) -> Option<Claim> {
        let kinds = self.runtime.bodies().kinds();
        let permits_max = self.runtime.limits().of(self.slot);
        let wakes_due = self.due_from <= self.runtime.clock().instant();
        let claim = Claim { node: self.runtime.node(), slot: self.slot, kinds, jobs_max, permits_max, wakes_due };
        (jobs_max > 0 && !claim.kinds.is_empty()).then_some(claim)
    }

    /// Settles and claims. On failure every end is kept for the next time.
    async fn exchange(&mut self, claim: Option<Claim>) -> Result<ClaimOutcome, Duration> {
        let finishes = self.finishes.iter().map(|ending| ending.finish.clone()).collect();
        let is_claim = claim.is_some();
        let request = FinishAndClaim { finishes, claim, now: self.runtime.clock().now() };
        let mut outcome = self.runtime.store().run(request).await;
        if let Some(pause) = self.outage.note(&outcome) {
            self.must_adopt |= is_claim;
            return Err(pause);
        }
        let answers = outcome.as_mut().map(|outcome| std::mem::take(&mut outcome.finished)).unwrap_or_default();
        for (ending, answer) in std::mem::take(&mut self.finishes).into_iter().zip(answers) {
            let lease = ending.finish.lease.clone();
            match settle(ending, answer) {
                Some(again) => self.finishes.push(again),
                None => self.settled(&lease),
            }
        }
        Ok(outcome.unwrap_or_default())
    }

    fn settled(&mut self, lease: &Lease) {
        self.runtime.running().settled(lease);
        if self.runtime.part::<Lone>().settled(lease) {
            // The next one that must run alone need not wait for the next look.
            self.lone_look = self.runtime.clock().instant();
            self.runtime.wake_queues();
        }
    }

    fn begin(&mut self, job: Job, taken: Taken) {
        metrics::counter!("matsu_jobs_claimed_total", "kind" => job.kind.as_str()).increment(1);
        tracing::debug!(job.id = %job.id, kind = %job.kind, attempt = job.attempt, "starts");
        self.crew.start(self.runtime, job, taken);
    }

    /// Looks for jobs that the store says this node holds and that are not known here. A claim whose answer was lost is
    /// begun now. A body that was begun ended with its dispatcher: what becomes of its job, the kind decides.
    async fn adopt(&mut self) -> Result<(), StoreError> {
        held_jobs(self.runtime, Some(self.slot)).await?.into_iter().for_each(|job| self.adopt_one(job));
        self.must_adopt = false;
        Ok(())
    }

    fn adopt_one(&mut self, job: Job) {
        let lease = Lease { job_id: job.id.clone(), attempt: job.attempt };
        let is_ending = self.finishes.iter().any(|ending| ending.finish.lease == lease);
        if is_ending || self.runtime.running().contains(&lease) {
            return;
        }
        if self.runtime.running().was_begun(&lease) && !job.kind.outlives_owner() {
            tracing::warn!(job.id = %job.id, "job was running when its dispatcher failed");
            let finish = Finish { lease, end: JobEnd::OwnerLost };
            self.finishes.push(Ending { kind: job.kind, finish, is_replaced: false });
        } else {
            tracing::info!(job.id = %job.id, attempt = job.attempt, "claimed job of this node is resumed");
            self.begin(job, Taken::TakenOver);
        }
    }

    fn instant_of(&self, at: Timestamp) -> Instant {
        self.runtime.clock().instant() + at.since(self.runtime.clock().now()).min(SAFETY_READ_EVERY)
    }
}

/// What a body leaves behind that must be written before its end. That it may be lost with the store is no harm.
async fn last_words(runtime: &Runtime, lease: &Lease) {
    let Some(notes) = runtime.running().notes(lease) else { return };
    close_meter(runtime, lease, &notes).await;
    let Some(text) = notes.take_progress() else { return };
    let written = runtime
        .store()
        .run(UpdateJob { lease: lease.clone(), update: JobUpdate::LastProgress(text), now: runtime.clock().now() })
        .await;
    tracing::trace!(job.id = %lease.job_id, ok = written.is_ok(), "last progress");
}

/// Handles the store's answer to one end. Returns an end that has to be written again.
fn settle(mut ending: Ending, answer: Result<JobState, StoreError>) -> Option<Ending> {
    let job_id = &ending.finish.lease.job_id;
    match answer {
        Ok(state) => {
            let labels = [("kind", ending.kind.as_str()), ("state", state.as_str())];
            metrics::counter!("matsu_jobs_finished_total", &labels).increment(1);
            tracing::debug!(job.id = %job_id, %state, "ended");
            None
        }
        Err(StoreError::LeaseLost(_) | StoreError::NotFound { .. }) => {
            tracing::debug!(job.id = %job_id, "job ended after it lost its lease; result discarded");
            None
        }
        Err(StoreError::Unavailable(_)) => Some(ending),
        Err(error) if ending.is_replaced => {
            tracing::error!(job.id = %job_id, %error, "the end of a job could not be stored");
            None
        }
        Err(error) => {
            tracing::error!(job.id = %job_id, %error, "job result could not be stored; job marked as failed");
            let message = format!("the result of the job could not be stored: {error}");
            ending.finish.end = JobEnd::failed_with(ErrorCode::InternalError, message, Retry::Never, None);
            ending.is_replaced = true;
            Some(ending)
        }
    }
}
