//! Every visit, in order, with its time. A thread that waits for one is woken by it.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use matsu_core::clock::Timestamp;

/// One request as it came.
#[derive(Clone, Debug)]
pub struct Visit {
    /// The site by number, from 0.
    pub site: u8,
    /// With its query.
    pub path: String,
    /// Names in lower case.
    pub headers: BTreeMap<String, String>,
    pub at: Timestamp,
}

#[derive(Default)]
pub struct Journal {
    visits: Mutex<Vec<Visit>>,
    changed: Condvar,
}

impl Journal {
    pub fn all(&self) -> Vec<Visit> {
        self.lock().clone()
    }

    pub fn record(&self, visit: Visit) {
        self.lock().push(visit);
        self.changed.notify_all();
    }

    pub fn wait_for(&self, within: Duration, wanted: impl Fn(&Visit) -> bool) -> Option<Visit> {
        let find = |visits: &[Visit]| visits.iter().find(|visit| wanted(visit)).cloned();
        let waited = self.changed.wait_timeout_while(self.lock(), within, |visits| find(visits).is_none());
        find(&waited.unwrap_or_else(PoisonError::into_inner).0)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Visit>> {
        self.visits.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
