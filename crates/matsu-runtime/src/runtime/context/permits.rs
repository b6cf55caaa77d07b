//! Permits inside a job: taking one, lending the job's own to its descendants, freeing it for a question.
//!
//! Each is a bracket around a future. However the future ends, by being dropped too, the bracket closes.

use matsu_core::change::Topic;
use matsu_core::limits::TICK;
use matsu_core::ports::store::{MovePermit, ParkForInput, PermitStep, StoreError};
use matsu_core::slot::Slot;
use matsu_core::wake::Subscription;

use crate::stop_signal::StopLevel;

use super::mending::{Mend, MendOnDrop};
use super::{JobContext, Notes};

tokio::task_local! {
    /// Set while the future that is polled runs under an inner permit of its job.
    static INSIDE: ();
}

impl JobContext {
    /// Runs `work` while holding a permit of an inner slot; waits for one first. A job holds at most one at a time:
    /// parts of its body that run side by side take turns.
    ///
    /// # Errors
    /// As the store's; `LeaseLost` also when the job is ordered to abort while it waits; `LimitExceeded` inside the
    /// `work` of another permit, where waiting for a turn would never end. `work` has not begun then.
    pub async fn with_permit<T>(&self, slot: Slot, work: impl Future<Output = T>) -> Result<T, StoreError> {
        if INSIDE.try_with(|()| ()).is_ok() {
            let message = format!("a job that holds an inner permit cannot take one of {slot} as well");
            return Err(StoreError::LimitExceeded(message));
        }
        let _turn = tokio::select! {
            biased;
            turn = self.notes.inner_turn() => turn,
            _ = self.stop.at_least(StopLevel::Abort) => return Err(self.aborted()),
        };
        // Before asking: a permit that is freed right after a refusal would otherwise be slept through.
        let subscription = self.runtime.hub().subscribe(&[Topic::queue(slot)]);
        // Before taking: the answer to a permit that was taken can be dropped. Freeing what is not held is harmless.
        let mend = MendOnDrop::new(self, Mend::FreePermit(slot));
        let permits_max = self.runtime.limits().of(slot);
        while !self.take_permit(slot, permits_max).await? {
            tokio::select! {
                biased;
                () = subscription.woken() => {}
                // Another process may free one without a word.
                () = self.runtime.clock().sleep(TICK) => {}
                _ = self.stop.at_least(StopLevel::Abort) => return Err(self.aborted()),
            }
        }
        let value = INSIDE.scope((), work).await;
        if Mend::FreePermit(slot).apply(&self.runtime, &self.lease).await.is_ok() {
            mend.done();
        }
        Ok(value)
    }

    /// Runs `work`, which waits for tasks that this job started, while the job's own permit is theirs to use:
    /// with a limit of one, a job that waits for its child would otherwise wait for ever.
    ///
    /// # Errors
    /// As the store's; `work` has not begun then.
    pub async fn waiting_for_descendants<T>(&self, work: impl Future<Output = T>) -> Result<T, StoreError> {
        let slot = self.job.slot;
        let regain = Mend::RegainPermit(slot);
        // The mend before the loan: dropped together, the loan ends first and the mend sees that it was the last.
        let mend = MendOnDrop::new(self, regain);
        let lent = Lent::new(self);
        if lent.is_first {
            let _bracket = self.notes.brackets().await;
            let _was_lent = self.notes.take_mend(regain);
            self.runtime.store().run(MovePermit { lease: self.lease.clone(), step: PermitStep::Lend }).await?;
            self.runtime.wake_queue(slot);
        }
        let value = work.await;
        // The last wait to end takes the permit again: while another wait is open, its descendants may need it.
        let is_last = lent.give_back();
        if !is_last || regain.apply(&self.runtime, &self.lease).await.is_ok() {
            mend.done();
        }
        Ok(value)
    }

    /// Asks a question and waits for `answer` with the job's permit free and its clock stopped; then waits for a
    /// permit and goes on as the same attempt.
    ///
    /// # Errors
    /// As the store's; `LeaseLost` also when the job is ordered to abort before it could go on.
    pub async fn ask<T>(&self, question_json: &str, answer: impl Future<Output = T>) -> Result<T, StoreError> {
        self.ask_or_leave(question_json, answer, |_| false).await
    }

    /// As [`Self::ask`]. The question stays open where the answer is that this process leaves the job as it is.
    ///
    /// # Errors
    /// As [`Self::ask`].
    pub async fn ask_or_leave<T>(
        &self,
        question_json: &str,
        answer: impl Future<Output = T>,
        is_left: impl Fn(&T) -> bool,
    ) -> Result<T, StoreError> {
        let slot = self.job.slot;
        let subscription = self.runtime.hub().subscribe(&[Topic::queue(slot)]);
        let resume = Mend::Resume(slot);
        // Before parking: the answer to it can be dropped. Resuming what is not parked is harmless.
        let mend = MendOnDrop::new(self, resume);
        {
            let _bracket = self.notes.brackets().await;
            if self.notes.take_mend(resume) {
                // An earlier question was dropped, and the job is still parked for it.
                self.resume(&subscription, resume).await?;
            }
            let now = self.runtime.clock().now();
            self.runtime
                .store()
                .run(ParkForInput { lease: self.lease.clone(), question_json: question_json.to_owned(), now })
                .await?;
        }
        let parked = Parked::new(&self.notes);
        self.runtime.wake_queue(slot);
        let answer = answer.await;
        if !is_left(&answer) {
            self.resume(&subscription, resume).await?;
        }
        drop(parked);
        mend.done();
        Ok(answer)
    }

    async fn take_permit(&self, slot: Slot, permits_max: u32) -> Result<bool, StoreError> {
        let _bracket = self.notes.brackets().await;
        let _was_held = self.notes.take_mend(Mend::FreePermit(slot));
        for other in Slot::ALL.iter().filter(|other| **other != slot) {
            // A part of the body was dropped with this one; the job cannot hold both.
            if self.notes.take_mend(Mend::FreePermit(*other)) {
                Mend::FreePermit(*other).apply(&self.runtime, &self.lease).await?;
            }
        }
        self.runtime
            .store()
            .run(MovePermit { lease: self.lease.clone(), step: PermitStep::TakeInner { slot, permits_max } })
            .await
    }

    async fn resume(&self, subscription: &Subscription, resume: Mend) -> Result<(), StoreError> {
        while !resume.apply(&self.runtime, &self.lease).await? {
            tokio::select! {
                biased;
                () = subscription.woken() => {}
                () = self.runtime.clock().sleep(TICK) => {}
                _ = self.stop.at_least(StopLevel::Abort) => return Err(self.aborted()),
            }
        }
        Ok(())
    }

    fn aborted(&self) -> StoreError {
        StoreError::LeaseLost(self.lease.job_id.clone())
    }
}

/// The job does not count against its slot in this process while this lives.
struct Lent<'a> {
    notes: &'a Notes,
    is_first: bool,
    is_open: bool,
}

impl<'a> Lent<'a> {
    fn new(cx: &'a JobContext) -> Self {
        // Before the store frees the permit: the job that is woken by that must find a free permit here.
        Self { notes: &cx.notes, is_first: cx.notes.lend() == 1, is_open: true }
    }
}

impl Lent<'_> {
    /// Ends the loan; `true` if no other is open.
    fn give_back(mut self) -> bool {
        self.is_open = false;
        self.notes.regain() == 0
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        if self.is_open {
            self.notes.regain();
        }
    }
}

struct Parked<'a> {
    notes: &'a Notes,
}

impl<'a> Parked<'a> {
    fn new(notes: &'a Notes) -> Self {
        notes.set_parked(true);
        Self { notes }
    }
}

impl Drop for Parked<'_> {
    fn drop(&mut self) {
        self.notes.set_parked(false);
    }
}
