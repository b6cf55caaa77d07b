//! Starting a job that must run alone.

use super::*;

use crate::tasks::queue::lone::Lone;
use matsu_core::ports::store::{ClaimAlone, IsLoneJobWaiting};

/// How often a job that must run alone is looked for while what runs beside it comes to its end.
const LONE_RETRY: Duration = Duration::from_millis(200);

impl Dispatcher<'_> {
    /// Looks now and then whether a job of this slot must run alone, and starts it once nothing runs beside it.
    pub(super) async fn look_for_lone(&mut self) -> Result<(), Duration> {
        let (now, lone) = (self.runtime.clock().instant(), self.runtime.part::<Lone>());
        if now < self.lone_look {
            return Ok(());
        }
        self.lone_look = now + SAFETY_READ_EVERY;
        let Some(claim) = self.claim(1).filter(|_| self.runtime.is_claiming() && !lone.is_running()) else {
            lone.set_waiting(self.slot, false);
            return Ok(());
        };
        let waiting =
            self.runtime.store().run(IsLoneJobWaiting { claim: claim.clone(), now: self.runtime.clock().now() }).await;
        self.outage.note(&waiting).map_or(Ok(()), Err)?;
        let is_waiting = waiting.unwrap_or(false);
        lone.set_waiting(self.slot, is_waiting);
        if !is_waiting {
            return Ok(());
        }
        self.lone_look = now + LONE_RETRY;
        let _gate = lone.gate.write().await;
        if lone.is_running() || self.runtime.running().any_inside() {
            return Ok(());
        }
        let claimed =
            self.runtime.store().run(ClaimAlone { claim: claim.clone(), now: self.runtime.clock().now() }).await;
        // As for any claim: it may have been committed although no answer came.
        self.must_adopt |= claimed.is_err();
        self.outage.note(&claimed).map_or(Ok(()), Err)?;
        if let Ok(Some(job)) = claimed {
            tracing::warn!(job.id = %job.id, "the server died too often while this job ran; now it runs alone");
            lone.begun(Lease { job_id: job.id.clone(), attempt: job.attempt });
            lone.set_waiting(self.slot, false);
            self.begin(job, crate::runtime::context::Taken::Claimed);
        }
        Ok(())
    }
}
