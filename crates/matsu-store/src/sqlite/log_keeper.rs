//! The care of SQLite's log, on a thread of its own: copying it into the file, and making room ahead of it. SQLite by
//! itself would do either inside a commit, and whoever waits for that commit, and everybody behind it, would wait for
//! the disk.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};

use matsu_core::limits::STORE_CLOSE_MAX;
use matsu_core::ports::store::StoreError;
use rusqlite::Connection;
use rusqlite::hooks::Wal;

use super::connection;
use super::desk::Seat;
use super::files;
use super::log_room::Room;
use super::statement::error;
use crate::backends::Synchronous;
use crate::sql::internal;

/// The log is copied when it has grown by this many pages.
const PAGES_MAX: i32 = 4_000;
/// Writers go on while it is copied; when they have added fewer than this, they wait for the rest.
const REST_MAX: i32 = 200;
const PASSES_MAX: u32 = 3;

/// A handle to the thread, which ends with it.
pub struct LogKeeper {
    log: Arc<Log>,
    calls: mpsc::Sender<Call>,
    /// Says nothing; breaks off when the thread has ended.
    ended: Mutex<mpsc::Receiver<()>>,
}

enum Call {
    Copy,
    MakeRoom,
    End,
}

/// The log as the writer sees it.
struct Log {
    /// How long it was after the last commit.
    pages: AtomicI32,
    /// How long it must be for the next call. Out of reach while one is under way.
    call_at: AtomicI32,
    /// Made only where commits wait for the disk.
    room: Option<Room>,
}

impl Log {
    fn new(synchronous: Synchronous) -> Self {
        let room = (synchronous == Synchronous::Full).then(Room::default);
        Self { pages: AtomicI32::new(0), call_at: AtomicI32::new(PAGES_MAX), room }
    }

    fn pages(&self) -> i32 {
        self.pages.load(Ordering::Relaxed)
    }

    fn note(&self, pages: i32) {
        let before = self.pages.swap(pages, Ordering::Relaxed);
        if let Some(room) = self.room.as_ref().filter(|_| pages < before) {
            room.forget();
        }
    }

    /// Whether the caller has to have it copied.
    fn is_long(&self) -> bool {
        let call_at = self.call_at.load(Ordering::Relaxed);
        self.pages() >= call_at
            && self.call_at.compare_exchange(call_at, i32::MAX, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }
}

impl LogKeeper {
    /// For the log of the connection that sits there.
    pub fn start(seat: &Arc<Seat>, synchronous: Synchronous) -> Result<Self, StoreError> {
        let log = Arc::new(Log::new(synchronous));
        let counted = Arc::clone(&log);
        // In place of SQLite's own.
        let count = move |_: &mut Wal, pages| {
            counted.note(pages);
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
            loop {
                match called.recv() {
                    Ok(Call::Copy) => copy(&path, &mut copying, &seat, &own),
                    Ok(Call::MakeRoom) => make_room(&path, &seat, &own),
                    Ok(Call::End) | Err(_) => break,
                }
            }
            // In this order: whoever hears of the end may count on the file being closed.
            drop((copying, seat));
            drop(ends);
        };
        std::thread::Builder::new().name("matsu-log".to_owned()).spawn(work).map_err(internal)?;
        Ok(Self { log, calls, ended: Mutex::new(ended) })
    }

    /// After a commit: has the log copied if it has grown long, or made longer if it will soon be full.
    pub fn look(&self) {
        if self.log.is_long() {
            let _ = self.calls.send(Call::Copy);
        }
        if self.log.room.as_ref().is_some_and(|room| room.is_short(self.log.pages())) {
            let _ = self.calls.send(Call::MakeRoom);
        }
    }
}

impl Drop for LogKeeper {
    fn drop(&mut self) {
        let _ = self.calls.send(Call::End);
        let ended = self.ended.get_mut().unwrap_or_else(PoisonError::into_inner);
        let _ = ended.recv_timeout(STORE_CLOSE_MAX);
    }
}

fn copy(path: &Path, kept: &mut Option<Connection>, seat: &Seat, log: &Log) {
    let copied = match kept {
        Some(connection) => Ok(&*connection),
        None => connection::log_copier(path).map(|connection| &*kept.insert(connection)),
    }
    .and_then(|connection| copy_all(connection, seat, log).map_err(error));
    // What readers still look at could not be copied. Then not every commit shall ask again.
    let rest = copied.as_ref().copied().unwrap_or_else(|_| log.pages());
    log.call_at.store(rest.saturating_add(PAGES_MAX), Ordering::Release);
    if let Err(error) = copied {
        // Nothing is lost: the log goes on growing, and is copied later.
        tracing::warn!(%error, "the log of the store could not be copied");
    }
}

fn make_room(path: &Path, seat: &Seat, log: &Log) {
    let Some(room) = &log.room else { return };
    if let Err(error) = room.make(&files::beside(path, "-wal"), log.pages(), seat) {
        // Commits take longer, as they would without this.
        tracing::debug!(%error, "no room could be made for the log of the store");
    }
}

/// Returns how long the log is if it does not start anew with the next commit.
fn copy_all(connection: &Connection, seat: &Seat, log: &Log) -> rusqlite::Result<i32> {
    for _ in 0..PASSES_MAX {
        let (_, copied) = pass(connection)?;
        if log.pages() - copied < REST_MAX {
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
