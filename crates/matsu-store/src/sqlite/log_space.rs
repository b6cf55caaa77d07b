//! Space for SQLite's log before it is needed. A commit that makes the file longer waits until the file system has
//! written down its new length as well; one that writes over what is there waits for its own pages alone.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::atomic::{AtomicI32, Ordering};

use super::write_gate::WriterConnection;

/// More is reserved when there is space for fewer pages than this.
const LEFT_MIN: i32 = 64;
const STEP_BYTES: u64 = 1 << 20;
/// What is written in one piece the system keeps in one piece, and large ones are slow to write over.
const PIECE_BYTES: u64 = 1 << 16;
/// A page and what SQLite writes before it.
const FRAME_BYTES: u64 = 4_096 + 24;

/// For how many pages the log has space. Out of reach while more is reserved.
#[derive(Default)]
pub struct LogSpace(AtomicI32);

impl LogSpace {
    /// Whether the caller has to make more, for a log of this length.
    pub fn is_short(&self, pages: i32) -> bool {
        let space = self.0.load(Ordering::Relaxed);
        space < pages.saturating_add(LEFT_MIN)
            && self.0.compare_exchange(space, i32::MAX, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// The log starts anew, and another process may have cut it off.
    pub fn forget(&self) {
        self.0.store(0, Ordering::Release);
    }

    /// Makes the log longer by a step, unless it is long enough by now. After an error it is left as it is until it
    /// starts anew.
    pub fn make(&self, log: &Path, pages: i32, writer_connection: &WriterConnection) -> io::Result<()> {
        let file = OpenOptions::new().write(true).open(log)?;
        let enough = FRAME_BYTES * u64::try_from(pages.saturating_add(LEFT_MIN)).unwrap_or_default();
        let made = writer_connection.while_no_other_process_writes(|| {
            let bytes = file.metadata()?.len();
            if bytes < enough { lengthen(&file, bytes) } else { Ok(bytes) }
        });
        let Some(bytes) = made.transpose()? else {
            // Another process writes. The next commit asks again.
            self.forget();
            return Ok(());
        };
        file.sync_data()?;
        self.0.store(i32::try_from(bytes / FRAME_BYTES).unwrap_or(i32::MAX), Ordering::Release);
        Ok(())
    }
}

fn lengthen(mut file: &File, from: u64) -> io::Result<u64> {
    let nothing = [0; PIECE_BYTES as usize];
    let to = from + STEP_BYTES;
    let mut at = file.seek(SeekFrom::Start(from))?;
    while at < to {
        let piece = (to - at).min(PIECE_BYTES - at % PIECE_BYTES);
        // The last of a full disk belongs to what people do.
        file.write_all(&nothing[..piece as usize]).inspect_err(|_| drop(file.set_len(from)))?;
        at += piece;
    }
    Ok(to)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use matsu_core::clock::Timestamp;
    use matsu_core::ports::store::TakeTurn;
    use matsu_core::wake::Hub;
    use rusqlite::Connection;

    use super::super::{connection, files, write_gate::WriteGate, writer::Writer};
    use crate::sqlite::synchronous::Synchronous;

    use super::*;

    fn open(store: &Path) -> Connection {
        drop(connection::migrate_alone(store).unwrap());
        connection::writer(store, Synchronous::Full).unwrap()
    }

    fn start(connection: Connection) -> Writer {
        Writer::start(WriteGate::new(connection, Synchronous::Full, Hub::new()).unwrap()).unwrap()
    }

    async fn write(writer: &Writer, keys: std::ops::Range<u32>) {
        for key in keys {
            let turn = TakeTurn { key: format!("{key}"), step_ms: 1, now: Timestamp::from_millis(0) };
            writer.write(turn).await.unwrap();
        }
    }

    fn count(connection: &Connection) -> u32 {
        connection.query_row("SELECT count(*) FROM rates", [], |row| row.get(0)).unwrap()
    }

    fn bytes_of(log: &Path) -> u64 {
        std::fs::metadata(log).map_or(0, |found| found.len())
    }

    #[track_caller]
    fn becomes_longer_than(log: &Path, bytes: u64) -> u64 {
        let is_longer = |_: &u32| {
            files::pause(Duration::from_millis(1));
            bytes_of(log) > bytes
        };
        assert!((0..20_000).find(is_longer).is_some(), "no space was reserved");
        bytes_of(log)
    }

    #[tokio::test]
    async fn commits_find_space_in_the_log_and_a_copy_of_it_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let (store, log) = (folder.path().join("matsu.db"), folder.path().join("matsu.db-wal"));
        let writer = start(open(&store));
        write(&writer, 0..1).await;
        let long = becomes_longer_than(&log, STEP_BYTES);
        write(&writer, 1..31).await;
        assert_eq!(bytes_of(&log), long, "thirty commits make it no longer");

        // As a crash leaves it: the log ends in reserved space.
        let other = tempfile::tempdir().unwrap();
        for name in ["matsu.db", "matsu.db-wal"] {
            std::fs::copy(folder.path().join(name), other.path().join(name)).unwrap();
        }
        assert_eq!(count(&open(&other.path().join("matsu.db"))), 31);
    }

    #[tokio::test]
    async fn a_log_that_is_cut_off_by_another_gets_space_again() {
        let folder = tempfile::tempdir().unwrap();
        let (store, log) = (folder.path().join("matsu.db"), folder.path().join("matsu.db-wal"));
        let (writer, other) = (start(open(&store)), open(&store));
        write(&writer, 0..20).await;
        becomes_longer_than(&log, STEP_BYTES);
        while bytes_of(&log) > 0 {
            other.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
        }
        write(&writer, 20..22).await;
        becomes_longer_than(&log, STEP_BYTES);
        assert_eq!(count(&other), 22);
    }

    #[tokio::test]
    async fn no_space_is_reserved_while_another_process_writes() {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("matsu.db");
        let (connection, other) = (open(&store), open(&store));
        let writer_connection = WriterConnection::of(connection);
        let space = LogSpace::default();
        assert!(space.is_short(0) && !space.is_short(0), "one of those who see it makes it");
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        let log = folder.path().join("matsu.db-wal");
        let before = bytes_of(&log);
        space.make(&log, 0, &writer_connection).unwrap();
        assert_eq!(bytes_of(&log), before);
        other.execute_batch("ROLLBACK").unwrap();
        assert!(space.is_short(0), "and the next commit asks again");
        space.make(&log, 0, &writer_connection).unwrap();
        assert!(bytes_of(&log) >= STEP_BYTES && !space.is_short(0));
    }
}
