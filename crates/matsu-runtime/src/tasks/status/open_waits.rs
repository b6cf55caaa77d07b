//! How many waits each principal holds open. One client in a loop must not fill the process.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use matsu_core::limits::WAITS_PER_PRINCIPAL_MAX;
use matsu_core::principal::Principal;

use crate::tasks::TaskError;

#[derive(Debug, Default)]
pub struct OpenWaits {
    by_principal: Mutex<HashMap<Principal, usize>>,
}

impl OpenWaits {
    /// Counts one more until the answer is dropped.
    ///
    /// # Errors
    /// `LimitExceeded` when the principal has as many as it may.
    pub fn open(self: &Arc<Self>, principal: &Principal) -> Result<OpenWait, TaskError> {
        let mut counts = self.lock();
        let count = counts.entry(principal.clone()).or_default();
        if *count >= WAITS_PER_PRINCIPAL_MAX {
            let message = format!("at most {WAITS_PER_PRINCIPAL_MAX} waits can be open at once");
            return Err(TaskError::LimitExceeded(message));
        }
        *count += 1;
        Ok(OpenWait { waits: Arc::clone(self), principal: principal.clone() })
    }

    /// Over all principals.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lock().values().sum()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Principal, usize>> {
        self.by_principal.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One open wait.
#[derive(Debug)]
pub struct OpenWait {
    waits: Arc<OpenWaits>,
    principal: Principal,
}

impl Drop for OpenWait {
    fn drop(&mut self) {
        let mut counts = self.waits.lock();
        if let Some(count) = counts.get_mut(&self.principal) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.principal);
            }
        }
    }
}
