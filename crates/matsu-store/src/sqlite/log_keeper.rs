//! Maintains SQLite's log on a thread of its own: copies it into the file, and reserves space ahead of it. SQLite by
//! itself would do either inside a commit, and the caller of that commit, and all callers queued behind it, would wait
//! for the disk.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};

use matsu_core::limits::STORE_CLOSE_MAX;
use matsu_core::ports::store::StoreError;
use rusqlite::Connection;
use rusqlite::hooks::Wal;

use super::connection;
use super::data_file;
use super::files;
use super::log_space::LogSpace;
use super::write_gate::WriterConnection;
use crate::sql::internal;
use crate::sql::sqlite::error;
use crate::sqlite::synchronous::Synchronous;

/// The log is copied when it has grown by this many pages.
const PAGES_MAX: i32 = 4_000;
/// Writers go on while it is copied; when they have added fewer than this, they wait for the rest.
const REST_MAX: i32 = 200;
const PASSES_MAX: u32 = 3;

/// A handle to the thread, which ends with it.
pub struct LogKeeper {
    log: Arc<Log>,
    calls: mpsc::Sender<Call>,
    /// Closes when the thread exits.
    ended: Mutex<mpsc::Receiver<()>>,
}

enum Call {
    Copy,
    ReserveSpace,
    End,
}

/// The log as the writer sees it.
struct Log {
    /// How long it was after the last commit.
    pages: AtomicI32,
    /// How long it must be for the next call. Out of reach while one is under way.
    call_at: AtomicI32,
    /// Made only where commits wait for the disk.
    space: Option<LogSpace>,
}

impl Log {
    fn new(synchronous: Synchronous) -> Self {
        let space = (synchronous == Synchronous::Full).then(LogSpace::default);
        Self { pages: AtomicI32::new(0), call_at: AtomicI32::new(PAGES_MAX), space }
    }

    fn pages(&self) -> i32 {
        self.pages.load(Ordering::Relaxed)
    }

    fn note(&self, pages: i32) {
        let before = self.pages.swap(pages, Ordering::Relaxed);
        if let Some(space) = self.space.as_ref().filter(|_| pages < before) {
            space.forget();
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
    /// For the log of this connection.
    pub fn start(writer_connection: &Arc<WriterConnection>, synchronous: Synchronous) -> Result<Self, StoreError> {
        let log = Arc::new(Log::new(synchronous));
        let counted = Arc::clone(&log);
        // In place of SQLite's own.
        let count = move |_: &mut Wal, pages| {
            counted.note(pages);
            Ok(())
        };
        let path = writer_connection.with(|writer| {
            writer.wal_hook(Some(count)).map_err(error)?;
            Ok::<_, StoreError>(PathBuf::from(writer.path().unwrap_or_default()))
        })?;
        let (calls, called) = mpsc::channel();
        let (ends, ended) = mpsc::channel();
        let (writer_connection, own) = (Arc::clone(writer_connection), Arc::clone(&log));
        let work = move || {
            let mut copying = None;
            loop {
                match called.recv() {
                    Ok(Call::Copy) => copy(&path, &mut copying, &writer_connection, &own),
                    Ok(Call::ReserveSpace) => reserve_space(&path, &writer_connection, &own),
                    Ok(Call::End) | Err(_) => break,
                }
            }
            // In this order: once the end is reported, the file is closed.
            drop((copying, writer_connection));
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
        if self.log.space.as_ref().is_some_and(|space| space.is_short(self.log.pages())) {
            let _ = self.calls.send(Call::ReserveSpace);
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

fn copy(path: &Path, kept: &mut Option<Connection>, writer_connection: &WriterConnection, log: &Log) {
    let copied = match kept {
        Some(connection) => Ok(&*connection),
        None => connection::log_copier(path).map(|connection| &*kept.insert(connection)),
    }
    .and_then(|connection| copy_all(connection, path, writer_connection, log).map_err(error));
    // What readers still look at could not be copied. Then not every commit shall ask again.
    let rest = copied.as_ref().copied().unwrap_or_else(|_| log.pages());
    log.call_at.store(rest.saturating_add(PAGES_MAX), Ordering::Release);
    if let Err(error) = copied {
        // Nothing is lost: the log goes on growing, and is copied later.
        tracing::warn!(%error, "SQLite WAL checkpoint failed");
    }
}

fn reserve_space(path: &Path, writer_connection: &WriterConnection, log: &Log) {
    let Some(space) = &log.space else { return };
    if let Err(error) = space.make(&files::beside(path, "-wal"), log.pages(), writer_connection) {
        // Commits take longer, as they would without this.
        tracing::debug!(%error, "disk space for the SQLite WAL could not be reserved");
    }
}

/// Returns how long the log is if it does not start anew with the next commit.
fn copy_all(
    connection: &Connection,
    path: &Path,
    writer_connection: &WriterConnection,
    log: &Log,
) -> rusqlite::Result<i32> {
    for _ in 0..PASSES_MAX {
        let (_, copied) = pass(connection)?;
        // Otherwise the last pass has the disk write all of this, while writers wait. It does so all the same.
        if let Err(error) = data_file::sync(path) {
            tracing::debug!(%error, "the store could not be written to the disk ahead of time");
        }
        if log.pages() - copied < REST_MAX {
            break;
        }
    }
    // It starts anew only if all of it is copied when the next write begins.
    let (pages, copied) = writer_connection.with(|_| pass(connection))?;
    Ok(if pages == copied { 0 } else { pages })
}

/// How many pages the log has, and how many of them are in the file.
fn pass(connection: &Connection) -> rusqlite::Result<(i32, i32)> {
    connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| Ok((row.get(1)?, row.get(2)?)))
}
