//! Which slots have jobs that were given to this node without a claim, and that its dispatcher does not run yet.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use matsu_core::job::{Job, JobState};
use matsu_core::page::PageRequest;
use matsu_core::ports::store::{JobFilter, ListJobs, StoreError};
use matsu_core::slot::Slot;
use tokio::sync::Notify;

use crate::runtime::Runtime;

#[derive(Default)]
pub struct Adoptions {
    slots: Mutex<HashSet<Slot>>,
    look: Notify,
    /// Held while what is left of a run is removed: two that close one tree would be in each other's way.
    giving_up: tokio::sync::Mutex<()>,
}

impl Adoptions {
    /// A node has left; it may have runs that can be taken over.
    pub fn look_now(&self) {
        self.look.notify_one();
    }

    pub async fn asked_to_look(&self) {
        self.look.notified().await;
    }

    pub async fn giving_up(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.giving_up.lock().await
    }

    pub fn add(&self, slot: Slot) {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner).insert(slot);
    }

    /// Whether there are any in this slot; not for the next caller.
    pub fn take(&self, slot: Slot) -> bool {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner).remove(&slot)
    }
}

/// The jobs that the store says this node holds, whether or not a body for them runs here yet.
pub async fn held_jobs(runtime: &Runtime, slot: Option<Slot>) -> Result<Vec<Job>, StoreError> {
    let mut held = Vec::new();
    for state in [JobState::Running, JobState::AwaitingInput] {
        let filter = JobFilter { state: Some(state), slot, ..JobFilter::default() };
        let mut after = None;
        loop {
            let page = runtime
                .store()
                .run(ListJobs { filter: filter.clone(), page: PageRequest::new(after, Some(u32::MAX)) })
                .await?;
            held.extend(page.items.into_iter().filter(|job| job.owner_node.as_ref() == Some(&runtime.node())));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
    }
    Ok(held)
}
