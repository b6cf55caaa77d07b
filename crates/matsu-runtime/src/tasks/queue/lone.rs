//! The job that runs alone in this process, and those that wait to.
//!
//! While one waits or runs, no other claim is made here. It starts when nothing runs inside this process that it could
//! take along; agents are processes of their own and go on.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use matsu_core::job::Lease;
use matsu_core::slot::Slot;
use tokio::sync::RwLock;

#[derive(Default)]
pub struct Lone {
    state: Mutex<State>,
    /// Held to read by a claim, until its jobs are known to run; held to write by the start of a job that must run
    /// alone. So neither can come between the other's look and start.
    pub gate: RwLock<()>,
}

#[derive(Default)]
struct State {
    waiting: HashSet<Slot>,
    running: Option<Lease>,
}

impl Lone {
    pub fn set_waiting(&self, slot: Slot, is_waiting: bool) {
        let mut state = self.lock();
        if is_waiting {
            state.waiting.insert(slot)
        } else {
            state.waiting.remove(&slot)
        };
    }

    #[must_use]
    pub fn is_waiting(&self, slot: Slot) -> bool {
        self.lock().waiting.contains(&slot)
    }

    #[must_use]
    pub fn is_running(&self) -> bool {
        self.lock().running.is_some()
    }

    pub fn begun(&self, lease: Lease) {
        self.lock().running = Some(lease);
    }

    /// `true`: this was the one, and others can be claimed again.
    pub fn settled(&self, lease: &Lease) -> bool {
        self.lock().running.take_if(|running| running == lease).is_some()
    }

    /// Whether other jobs are left where they are.
    #[must_use]
    pub fn holds_others_back(&self) -> bool {
        let state = self.lock();
        state.running.is_some() || !state.waiting.is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
