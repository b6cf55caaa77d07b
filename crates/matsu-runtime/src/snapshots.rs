//! Shared reads of tasks. Ten thousand waiters that one publication wakes cost one read of the store.
//!
//! The invariant: a waiter gets what a read found that began after the last publication on its task which the
//! waiter could have seen. Numbers of the hub say which reads qualify; nothing is cached beyond its waiters.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared};
use tokio::time::Instant;

use matsu_core::change::Topic;
use matsu_core::clock::Clock;
use matsu_core::id::TaskId;
use matsu_core::limits::{FOREIGN_POLL_EVERY, TICK};
use matsu_core::ports::store::{ReadTask, Store, StoreError, TaskLookup};
use matsu_core::principal::Principal;
use matsu_core::task::{Task, TaskStatus};

/// What a shared read found.
pub type Snapshot = Result<Seen, Arc<StoreError>>;

/// A task as one read saw it. The same read gives every caller the same `Arc`, so a rendering of it can be shared.
#[derive(Clone, Debug)]
pub enum Seen {
    Found(Arc<Task>),
    Expired { owner: Principal, status: TaskStatus },
}

impl From<TaskLookup> for Seen {
    fn from(lookup: TaskLookup) -> Self {
        match lookup {
            TaskLookup::Found(task) => Self::Found(Arc::from(task)),
            TaskLookup::Expired { owner, status, .. } => Self::Expired { owner, status },
        }
    }
}

/// The reads in flight, and the last ones of tasks that callers wait for.
pub struct Snapshots {
    store: Arc<dyn Store>,
    clock: Clock,
    readers: Mutex<HashMap<TaskId, Readers>>,
    reads: AtomicU64,
}

#[derive(Default)]
struct Readers {
    taken: usize,
    last: Option<Read>,
}

#[derive(Clone)]
struct Read {
    /// The hub's number when the read began.
    published: u64,
    began: Instant,
    found: Shared<BoxFuture<'static, Snapshot>>,
}

impl Snapshots {
    #[must_use]
    pub fn new(store: Arc<dyn Store>, clock: Clock) -> Arc<Self> {
        Arc::new(Self { store, clock, readers: Mutex::default(), reads: AtomicU64::new(0) })
    }

    /// An entry among the readers of this task. Keep it for as long as you wait.
    #[must_use]
    pub fn reader(self: &Arc<Self>, id: TaskId) -> SharedReader {
        self.lock().entry(id.clone()).or_default().taken += 1;
        SharedReader { snapshots: Arc::clone(self), topic: Topic::task(&id), id, looked: false }
    }

    /// How many reads of the store there were.
    #[must_use]
    pub fn reads(&self) -> u64 {
        self.reads.load(Ordering::Relaxed)
    }

    /// How many tasks have a reader at this moment.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<TaskId, Readers>> {
        self.readers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The last read if it qualifies, otherwise a new one that all callers from now on share.
    fn share(&self, id: &TaskId, topic: &Topic, is_first_look: bool) -> Shared<BoxFuture<'static, Snapshot>> {
        let hub = self.store.hub();
        let now = self.clock.instant();
        // Taken before the lock below: a caller that has to wait for the lock needs no newer read than it did before.
        let needed = hub.published_on(topic);
        let mut readers = self.lock();
        let entry = readers.entry(id.clone()).or_default();
        if let Some(last) = &entry.last
            && last.published >= needed
            && last.is_usable(now, is_first_look)
        {
            return last.found.clone();
        }
        // The number first, the read afterwards: a change in between makes the read newer than its number, never older.
        let published = hub.published();
        let store = Arc::clone(&self.store);
        let wanted = id.clone();
        let read = async move { store.run(ReadTask(wanted.clone())).await.map(Seen::from).map_err(Arc::new) };
        let found = read.boxed().shared();
        entry.last = Some(Read { published, began: now, found: found.clone() });
        self.reads.fetch_add(1, Ordering::Relaxed);
        found
    }
}

impl Read {
    fn is_usable(&self, now: Instant, is_first_look: bool) -> bool {
        let age = now.saturating_duration_since(self.began);
        match self.found.peek() {
            None => true,
            // A failure is shared for a moment only, or no caller would notice that the store is back.
            Some(Err(_)) => age < TICK,
            // This caller was not woken: another process may have changed the task since, and it is noticed this late.
            Some(Ok(_)) if is_first_look => age <= FOREIGN_POLL_EVERY,
            Some(Ok(_)) => true,
        }
    }
}

/// One reader's place. Dropping the last one of a task forgets what was read.
pub struct SharedReader {
    snapshots: Arc<Snapshots>,
    id: TaskId,
    topic: Topic,
    looked: bool,
}

impl SharedReader {
    #[must_use]
    pub fn id(&self) -> &TaskId {
        &self.id
    }

    /// The task as it is now, or as a read found it that no wake-up since has made old.
    pub async fn read(&mut self) -> Snapshot {
        let is_first_look = !self.looked;
        self.looked = true;
        let read = self.snapshots.share(&self.id, &self.topic, is_first_look);
        // A read that ends at its first poll would wake the task that polls it, which then runs once more for nothing,
        // and wakes a second thread for that. So the first poll is made without a waker.
        match read.clone().now_or_never() {
            Some(found) => found,
            None => read.await,
        }
    }
}

impl Drop for SharedReader {
    fn drop(&mut self) {
        let mut readers = self.snapshots.lock();
        if let Some(entry) = readers.get_mut(&self.id) {
            entry.taken -= 1;
            if entry.taken == 0 {
                readers.remove(&self.id);
            }
        }
    }
}
