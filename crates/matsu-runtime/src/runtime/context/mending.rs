//! Undoing what a dropped future of a body could not: giving back a permit needs the store, and a drop cannot wait.
//!
//! A body may drop a part of itself (a `select!`, a timeout) in the middle of a borrowed state. What it had taken is
//! put on its notes; the part of the runtime that looks for orders works it off. A body that begins the same thing
//! again before that takes the mend back, or the late mend would undo the new bracket and not the old one.

use std::sync::Arc;

use matsu_core::job::Lease;
use matsu_core::ports::store::{MovePermit, PermitStep, ResumeFromInput, StoreError};
use matsu_core::slot::Slot;

use crate::runtime::Runtime;

use super::{JobContext, Notes};

/// What has to be put right for a job that goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mend {
    /// Give this inner permit back.
    FreePermit(Slot),
    /// Take the slot's permit again.
    RegainPermit(Slot),
    /// Run again after a question.
    Resume(Slot),
}

impl Mend {
    /// `false`: not possible yet.
    pub(crate) async fn apply(self, runtime: &Runtime, lease: &Lease) -> Result<bool, StoreError> {
        let store = runtime.store();
        match self {
            Self::FreePermit(slot) => {
                store.run(MovePermit { lease: lease.clone(), step: PermitStep::FreeInner { slot } }).await?;
                runtime.wake_queue(slot);
                Ok(true)
            }
            Self::RegainPermit(slot) => {
                store
                    .run(MovePermit {
                        lease: lease.clone(),
                        step: PermitStep::Regain { permits_max: runtime.limits().of(slot) },
                    })
                    .await?;
                Ok(true)
            }
            Self::Resume(slot) => {
                store
                    .run(ResumeFromInput {
                        lease: lease.clone(),
                        permits_max: runtime.limits().of(slot),
                        now: runtime.clock().now(),
                    })
                    .await
            }
        }
    }
}

/// Works off what a body has left to be mended. Returns whether something is left.
pub(crate) async fn mend(runtime: &Runtime, lease: &Lease, notes: &Notes) -> bool {
    let _one_at_a_time = notes.brackets().await;
    for mend in notes.take_mends() {
        match mend.apply(runtime, lease).await {
            Ok(true) | Err(StoreError::LeaseLost(_) | StoreError::NotFound { .. }) => {}
            Ok(false) | Err(_) => notes.add_mend(mend),
        }
    }
    notes.has_mends()
}

/// Leaves a mend behind unless it was done in order.
pub(super) struct MendOnDrop {
    runtime: Runtime,
    notes: Arc<Notes>,
    mend: Option<Mend>,
}

impl MendOnDrop {
    pub(super) fn new(cx: &JobContext, mend: Mend) -> Self {
        Self { runtime: cx.runtime.clone(), notes: Arc::clone(&cx.notes), mend: Some(mend) }
    }

    /// It was put right already.
    pub(super) fn done(mut self) {
        self.mend = None;
    }
}

impl Drop for MendOnDrop {
    fn drop(&mut self) {
        match self.mend {
            None => {}
            Some(Mend::RegainPermit(_)) if self.notes.lent() > 0 => {}
            Some(mend) => {
                self.notes.add_mend(mend);
                self.runtime.look_for_orders();
            }
        }
    }
}
