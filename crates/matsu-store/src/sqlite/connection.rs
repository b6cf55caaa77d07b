//! Opening SQLite files: the only place that does. Settings, migrations, backups.
#![expect(clippy::disallowed_methods, reason = "the one file that opens SQLite databases")]

use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use matsu_core::error_code::ErrorCode;
use matsu_core::ports::store::StoreError;
use rusqlite::backup::Backup;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::files::{self, OpenLock};
use crate::sql::internal;
use crate::sql::sqlite::error;
use crate::sqlite::synchronous::Synchronous;

/// Each is applied once, in order, and never edited.
const MIGRATIONS: &[&str] = &[
    include_str!("../../migrations/sqlite/0001_engine.sql"),
    include_str!("../../migrations/sqlite/0002_sessions.sql"),
    include_str!("../../migrations/sqlite/0003_failed_tasks.sql"),
    include_str!("../../migrations/sqlite/0004_transcripts.sql"),
    include_str!("../../migrations/sqlite/0005_engine_care.sql"),
    include_str!("../../migrations/sqlite/0006_runs.sql"),
    include_str!("../../migrations/sqlite/0007_research.sql"),
    include_str!("../../migrations/sqlite/0008_open_tasks.sql"),
    include_str!("../../migrations/sqlite/0009_chat_turns.sql"),
    include_str!("../../migrations/sqlite/0010_run_ids.sql"),
    include_str!("../../migrations/sqlite/0011_lone_jobs.sql"),
    include_str!("../../migrations/sqlite/0012_access.sql"),
    include_str!("../../migrations/sqlite/0013_survival.sql"),
    include_str!("../../migrations/sqlite/0014_ranked_claims.sql"),
    include_str!("../../migrations/sqlite/0015_finished.sql"),
    include_str!("../../migrations/sqlite/0016_notify.sql"),
    include_str!("../../migrations/sqlite/0017_reviews.sql"),
    include_str!("../../migrations/sqlite/0018_dependencies.sql"),
    include_str!("../../migrations/sqlite/0019_schedules.sql"),
    include_str!("../../migrations/sqlite/0020_webhooks.sql"),
    include_str!("../../migrations/sqlite/0021_spent.sql"),
    include_str!("../../migrations/sqlite/0022_push.sql"),
    include_str!("../../migrations/sqlite/0023_same_claims.sql"),
    include_str!("../../migrations/sqlite/0024_notice_outcomes.sql"),
];

pub const SCHEMA_VERSION: i64 = MIGRATIONS.len() as i64;

/// What all of them make of an empty file. A test compares, and writes it again. A new store takes this way: in a debug
/// build all steps take 27 ms, and every test has a store.
const FRESH: &str = include_str!("../../migrations/sqlite/fresh.sql");

/// For a copy in one step.
const ALL_PAGES: i32 = -1;

/// Statements that one connection keeps prepared; more than the code has.
const STATEMENTS_MAX: usize = 256;

/// How long a statement waits for another process that is writing.
pub const BUSY_MAX: Duration = Duration::from_secs(10);

pub fn writer(path: &Path, synchronous: Synchronous) -> Result<Connection, StoreError> {
    let connection = Connection::open(path).map_err(error)?;
    settle_down(&connection)?;
    // Here and not with the migration: a restored backup has a current schema, but not this mode.
    connection.pragma_update(None, "journal_mode", "WAL").map_err(error)?;
    let synchronous = match synchronous {
        Synchronous::Full => "FULL",
        Synchronous::Normal => "NORMAL",
    };
    connection.pragma_update(None, "synchronous", synchronous).map_err(error)?;
    Ok(connection)
}

/// For copying the log into the file. It must sync both, as any setting but OFF does.
pub fn log_copier(path: &Path) -> Result<Connection, StoreError> {
    let connection = Connection::open(path).map_err(error)?;
    connection.busy_timeout(BUSY_MAX).map_err(error)?;
    connection.pragma_update(None, "synchronous", "NORMAL").map_err(error)?;
    Ok(connection)
}

pub fn reader(path: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(error)?;
    settle_down(&connection)?;
    Ok(connection)
}

/// A database that lives in this process alone, with its schema. Only the first one is made; the others are its copies.
pub fn in_memory() -> Result<Connection, StoreError> {
    static FIRST: Mutex<Option<Connection>> = Mutex::new(None);
    let mut connection = Connection::open_in_memory().map_err(error)?;
    let mut first = FIRST.lock().unwrap_or_else(PoisonError::into_inner);
    if first.is_none() {
        let mut made = Connection::open_in_memory().map_err(error)?;
        migrate(&mut made)?;
        *first = Some(made);
    }
    if let Some(first) = &*first {
        Backup::new(first, &mut connection).and_then(|copy| copy.step(ALL_PAGES)).map_err(error)?;
    }
    settle_down(&connection)?;
    Ok(connection)
}

fn settle_down(connection: &Connection) -> Result<(), StoreError> {
    connection.busy_timeout(BUSY_MAX).map_err(error)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    // Plans must not depend on bound values: a statement whose plan might is compiled anew at every use.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map_err(error)?;
    connection.pragma_update(None, "cache_size", -16_000).map_err(error)?;
    connection.pragma_update(None, "temp_store", "MEMORY").map_err(error)
}

/// While another process changes the journal mode, SQLite refuses at once and ignores its busy timeout.
pub fn patiently<T>(mut open: impl FnMut() -> Result<T, StoreError>) -> Result<T, StoreError> {
    for _ in 0..files::ALONE_TRIES {
        match open() {
            Err(StoreError::Unavailable(why)) if why.contains("is locked") => files::pause(files::ALONE_PAUSE),
            answer => return answer,
        }
    }
    open()
}

/// Brings the file up to date, alone with it if something must change, and returns the lock that keeps it so.
pub fn migrate_alone(path: &Path) -> Result<OpenLock, StoreError> {
    let lock = OpenLock::of(path)?;
    files::make_private_file(path)?;
    let mut connection = Connection::open(path).map_err(error)?;
    connection.busy_timeout(BUSY_MAX).map_err(error)?;
    let mut tries = 0;
    loop {
        // Looked at under the shared lock: another process may have migrated it while we waited to be alone, and
        // a newer one may have come between our own migration and this.
        lock.share()?;
        if check_not_newer(&connection)? == SCHEMA_VERSION {
            return Ok(lock);
        }
        if lock.try_alone()? {
            migrate(&mut connection)?;
            continue;
        }
        tries += 1;
        if tries == files::ALONE_TRIES {
            return Err(lock.busy());
        }
        files::pause(files::ALONE_PAUSE);
    }
}

/// The first look into the file: it may be anything.
fn version(connection: &Connection) -> Result<i64, StoreError> {
    let answer = connection.query_row("PRAGMA user_version", [], |row| row.get(0));
    answer.map_err(|failure| match failure.sqlite_error_code() {
        Some(rusqlite::ErrorCode::NotADatabase) => StoreError::Refused {
            code: ErrorCode::InvalidParams,
            message: format!(
                "{} is not a database; name another file with --store sqlite:PATH",
                connection.path().unwrap_or_default()
            ),
        },
        _ => error(failure),
    })
}

fn check_not_newer(connection: &Connection) -> Result<i64, StoreError> {
    let found = version(connection)?;
    if found > SCHEMA_VERSION {
        return Err(StoreError::Refused {
            code: ErrorCode::StoreNewer,
            message: format!(
                "the store has schema {found}, but this version of matsu knows only up to {SCHEMA_VERSION}; use a newer matsu"
            ),
        });
    }
    Ok(found)
}

/// All missing steps in one transaction: either the schema is current afterwards, or nothing changed.
fn migrate(connection: &mut Connection) -> Result<(), StoreError> {
    let found = check_not_newer(connection)?;
    let steps = if found == 0 { &[FRESH] } else { &MIGRATIONS[usize::try_from(found).map_err(internal)?..] };
    let transaction = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate).map_err(error)?;
    for step in steps {
        transaction.execute_batch(step).map_err(error)?;
    }
    transaction.pragma_update(None, "user_version", SCHEMA_VERSION).map_err(error)?;
    transaction.commit().map_err(error)
}

/// Copies a live file page by page; writers go on meanwhile.
pub async fn backup(from: &Path, to: &Path) -> Result<(), StoreError> {
    if to.exists() {
        return Err(StoreError::Refused {
            code: ErrorCode::InvalidParams,
            message: format!("{} exists already; name a new file", to.display()),
        });
    }
    let (from, to) = (from.to_owned(), to.to_owned());
    let copy = move || {
        let source = reader(&from)?;
        let partial = files::beside(&to, &format!(".partial-{}", std::process::id()));
        // What a run that was killed may have left behind.
        let _ = std::fs::remove_file(&partial);
        files::make_private_file(&partial)?;
        // One read transaction over the whole copy: what is copied is one moment.
        let copied = source.execute("VACUUM INTO ?1", [partial.to_string_lossy()]).map_err(error);
        copied.and_then(|_| files::publish(&partial, &to)).inspect_err(|_| {
            let _ = std::fs::remove_file(&partial);
        })
    };
    tokio::task::spawn_blocking(copy).await.map_err(internal)?
}

#[cfg(test)]
mod tests;
