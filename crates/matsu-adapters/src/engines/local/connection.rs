//! The index's database file: opened here, with bounded memory, thrown away and built anew if its shape is not ours.
//! It holds nothing that the folders do not, so losing it costs time only.
#![expect(clippy::disallowed_methods, reason = "databases are opened in connection.rs")]

use std::fs::{OpenOptions, Permissions};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::time::Duration;

use rusqlite::Connection;

/// Changes whenever the tables or the cutting of words do.
const SHAPE: i64 = 5;

const TABLES: &str = "
CREATE TABLE documents (
  id INTEGER PRIMARY KEY,
  path TEXT NOT NULL,
  part INTEGER NOT NULL,
  size INTEGER NOT NULL,
  changed_ns INTEGER NOT NULL,
  title TEXT NOT NULL,
  lead TEXT NOT NULL,
  domain TEXT NOT NULL,
  year INTEGER,
  UNIQUE (path, part)
);
CREATE VIRTUAL TABLE words USING fts5 (
  title, body, content = '', contentless_delete = 1, detail = full,
  tokenize = \"unicode61 remove_diacritics 2\"
);
-- Words wait in this many bytes of memory until they are written: fewer pieces of the index have to be merged later.
INSERT INTO words (words, rank) VALUES ('hashsize', 16777216);
CREATE VIRTUAL TABLE vocabulary USING fts5vocab (words, 'row');
CREATE TABLE common (entry TEXT PRIMARY KEY, rows INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE notes (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE unread (path TEXT PRIMARY KEY, reason TEXT NOT NULL) WITHOUT ROWID;
";

/// Of every earlier shape.
const NO_TABLES: &str = "
DROP TABLE IF EXISTS vocabulary;
DROP TABLE IF EXISTS words;
DROP TABLE IF EXISTS documents;
DROP TABLE IF EXISTS common;
DROP TABLE IF EXISTS notes;
DROP TABLE IF EXISTS unread;
";

/// Of the index file, for each reader.
const MAPPED_BYTES_MAX: i64 = 64 * 1024 * 1024;

/// For the one writer.
///
/// # Errors
/// The file cannot be opened or built.
pub fn open_writer(path: &Path) -> rusqlite::Result<Connection> {
    close_to_others(path);
    let connection = open_any(path)?;
    // One process at a time, and looked at again once it is this one's turn: another may have built it meanwhile.
    connection.execute_batch("BEGIN IMMEDIATE")?;
    if shape_of(&connection)? != SHAPE {
        connection.execute_batch(NO_TABLES)?;
        connection.execute_batch(TABLES)?;
        connection.pragma_update(None, "user_version", SHAPE)?;
    }
    connection.execute_batch("COMMIT")?;
    Ok(connection)
}

/// What is no database is thrown away.
fn open_any(path: &Path) -> rusqlite::Result<Connection> {
    let opened = Connection::open(path).and_then(|connection| settings(&connection).map(|()| connection));
    let is_other = |error: &rusqlite::Error| {
        let code = error.sqlite_error_code();
        matches!(code, Some(rusqlite::ErrorCode::NotADatabase | rusqlite::ErrorCode::DatabaseCorrupt))
    };
    match opened {
        Err(error) if is_other(&error) => {
            for ending in ["", "-wal", "-shm"] {
                let mut name = path.as_os_str().to_owned();
                name.push(ending);
                // What is not there need not be removed; what cannot be removed shows in the next line.
                let _ = std::fs::remove_file(name);
            }
            close_to_others(path);
            let fresh = Connection::open(path)?;
            settings(&fresh)?;
            Ok(fresh)
        }
        opened => opened,
    }
}

/// The words of a person's documents are for that person. Made before SQLite does, whose own files beside it take the
/// same permissions. What cannot be done shows when the file is opened.
fn close_to_others(path: &Path) {
    let made = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(path);
    let _ = made.and_then(|file| file.set_permissions(Permissions::from_mode(0o600)));
    for ending in ["-wal", "-shm"] {
        let mut name = path.as_os_str().to_owned();
        name.push(ending);
        let _ = std::fs::set_permissions(name, Permissions::from_mode(0o600));
    }
}

/// For a reader; the file exists.
///
/// # Errors
/// The file cannot be opened.
pub fn open_reader(path: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open(path)?;
    settings(&connection)?;
    // Only readers: what a writer looks at while it merges would be mapped too and stay in memory.
    connection.pragma_update(None, "mmap_size", MAPPED_BYTES_MAX)?;
    connection.pragma_update(None, "query_only", true)?;
    Ok(connection)
}

fn shape_of(connection: &Connection) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

fn settings(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(Duration::from_secs(5))?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    // The index can be built again: a crash may cost its last moments, never its shape.
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    connection.pragma_update(None, "cache_size", -8_192)?;
    connection.pragma_update(None, "temp_store", "MEMORY")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_processes_may_open_a_new_index_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("documents.db");
        let opened: Vec<_> = std::thread::scope(|scope| {
            let openers: Vec<_> = (0..8).map(|_| scope.spawn(|| open_writer(&path).map(|_| ()))).collect();
            openers.into_iter().map(|opener| opener.join().unwrap()).collect()
        });
        assert!(opened.iter().all(Result::is_ok), "{opened:?}");
        assert_eq!(shape_of(&open_reader(&path).unwrap()).unwrap(), SHAPE);
    }

    #[test]
    fn another_shape_and_what_is_no_database_are_built_anew() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("documents.db");
        open_writer(&path).unwrap().pragma_update(None, "user_version", SHAPE - 1).unwrap();
        let built = open_writer(&path).unwrap();
        assert_eq!(built.query_row("SELECT count(*) FROM documents", [], |row| row.get::<_, i64>(0)).unwrap(), 0);
        drop(built);
        std::fs::write(&path, "this is text, and longer than the head of a database would be: ".repeat(20)).unwrap();
        assert_eq!(shape_of(&open_writer(&path).unwrap()).unwrap(), SHAPE);
    }
}
