//! All requests, in order. A thread that waits for a request is woken by it.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::request::{Fate, Recorded};

#[derive(Default)]
pub struct Journal {
    requests: Mutex<Vec<Recorded>>,
    changed: Condvar,
}

impl Journal {
    pub fn all(&self) -> Vec<Recorded> {
        self.lock().clone()
    }

    /// Its number, by which its fate is reported later.
    pub fn record(&self, request: Recorded) -> usize {
        let mut requests = self.lock();
        requests.push(request);
        self.changed.notify_all();
        requests.len() - 1
    }

    pub fn end(&self, number: usize, fate: Fate) {
        if let Some(request) = self.lock().get_mut(number) {
            request.fate = fate;
        }
        self.changed.notify_all();
    }

    /// The first request that `wanted` accepts, now or within the given time.
    pub fn wait_for(&self, within: Duration, wanted: impl Fn(&Recorded) -> bool) -> Option<Recorded> {
        let find = |requests: &[Recorded]| requests.iter().find(|request| wanted(request)).cloned();
        let (requests, _) = self
            .changed
            .wait_timeout_while(self.lock(), within, |requests| find(requests).is_none())
            .unwrap_or_else(PoisonError::into_inner);
        find(&requests)
    }

    pub fn wait_for_count(&self, within: Duration, count: usize) -> bool {
        let waited = self.changed.wait_timeout_while(self.lock(), within, |requests| requests.len() < count);
        waited.unwrap_or_else(PoisonError::into_inner).0.len() >= count
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Recorded>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
