//! Any backend as a store: every transition is run by the driver; what a backend does in its own way is a method.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use matsu_core::clock::Timestamp;
use matsu_core::error_code::ErrorCode;
use matsu_core::id::{JobId, NodeId, SessionId};
use matsu_core::ports::store::{
    ClaimOutcome, FinishAndClaim, ForeignChange, NewNode, PruneRule, Pruned, Run, Store, StoreError, StoreInfo,
    TakeTurn,
};
use matsu_core::wake::Hub;

use crate::memory::Memory;
use crate::postgres::{self, Postgres};
use crate::sql::{AnyOutput, AnyTransition, Driver, QUICK_MAX, Transition, Tx};
use crate::sqlite::{self, Sqlite};
use crate::transitions::chats::guard::Guarded;
use crate::transitions::tasks::changes::Prune;
use crate::transitions::tasks::finish_and_claim::finish;
use crate::transitions::tasks::nodes::{Beat, ReapNode, Register};
use crate::transitions::tasks::read::ReadInfo;

/// A driver.
pub enum Backend {
    Memory(Memory),
    Sqlite(Sqlite),
    Postgres(Box<Postgres>),
}

/// Any backend as a [`Store`].
pub struct SqlStore {
    backend: Arc<Backend>,
    hub: Arc<Hub>,
    /// On behalf of which session it writes.
    guard: Option<SessionId>,
}

impl SqlStore {
    pub fn new(backend: Backend, hub: Arc<Hub>) -> Self {
        Self { backend: Arc::new(backend), hub, guard: None }
    }

    async fn write<T: Transition>(&self, transition: T) -> Result<T::Output, StoreError> {
        let output = self.write_any(AnyTransition::new(transition)).await?;
        AnyTransition::output::<T>(output)
    }

    async fn read<T: Transition>(&self, transition: T) -> Result<T::Output, StoreError> {
        let output = self.read_any(AnyTransition::new(transition)).await?;
        AnyTransition::output::<T>(output)
    }

    async fn write_any(&self, transition: AnyTransition) -> Result<AnyOutput, StoreError> {
        match &self.guard {
            None => self.commit(transition).await,
            Some(session) => self.commit(Guarded { session: session.clone(), inner: transition }).await,
        }
    }

    async fn commit<T: Transition>(&self, transition: T) -> Result<T::Output, StoreError> {
        match &*self.backend {
            Backend::Memory(memory) => memory.run(&transition),
            Backend::Sqlite(sqlite) => sqlite.write(transition).await,
            Backend::Postgres(postgres) => postgres.write(transition).await,
        }
    }

    async fn read_any(&self, transition: AnyTransition) -> Result<AnyOutput, StoreError> {
        match &*self.backend {
            Backend::Memory(memory) => memory.run(&transition),
            Backend::Sqlite(sqlite) => sqlite.read(transition).await,
            Backend::Postgres(postgres) => postgres.read(transition).await,
        }
    }
}

/// Settling and claiming in one go is each driver's own; where nothing is claimed, all do the same.
impl Transition for FinishAndClaim {
    fn is_quick(&self) -> bool {
        let claims = self.claim.as_ref().map_or(0, |claim| claim.jobs_max as usize);
        self.finishes.len().max(claims) <= QUICK_MAX
    }

    async fn run(&self, tx: &mut Tx<'_>) -> Result<ClaimOutcome, StoreError> {
        match (&self.claim, tx.driver()) {
            (Some(claim), Driver::Sqlite(_)) => sqlite::round::run(self, claim, tx).await,
            (Some(claim), Driver::Postgres(_)) if claim.jobs_max > 0 => postgres::round::run(self, claim, tx).await,
            (Some(_), Driver::Postgres(_)) | (None, Driver::Sqlite(_) | Driver::Postgres(_)) => finish(self, tx).await,
        }
    }
}

#[async_trait]
impl<R: Transition> Run<R> for SqlStore {
    async fn run(&self, request: R) -> Result<R::Output, StoreError> {
        if R::READS { self.read(request).await } else { self.write(request).await }
    }
}

#[async_trait]
impl Store for SqlStore {
    fn hub(&self) -> &Arc<Hub> {
        &self.hub
    }

    fn guarded(&self, session: &SessionId) -> Arc<dyn Store> {
        let (backend, hub) = (Arc::clone(&self.backend), Arc::clone(&self.hub));
        Arc::new(Self { backend, hub, guard: Some(session.clone()) })
    }

    async fn foreign_change(&self) -> ForeignChange {
        match &*self.backend {
            Backend::Memory(_) => std::future::pending().await,
            Backend::Sqlite(sqlite) => sqlite.foreign_change().await,
            Backend::Postgres(postgres) => postgres.foreign_change().await,
        }
    }

    async fn register_node(&self, node: NewNode) -> Result<(), StoreError> {
        match &*self.backend {
            Backend::Sqlite(sqlite) => sqlite.register_node(node).await,
            Backend::Memory(_) | Backend::Postgres(_) => self.write(Register(node)).await,
        }
    }

    async fn beat(&self, id: &NodeId) -> Result<(), StoreError> {
        match &*self.backend {
            Backend::Postgres(postgres) => postgres.write(Beat(id.clone())).await,
            // A lock, or the process itself, proves it alive.
            Backend::Memory(_) | Backend::Sqlite(_) => Ok(()),
        }
    }

    async fn dead_nodes(&self, observer: &NodeId) -> Result<Vec<NodeId>, StoreError> {
        match &*self.backend {
            Backend::Memory(_) => Ok(Memory::dead_nodes()),
            Backend::Sqlite(sqlite) => sqlite.dead_nodes(observer).await,
            Backend::Postgres(postgres) => postgres.dead_nodes(observer).await,
        }
    }

    async fn reap_node(&self, id: &NodeId, now: Timestamp) -> Result<Vec<JobId>, StoreError> {
        let settled = self.write(ReapNode { node: id.clone(), now }).await?;
        if let Backend::Sqlite(sqlite) = &*self.backend {
            sqlite.forget_node(id);
        }
        Ok(settled)
    }

    async fn prune(&self, rule: PruneRule, rows_max: u32) -> Result<Pruned, StoreError> {
        if let Backend::Sqlite(sqlite) = &*self.backend {
            sqlite.sweep_locks().await?;
        }
        self.write(Prune { rule, rows_max }).await
    }

    async fn check(&self) -> Result<StoreInfo, StoreError> {
        let (backend, location, schema_version) = match &*self.backend {
            Backend::Memory(_) => ("memory", "this process".to_owned(), Sqlite::schema_version()),
            Backend::Sqlite(sqlite) => ("sqlite", sqlite.location(), Sqlite::schema_version()),
            Backend::Postgres(server) => ("postgres", server.location(), postgres::connection::SCHEMA_VERSION),
        };
        // A write, so that a full or read-only disk shows.
        self.write(TakeTurn { key: "check".to_owned(), step_ms: 0, now: Timestamp::from_millis(0) }).await?;
        self.read(ReadInfo { backend, location, schema_version }).await
    }

    async fn backup(&self, to: &Path) -> Result<(), StoreError> {
        match &*self.backend {
            Backend::Sqlite(sqlite) => sqlite.backup(to).await,
            Backend::Memory(_) => {
                Err(no_backup("a memory store cannot be backed up; use a SQLite or PostgreSQL store"))
            }
            Backend::Postgres(_) => Err(no_backup("use pg_dump to back up a PostgreSQL store")),
        }
    }
}

fn no_backup(message: &str) -> StoreError {
    StoreError::Refused { code: ErrorCode::InvalidParams, message: message.to_owned() }
}
