//! The backends, and how an address chooses one.

use std::path::Path;
use std::sync::Arc;

use matsu_core::clock::Clock;
use matsu_core::error_code::ErrorCode;
use matsu_core::ports::store::{Store, StoreError};
use matsu_core::wake::Hub;

use crate::memory::Memory;
use crate::postgres::Postgres;
use crate::sql_store::{Backend, SqlStore};
use crate::sqlite::Sqlite;

pub use crate::sqlite::synchronous::Synchronous;

#[derive(Clone, Copy, Debug)]
pub struct OpenOptions {
    pub synchronous: Synchronous,
    pub clock: Clock,
}

/// A store, and whether what it holds outlives the process.
pub struct Opened {
    pub store: Arc<dyn Store>,
    pub durable: bool,
}

/// Opens `memory:`, `sqlite:PATH` or `postgres://…`.
///
/// # Errors
/// An unknown scheme, a store that cannot be reached, is newer than this version, or must be migrated while another
/// process has it open.
pub async fn open(url: &str, options: OpenOptions) -> Result<Opened, StoreError> {
    let hub = Hub::new();
    let backend = match url.split_once(':') {
        Some(("memory", "")) => Backend::Memory(Memory::open(Arc::clone(&hub))?),
        Some(("sqlite", path)) if !path.is_empty() => {
            let (path, synchronous, clock) = (Path::new(path).to_owned(), options.synchronous, options.clock);
            let for_writer = Arc::clone(&hub);
            // Opening waits for locks and may migrate: not on a thread that others need.
            let opening = tokio::task::spawn_blocking(move || Sqlite::open(&path, synchronous, for_writer, clock));
            Backend::Sqlite(opening.await.map_err(crate::sql::internal)??)
        }
        Some(("postgres" | "postgresql", _)) => {
            Backend::Postgres(Box::new(Postgres::open(url, Arc::clone(&hub), options.clock).await?))
        }
        _ => {
            return Err(StoreError::Refused {
                code: ErrorCode::InvalidParams,
                message: "a store is memory:, sqlite:PATH or postgres://…".to_owned(),
            });
        }
    };
    let durable = !matches!(backend, Backend::Memory(_));
    Ok(Opened { store: Arc::new(SqlStore::new(backend, hub)), durable })
}
