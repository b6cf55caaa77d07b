//! The one connection that writes, and who may use it: the writer's thread, or a caller with something small to write
//! while nobody else writes. To hand it to the thread and be woken again would take several times as long.

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use matsu_core::ports::store::StoreError;
use matsu_core::wake::Hub;
use rusqlite::Connection;
use rusqlite::hooks::Wal;

use super::connection::BUSY_MAX;
use super::statement::error;
use super::writer::{begin, run_begun};
use crate::backends::Synchronous;
use crate::sql::Transition;

/// The log is copied into the file when it has this many pages. That costs the writer a pause; larger ones are rarer.
const LOG_PAGES_MAX: i32 = 4_000;

pub struct Desk {
    /// Gone when the store is closed.
    connection: Mutex<Option<Connection>>,
    hub: Arc<Hub>,
    synchronous: Synchronous,
    /// What stands in the thread's line or is being done there. Nobody overtakes it.
    in_line: AtomicUsize,
    /// How long the log was after the last commit.
    log_pages: Arc<AtomicI32>,
    /// Whether the thread was asked to copy the log.
    is_log_long: AtomicBool,
}

impl Desk {
    pub fn new(mut connection: Connection, synchronous: Synchronous, hub: Arc<Hub>) -> Result<Self, StoreError> {
        // In place of SQLite's own, which would copy the log inside a commit, whoever waits for that.
        let log_pages = Arc::new(AtomicI32::new(0));
        let counted = Arc::clone(&log_pages);
        let count = move |_: &mut Wal, pages| {
            counted.store(pages, Ordering::Relaxed);
            Ok(())
        };
        connection.wal_hook(Some(count)).map_err(error)?;
        Ok(Self {
            connection: Mutex::new(Some(connection)),
            hub,
            synchronous,
            in_line: AtomicUsize::new(0),
            log_pages,
            is_log_long: AtomicBool::new(false),
        })
    }

    pub fn hub(&self) -> &Hub {
        &self.hub
    }

    /// Waits for whoever sits there.
    pub fn sit_down(&self) -> MutexGuard<'_, Option<Connection>> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a transition here and now. `None`: somebody else writes, in this process or in another, and the thread
    /// has to wait for that.
    pub fn write_at_once<T: Transition>(&self, transition: &T) -> Option<Result<T::Output, StoreError>> {
        match self.synchronous {
            Synchronous::Normal => self.write_here(transition),
            Synchronous::Full => None,
        }
    }

    fn write_here<T: Transition>(&self, transition: &T) -> Option<Result<T::Output, StoreError>> {
        if self.in_line.load(Ordering::Acquire) > 0 {
            return None;
        }
        let mut desk = match self.connection.try_lock() {
            Ok(desk) => desk,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        let connection = desk.as_mut()?;
        connection.busy_timeout(Duration::ZERO).ok()?;
        let begun = begin(connection, "BEGIN IMMEDIATE");
        connection.busy_timeout(BUSY_MAX).ok()?;
        begun.ok()?;
        let (outcome, topics) = run_begun(transition, connection);
        drop(desk);
        self.hub.publish(&topics);
        Some(outcome)
    }

    /// Whether the log has grown long, and the thread was not told so far.
    pub fn has_log_grown_long(&self) -> bool {
        self.log_pages.load(Ordering::Relaxed) >= LOG_PAGES_MAX && !self.is_log_long.swap(true, Ordering::AcqRel)
    }

    /// Copies the log into the file if it is long. What readers still look at stays for the next time.
    pub fn copy_log(&self) {
        if self.log_pages.load(Ordering::Relaxed) < LOG_PAGES_MAX {
            return;
        }
        // A failure loses nothing: the log goes on growing, and the next commit tries again.
        let copied = self.sit_down().as_ref().map(|it| it.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(())));
        tracing::trace!(?copied, "the log was copied");
        self.log_pages.store(0, Ordering::Relaxed);
        self.is_log_long.store(false, Ordering::Release);
    }

    /// Takes a place in the thread's line.
    pub fn stand_in_line(&self) -> Place<'_> {
        self.in_line.fetch_add(1, Ordering::AcqRel);
        Place { desk: self }
    }

    /// This many have been done.
    pub fn leave_line(&self, count: usize) {
        self.in_line.fetch_sub(count, Ordering::AcqRel);
    }
}

/// Given back by whoever goes away before it is taken.
pub struct Place<'a> {
    desk: &'a Desk,
}

impl Place<'_> {
    /// The thread gives it back when it is done.
    pub fn keep(self) {
        std::mem::forget(self);
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.desk.leave_line(1);
    }
}
