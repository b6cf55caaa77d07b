//! The SQLite driver: one writer thread with group commit, a pool of readers, locks that prove nodes alive.

pub mod connection;
pub mod data_file;
pub mod files;
pub mod foreign;
pub mod log_keeper;
pub mod log_space;
pub mod readers;
pub mod round;
pub mod synchronous;
pub mod write_gate;
pub mod writer;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use matsu_core::clock::Clock;
use matsu_core::id::NodeId;
use matsu_core::ports::store::{ForeignChange, NewNode, ReadNodes, StoreError};
use matsu_core::wake::Hub;

use crate::sql::Transition;
use crate::sqlite::synchronous::Synchronous;
use crate::transitions::tasks::nodes::{ReadUnregistered, Register};

use files::{NodeLocks, OpenLock};
use readers::Readers;
use write_gate::WriteGate;
use writer::Writer;

/// A store in one file.
pub struct Sqlite {
    path: PathBuf,
    writer: Writer,
    readers: Readers,
    nodes: NodeLocks,
    seen: foreign::LastSeen,
    clock: Clock,
    /// Held for as long as the store is open, so that no other process migrates it meanwhile.
    _open: OpenLock,
}

impl Sqlite {
    /// Opens the file, creating it and its folder if need be, and brings its schema up to date.
    pub fn open(path: &Path, synchronous: Synchronous, hub: Arc<Hub>, clock: Clock) -> Result<Self, StoreError> {
        files::make_private_folder(path)?;
        let (open, writer, readers) = connection::patiently(|| {
            let open = connection::migrate_alone(path)?;
            Ok((open, connection::writer(path, synchronous)?, Readers::open(path)?))
        })?;
        let writer = Writer::start(WriteGate::new(writer, synchronous, hub)?)?;
        let nodes = NodeLocks::beside(path);
        let seen = foreign::LastSeen::default();
        Ok(Self { path: path.to_owned(), writer, readers, nodes, seen, clock, _open: open })
    }

    pub async fn write<T: Transition>(&self, transition: T) -> Result<T::Output, StoreError> {
        self.writer.write(transition).await
    }

    pub async fn read<T: Transition>(&self, transition: T) -> Result<T::Output, StoreError> {
        self.readers.read(transition).await
    }

    /// The lock first, the row second: a row without a lock would look like a dead node.
    pub async fn register_node(&self, node: NewNode) -> Result<(), StoreError> {
        self.nodes.hold(&node.id)?;
        self.write(Register(node)).await
    }

    /// Every known node whose lock is free, and every owner of a job that is no node at all.
    pub async fn dead_nodes(&self, observer: &NodeId) -> Result<Vec<NodeId>, StoreError> {
        let nodes = self.read(ReadNodes).await?;
        let unregistered = self.read(ReadUnregistered).await?;
        let known = nodes.into_iter().map(|node| node.id);
        let others = known.chain(unregistered).filter(|id| id != observer);
        Ok(others.filter(|id| self.nodes.is_free(id)).collect())
    }

    /// Removes lock files that no node owns: their process died before its row was written, or after it was removed.
    pub async fn sweep_locks(&self) -> Result<(), StoreError> {
        let known: Vec<NodeId> = self.read(ReadNodes).await?.into_iter().map(|node| node.id).collect();
        self.nodes.sweep(&known);
        Ok(())
    }

    /// After its row is gone, its lock file may go too.
    pub fn forget_node(&self, id: &NodeId) {
        self.nodes.remove(id);
    }

    pub async fn foreign_change(&self) -> ForeignChange {
        foreign::change(&self.writer, &self.nodes, &self.seen, &self.clock).await
    }

    pub async fn backup(&self, to: &Path) -> Result<(), StoreError> {
        connection::backup(&self.path, to).await
    }

    pub fn location(&self) -> String {
        self.path.display().to_string()
    }

    pub fn schema_version() -> i64 {
        connection::SCHEMA_VERSION
    }
}
