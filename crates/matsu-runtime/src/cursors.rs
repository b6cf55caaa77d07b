//! The revisions that each client instance was last sent, so that it need not name them itself.
//!
//! Revisions only ever grow, and only after the reply that carried them was written: what was in a lost reply is sent
//! again. Losing a cursor is harmless, the client is then sent the whole state.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use matsu_core::id::TaskId;
use matsu_core::limits::{CURSOR_TASKS_MAX, CURSORS_MAX};

/// One client as the server tells it apart: a relay's connection, a session, or a named token.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct InstanceId(Arc<str>);

impl InstanceId {
    #[must_use]
    pub fn from_text(text: impl Into<String>) -> Self {
        Self(text.into().into())
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for InstanceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// In memory, bounded; the oldest instance goes first, and of an instance the oldest handle.
#[derive(Debug)]
pub struct Cursors {
    instances: Mutex<Bounded<InstanceId, Bounded<TaskId, i64>>>,
    /// In replies that were made but may not have arrived.
    staged: Mutex<Bounded<InstanceId, Vec<(TaskId, i64)>>>,
}

impl Default for Cursors {
    fn default() -> Self {
        Self { instances: Mutex::new(Bounded::new(CURSORS_MAX)), staged: Mutex::new(Bounded::new(CURSORS_MAX)) }
    }
}

impl Cursors {
    /// The revision this instance was last sent; `0` if it was never sent the task.
    #[must_use]
    pub fn since(&self, instance: &InstanceId, id: &TaskId) -> i64 {
        self.lock().get(instance).and_then(|tasks| tasks.get(id)).copied().unwrap_or(0)
    }

    /// Whether a reply has shown the task to this instance as it was at this revision or later, arrived or not.
    #[must_use]
    pub fn was_sent(&self, instance: &InstanceId, id: &TaskId, revision: i64) -> bool {
        let staged = self.staged.lock().unwrap_or_else(PoisonError::into_inner);
        let is_staged = |replies: &Vec<(TaskId, i64)>| replies.iter().any(|(of, at)| of == id && *at >= revision);
        staged.get(instance).is_some_and(is_staged) || self.since(instance, id) >= revision
    }

    /// Call after the reply was written, never before.
    pub fn delivered(&self, instance: &InstanceId, id: &TaskId, revision: i64) {
        let mut instances = self.lock();
        let tasks = instances.get_or_insert_with(instance, || Bounded::new(CURSOR_TASKS_MAX));
        let delivered = tasks.get_or_insert_with(id, || revision);
        // Two replies can be written in another order than they were made.
        *delivered = revision.max(*delivered);
    }

    /// A reply carries this. It counts as delivered when the instance comes back with another call, which shows that
    /// the reply has arrived; a transport that writes later than we return cannot break that.
    pub fn stage(&self, instance: &InstanceId, id: &TaskId, revision: i64) {
        let mut staged = self.staged.lock().unwrap_or_else(PoisonError::into_inner);
        let replies = staged.get_or_insert_with(instance, Vec::new);
        if replies.len() >= CURSOR_TASKS_MAX {
            replies.remove(0);
        }
        replies.push((id.clone(), revision));
    }

    /// The instance has come back: what it was sent has arrived.
    pub fn settle(&self, instance: &InstanceId) {
        let mut staged = self.staged.lock().unwrap_or_else(PoisonError::into_inner);
        let replies = staged.get_mut(instance).map(std::mem::take).unwrap_or_default();
        drop(staged);
        for (id, revision) in replies {
            self.delivered(instance, &id, revision);
        }
    }

    /// The connection or session is over.
    pub fn forget(&self, instance: &InstanceId) {
        self.lock().remove(instance);
        self.staged.lock().unwrap_or_else(PoisonError::into_inner).remove(instance);
    }

    fn lock(&self) -> MutexGuard<'_, Bounded<InstanceId, Bounded<TaskId, i64>>> {
        self.instances.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A map that forgets what was inserted first.
#[derive(Debug)]
struct Bounded<K, V> {
    entries_max: usize,
    entries: HashMap<K, V>,
    order: VecDeque<K>,
}

impl<K: Clone + Eq + std::hash::Hash, V> Bounded<K, V> {
    fn new(entries_max: usize) -> Self {
        Self { entries_max, entries: HashMap::new(), order: VecDeque::new() }
    }

    fn get(&self, key: &K) -> Option<&V> {
        self.entries.get(key)
    }

    fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        self.entries.get_mut(key)
    }

    fn get_or_insert_with(&mut self, key: &K, value: impl FnOnce() -> V) -> &mut V {
        if !self.entries.contains_key(key) {
            while self.entries.len() >= self.entries_max {
                match self.order.pop_front() {
                    Some(oldest) => self.entries.remove(&oldest),
                    None => break,
                };
            }
            self.order.push_back(key.clone());
        }
        self.entries.entry(key.clone()).or_insert_with(value)
    }

    fn remove(&mut self, key: &K) {
        if self.entries.remove(key).is_some() {
            self.order.retain(|other| other != key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(n: usize) -> TaskId {
        TaskId::from_text(format!("task_{n}"))
    }

    fn instance(n: usize) -> InstanceId {
        InstanceId::from_text(format!("instance_{n}"))
    }

    #[test]
    fn a_cursor_only_grows_and_starts_at_nothing() {
        let cursors = Cursors::default();
        assert_eq!(cursors.since(&instance(1), &task(1)), 0);
        for (delivered, since) in [(5, 5), (3, 5), (9, 9)] {
            cursors.delivered(&instance(1), &task(1), delivered);
            assert_eq!(cursors.since(&instance(1), &task(1)), since, "delivered {delivered}");
        }
        assert_eq!(cursors.since(&instance(2), &task(1)), 0, "another instance got nothing");
        cursors.forget(&instance(1));
        assert_eq!(cursors.since(&instance(1), &task(1)), 0);
    }

    #[test]
    fn a_reply_counts_as_delivered_when_its_client_calls_again() {
        let cursors = Cursors::default();
        cursors.stage(&instance(1), &task(1), 4);
        assert_eq!(cursors.since(&instance(1), &task(1)), 0);
        cursors.settle(&instance(2));
        assert_eq!(cursors.since(&instance(1), &task(1)), 0, "another instance came back");
        cursors.settle(&instance(1));
        assert_eq!(cursors.since(&instance(1), &task(1)), 4);
        cursors.stage(&instance(1), &task(1), 9);
        cursors.forget(&instance(1));
        cursors.settle(&instance(1));
        assert_eq!(cursors.since(&instance(1), &task(1)), 0, "a lost connection got nothing");
    }

    #[test]
    fn both_bounds_hold_and_the_oldest_goes_first() {
        let cursors = Cursors::default();
        for n in 0..=CURSORS_MAX {
            cursors.delivered(&instance(n), &task(0), 1);
        }
        assert_eq!(cursors.since(&instance(0), &task(0)), 0);
        assert_eq!(cursors.since(&instance(1), &task(0)), 1);
        for n in 0..=CURSOR_TASKS_MAX {
            cursors.delivered(&instance(CURSORS_MAX), &task(n), 2);
        }
        assert_eq!(cursors.since(&instance(CURSORS_MAX), &task(0)), 0);
        assert_eq!(cursors.since(&instance(CURSORS_MAX), &task(CURSOR_TASKS_MAX)), 2);
    }
}
