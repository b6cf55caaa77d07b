//! Which slots have jobs that were given to this node without a claim, and that its dispatcher does not run yet.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use matsu_core::slot::Slot;
use tokio::sync::Notify;

#[derive(Default)]
pub struct Adoptions {
    slots: Mutex<HashSet<Slot>>,
    look: Notify,
}

impl Adoptions {
    /// A node has left; it may have runs that can be taken over.
    pub fn look_now(&self) {
        self.look.notify_one();
    }

    pub async fn asked_to_look(&self) {
        self.look.notified().await;
    }

    pub fn add(&self, slot: Slot) {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner).insert(slot);
    }

    /// Whether there are any in this slot; not for the next caller.
    pub fn take(&self, slot: Slot) -> bool {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner).remove(&slot)
    }
}
