//! Copying SQLite's log into the file, on a thread of its own. SQLite by itself would do it inside a commit, and
//! whoever waits for that commit, and everybody behind it, would wait for the disk.

use std::path::PathBuf;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};

use matsu_core::limits::STORE_CLOSE_MAX;
use matsu_core::ports::store::StoreError;
use rusqlite::Connection;
use rusqlite::hooks::Wal;

use super::connection;
use super::desk::Seat;
use super::statement::error;
use crate::sql::internal;

/// The log is copied when it has grown by this many pages.
const PAGES_MAX: i32 = 4_000;
/// Writers go on while it is copied; when they have added fewer than this, they wait for the rest.
const REST_MAX: i32 = 200;
const PASSES_MAX: u32 = 3;

/// A handle to the thread, which ends with it.
pub struct LogCopier {
    log: Arc<Log>,
    calls: mpsc::Sender<Call>,
    /// Says nothing; breaks off when the thread has ended.
    ended: Mutex<mpsc::Receiver<()>>,
}

enum Call {
    Copy,
    End,
}

/// The log as the writer sees it.
struct Log {
    /// How long it was after the last commit.
    pages: AtomicI32,
    /// How long it must be for the next call. Out of reach while one is under way.
    call_at: AtomicI32,
}

impl LogCopier {
    /// For the log of the connection that sits there.
    pub fn start(seat: &Arc<Seat>) -> Result<Self, StoreError> {
        let log = Arc::new(Log { pages: AtomicI32::new(0), call_at: AtomicI32::new(PAGES_MAX) });
        let counted = Arc::clone(&log);
        // In place of SQLite's own.
        let count = move |_: &mut Wal, pages| {
            counted.pages.store(pages, Ordering::Relaxed);
            Ok(())
        };
        let path = seat.with(|writer| {
            writer.wal_hook(Some(count)).map_err(error)?;
            Ok::<_, StoreError>(PathBuf::from(writer.path().unwrap_or_default()))
        })?;
        let (calls, called) = mpsc::channel();
        let (ends, ended) = mpsc::channel();
        let (seat, own) = (Arc::clone(seat), Arc::clone(&log));
        let work = move || {
            let mut copying = None;
            while let Ok(Call::Copy) = called.recv() {
                if let Err(error) = copy(&path, &mut copying, &seat, &own) {
                    // Nothing is lost: the log goes on growing, and is copied later.
                    tracing::warn!(%error, "the log of the store could not be copied");
                }
            }
            // In this order: whoever hears of the end may count on the file being closed.
            drop((copying, seat));
            drop(ends);
        };
        std::thread::Builder::new().name("matsu-log".to_owned()).spawn(work).map_err(internal)?;
        Ok(Self { log, calls, ended: Mutex::new(ended) })
    }

    /// After a commit: has the log copied if it has grown long.
    pub fn look(&self) {
        let call_at = self.log.call_at.load(Ordering::Relaxed);
        if self.log.pages.load(Ordering::Relaxed) >= call_at
            && self.log.call_at.compare_exchange(call_at, i32::MAX, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        {
            let _ = self.calls.send(Call::Copy);
        }
    }
}

impl Drop for LogCopier {
    fn drop(&mut self) {
        let _ = self.calls.send(Call::End);
        let ended = self.ended.get_mut().unwrap_or_else(PoisonError::into_inner);
        let _ = ended.recv_timeout(STORE_CLOSE_MAX);
    }
}

fn copy(path: &std::path::Path, kept: &mut Option<Connection>, seat: &Seat, log: &Log) -> Result<(), StoreError> {
    let connection = match kept {
        Some(connection) => connection,
        None => kept.insert(connection::log_copier(path)?),
    };
    let copied = copy_all(connection, seat, log);
    // What readers still look at could not be copied. Then not every commit shall ask again.
    let rest = copied.as_ref().copied().unwrap_or_else(|_| log.pages.load(Ordering::Relaxed));
    log.call_at.store(rest.saturating_add(PAGES_MAX), Ordering::Release);
    copied.map(drop).map_err(error)
}

/// Returns how long the log is if it does not start anew with the next commit.
fn copy_all(connection: &Connection, seat: &Seat, log: &Log) -> rusqlite::Result<i32> {
    for _ in 0..PASSES_MAX {
        let (_, copied) = pass(connection)?;
        if log.pages.load(Ordering::Relaxed) - copied < REST_MAX {
            break;
        }
    }
    // It starts anew only if all of it is copied when somebody writes.
    let (pages, copied) = seat.with(|_| pass(connection))?;
    Ok(if pages == copied { 0 } else { pages })
}

/// How many pages the log has, and how many of them are in the file.
fn pass(connection: &Connection) -> rusqlite::Result<(i32, i32)> {
    connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| Ok((row.get(1)?, row.get(2)?)))
}
