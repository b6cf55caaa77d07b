//! One dispatcher per slot: settles what ended and claims what is next, in one transaction.
//!
//! Invariants: an end is forgotten only when the store has answered for it; and the subscription is older than
//! every claim, so that work which arrives between a claim that found nothing and the sleep is not slept through.

use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use matsu_core::change::Topic;
use matsu_core::clock::Timestamp;
use matsu_core::error_code::ErrorCode;
use matsu_core::job::{Job, JobKind, JobState, Lease, Retry};
use matsu_core::limits::{RETRY_FIRST, SAFETY_READ_EVERY, SHUTDOWN_GRACE, STORE_RETRY_FIRST};
use matsu_core::page::PageRequest;
use matsu_core::ports::store::{Claim, ClaimOutcome, Finish, FinishAndClaim, JobFilter, JobUpdate, StoreError};
use matsu_core::slot::Slot;

use crate::runtime::Runtime;
use crate::upkeep::outage::Outage;

use super::ending::{BodyEnd, failed, final_end};
use super::share::Share;
use super::worker::Crew;

/// Claims and runs jobs of one slot until told to shut down, then brings them to an end.
pub async fn run(runtime: &Runtime, slot: Slot, shutdown: &CancellationToken) {
    // Before the first claim, and for good: see the invariant above.
    let subscription = runtime.hub().subscribe(&[Topic::queue(slot)]);
    runtime.running().forget(slot);
    let mut dispatcher = Dispatcher::new(runtime, slot);
    loop {
        dispatcher.collect().await;
        if shutdown.is_cancelled() {
            break;
        }
        match dispatcher.step().await {
            Ok(until) => {
                dispatcher.let_bodies_end().await;
                if !dispatcher.finishes.is_empty() {
                    continue;
                }
                tokio::select! {
                    biased;
                    () = shutdown.cancelled() => {}
                    (lease, end) = dispatcher.crew.ended() => {
                        dispatcher.note(&lease, end).await;
                        dispatcher.let_bodies_end().await;
                    }
                    () = subscription.woken() => {}
                    () = runtime.clock().sleep_until(until) => {}
                }
            }
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
    /// Ended here, not yet known to be settled there.
    finishes: Vec<Ending>,
    outage: Outage,
    share: Share,
    /// A claim may have been committed whose answer never came: look for jobs that nobody runs.
    must_adopt: bool,
}

struct Ending {
    kind: JobKind,
    finish: Finish,
    /// The store could not write the true end, so this one only says that.
    is_replaced: bool,
}

impl<'a> Dispatcher<'a> {
    fn new(runtime: &'a Runtime, slot: Slot) -> Self {
        let outage = Outage::new("dispatcher");
        // A dispatcher that broke and was started again finds the jobs of the one before.
        let (crew, share) = (Crew::default(), Share::default());
        Self { runtime, slot, crew, finishes: Vec::new(), outage, share, must_adopt: true }
    }

    /// Takes all bodies that have ended, so that they share one transaction.
    async fn collect(&mut self) {
        while let Some((lease, end)) = self.crew.try_ended() {
            self.note(&lease, end).await;
        }
    }

    /// Bodies that end at about the same time share a transaction: whoever is ready to run has its turn first, for as
    /// long as that brings in more of them.
    async fn let_bodies_end(&mut self) {
        while !self.crew.is_empty() {
            let before = self.finishes.len();
            tokio::task::yield_now().await;
            self.collect().await;
            if self.finishes.len() == before {
                return;
            }
        }
    }

    async fn note(&mut self, lease: &Lease, end: BodyEnd) {
        let Some(ended) = self.runtime.running().remove(lease) else { return };
        if let Some(text) = ended.notes.take_progress() {
            // The last word of a job is shown with its end; that it may be lost with the store is no harm.
            let update = JobUpdate::Progress(text);
            let written = self.runtime.store().update_job(lease, update, self.runtime.clock().now()).await;
            tracing::trace!(job.id = %lease.job_id, ok = written.is_ok(), "last progress");
        }
        if let BodyEnd::Panicked(message) = &end {
            tracing::error!(job.id = %lease.job_id, kind = %ended.kind, message, "a job panicked");
        }
        let end = final_end(ended.kind, ended.cause, end, ended.notes.take_partial_output());
        let finish = Finish { lease: lease.clone(), end };
        self.finishes.push(Ending { kind: ended.kind, finish, is_replaced: false });
    }

    /// One transaction with the store, if there is anything to say. Returns until when there is nothing to do, or
    /// how long to leave the store alone.
    async fn step(&mut self) -> Result<Instant, Duration> {
        if self.must_adopt {
            let adopted = self.adopt().await;
            self.outage.note(&adopted).map_or(Ok(()), Err)?;
        }
        let safety = self.runtime.clock().instant() + SAFETY_READ_EVERY;
        let jobs_max = self.claimable();
        let is_claiming = jobs_max > 0 && self.runtime.is_claiming();
        if self.finishes.is_empty() && !is_claiming {
            return Ok(self.share.next_look().map_or(safety, |next| next.min(safety)));
        }
        let claim = is_claiming.then(|| self.claim(jobs_max));
        let outcome = self.exchange(claim).await?;
        let mut next = outcome.next_run_at.map(|at| self.instant_of(at)).or(self.share.next_look());
        if is_claiming && self.runtime.nodes_at_work() > 1 && outcome.claimed.len() == jobs_max as usize {
            // That was this node's share; there may be more that nobody takes.
            next = Some(self.runtime.clock().instant());
        }
        if next.is_none() && !outcome.claimed.is_empty() {
            // Only a claim that finds nothing says when the next retry is due: ask again before one can be late.
            next = Some(self.runtime.clock().instant() + RETRY_FIRST);
        }
        for job in outcome.claimed {
            self.begin(job);
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

    fn claim(&self, jobs_max: u32) -> Claim {
        let permits_max = self.runtime.limits().of(self.slot);
        Claim { node: self.runtime.node(), slot: self.slot, jobs_max, permits_max }
    }

    /// Settles and claims. On failure every end is kept for the next time.
    async fn exchange(&mut self, claim: Option<Claim>) -> Result<ClaimOutcome, Duration> {
        let finishes = self.finishes.iter().map(|ending| ending.finish.clone()).collect();
        let is_claim = claim.is_some();
        let request = FinishAndClaim { finishes, claim, now: self.runtime.clock().now() };
        let mut outcome = self.runtime.store().finish_and_claim(request).await;
        if let Some(pause) = self.outage.note(&outcome) {
            self.must_adopt |= is_claim;
            return Err(pause);
        }
        let answers = outcome.as_mut().map(|outcome| std::mem::take(&mut outcome.finished)).unwrap_or_default();
        let endings = std::mem::take(&mut self.finishes);
        self.finishes =
            endings.into_iter().zip(answers).filter_map(|(ending, answer)| settle(ending, answer)).collect();
        Ok(outcome.unwrap_or_default())
    }

    fn begin(&mut self, job: Job) {
        metrics::counter!("matsu_jobs_claimed_total", "kind" => job.kind.as_str()).increment(1);
        tracing::debug!(job.id = %job.id, kind = %job.kind, attempt = job.attempt, "starts");
        self.crew.start(self.runtime, job);
    }

    /// Starts jobs that the store says this node runs and that nobody here knows of.
    async fn adopt(&mut self) -> Result<(), StoreError> {
        let node = self.runtime.node();
        let filter = JobFilter { state: Some(JobState::Running), slot: Some(self.slot), ..JobFilter::default() };
        let mut after = None;
        loop {
            let page = PageRequest::new(after, Some(u32::MAX));
            let page = self.runtime.store().list_jobs(&filter, &page).await?;
            for job in page.items {
                let lease = Lease { job_id: job.id.clone(), attempt: job.attempt };
                let is_ending = self.finishes.iter().any(|ending| ending.finish.lease == lease);
                if job.owner_node.as_ref() == Some(&node) && !is_ending && !self.runtime.running().contains(&lease) {
                    tracing::info!(job.id = %job.id, "a claim whose answer was lost is taken up");
                    self.begin(job);
                }
            }
            after = page.next;
            if after.is_none() {
                self.must_adopt = false;
                return Ok(());
            }
        }
    }

    /// Lets the bodies end, then makes them, and settles every end while there is time.
    async fn drain(&mut self) {
        let clock = *self.runtime.clock();
        let began = clock.instant();
        let (abort_at, kill_at) = (began + SHUTDOWN_GRACE / 2, began + SHUTDOWN_GRACE * 4 / 5);
        let mut is_aborted = false;
        self.runtime.running().shut_down(self.slot);
        loop {
            self.collect().await;
            let retry_after = if self.finishes.is_empty() { None } else { self.exchange(None).await.err() };
            let is_done = self.crew.is_empty() && self.finishes.is_empty();
            let now = clock.instant();
            if is_done || now >= began + SHUTDOWN_GRACE {
                break;
            }
            if now >= kill_at {
                self.runtime.running().kill(self.slot);
            } else if now >= abort_at && !is_aborted {
                is_aborted = true;
                self.runtime.running().abort_now(self.slot);
            }
            let next = [abort_at, kill_at, began + SHUTDOWN_GRACE].into_iter().find(|at| *at > now);
            let next = next.unwrap_or(now).min(retry_after.map_or(began + SHUTDOWN_GRACE, |pause| now + pause));
            tokio::select! {
                biased;
                (lease, end) = self.crew.ended() => self.note(&lease, end).await,
                () = clock.sleep_until(next) => {}
            }
        }
        if !self.finishes.is_empty() {
            tracing::warn!(slot = %self.slot, jobs = self.finishes.len(), "ended jobs could not be settled in time");
        }
    }

    fn instant_of(&self, at: Timestamp) -> Instant {
        self.runtime.clock().instant() + at.since(self.runtime.clock().now()).min(SAFETY_READ_EVERY)
    }
}

/// What the store says about one end. Returns what has to be said again.
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
            tracing::debug!(job.id = %job_id, "ended after its lease was lost; its end is dropped");
            None
        }
        Err(StoreError::Unavailable(_)) => Some(ending),
        Err(error) if ending.is_replaced => {
            tracing::error!(job.id = %job_id, %error, "a job cannot be settled");
            None
        }
        Err(error) => {
            tracing::error!(job.id = %job_id, %error, "the end of a job cannot be written; it is failed instead");
            let message = format!("the end of the job could not be written: {error}");
            ending.finish.end = failed(ErrorCode::InternalError, message, Retry::Never, None);
            ending.is_replaced = true;
            Some(ending)
        }
    }
}
