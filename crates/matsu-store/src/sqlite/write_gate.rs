//! The one connection that writes. It is used by the writer's thread, or by a caller with something small to write
//! while no other write is under way. To pass it to the thread and be woken again would take several times as long.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use matsu_core::ports::store::StoreError;
use matsu_core::wake::Hub;
use rusqlite::Connection;

use super::connection::BUSY_MAX;
use super::log_keeper::LogKeeper;
use super::writer::{begin, run_begun};
use crate::sql::Transition;
use crate::sqlite::synchronous::Synchronous;

pub struct WriteGate {
    writer_connection: Arc<WriterConnection>,
    log: LogKeeper,
    hub: Arc<Hub>,
    synchronous: Synchronous,
    /// Operations that are queued for the thread or being done there. No caller overtakes them.
    in_line: AtomicUsize,
}

impl WriteGate {
    pub fn new(connection: Connection, synchronous: Synchronous, hub: Arc<Hub>) -> Result<Self, StoreError> {
        let writer_connection = Arc::new(WriterConnection::of(connection));
        let log = LogKeeper::start(&writer_connection, synchronous)?;
        Ok(Self { writer_connection, log, hub, synchronous, in_line: AtomicUsize::new(0) })
    }

    pub fn hub(&self) -> &Hub {
        &self.hub
    }

    pub fn writer_connection(&self) -> &WriterConnection {
        &self.writer_connection
    }

    /// Runs a transition at once, on the caller's thread. `None`: another write is under way, in this process or in
    /// another, and the writer's thread has to wait for it.
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
        let mut connection = self.writer_connection.take_if_free()?;
        begin_if_free(&connection)?;
        let (outcome, topics) = run_begun(transition, &mut connection);
        drop(connection);
        self.hub.publish(&topics);
        self.log.look();
        Some(outcome)
    }

    /// Takes a place in the thread's line.
    pub fn stand_in_line(&self) -> QueueSlot<'_> {
        self.in_line.fetch_add(1, Ordering::AcqRel);
        QueueSlot { gate: self }
    }

    /// The thread has committed this many queued operations.
    pub fn leave_line(&self, count: usize) {
        self.in_line.fetch_sub(count, Ordering::AcqRel);
        self.log.look();
    }
}

/// Where the connection is. One at a time.
pub struct WriterConnection(Mutex<Connection>);

impl WriterConnection {
    pub fn of(connection: Connection) -> Self {
        Self(Mutex::new(connection))
    }

    /// Waits until the connection is free.
    pub fn with<T>(&self, work: impl FnOnce(&mut Connection) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// `None`: another process writes. A write in this process is waited for.
    pub fn while_no_other_process_writes<T>(&self, work: impl FnOnce() -> T) -> Option<T> {
        self.with(|connection| {
            begin_if_free(connection)?;
            let done = work();
            let _ = begin(connection, "ROLLBACK");
            Some(done)
        })
    }

    fn take_if_free(&self) -> Option<MutexGuard<'_, Connection>> {
        match self.0.try_lock() {
            Ok(connection) => Some(connection),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

/// `None`: another process writes, and nothing has begun.
fn begin_if_free(connection: &Connection) -> Option<()> {
    let begun = connection.busy_timeout(Duration::ZERO).and_then(|()| begin(connection, "BEGIN IMMEDIATE"));
    let patient = connection.busy_timeout(BUSY_MAX);
    begun.ok()?;
    if patient.is_err() {
        let _ = begin(connection, "ROLLBACK");
        return None;
    }
    Some(())
}

/// Given back when the caller goes away before it is taken.
pub struct QueueSlot<'a> {
    gate: &'a WriteGate,
}

impl QueueSlot<'_> {
    /// The thread gives it back when it is done.
    pub fn keep(self) {
        std::mem::forget(self);
    }
}

impl Drop for QueueSlot<'_> {
    fn drop(&mut self) {
        self.gate.in_line.fetch_sub(1, Ordering::AcqRel);
    }
}
