//! The memory driver: the same SQL on an SQLite database that lives in this process and dies with it.
//!
//! Every transition runs at once on the calling thread. No other thread is involved, so tests on tokio's paused
//! clock are exact: time cannot run ahead while a statement is under way.

use std::sync::{Arc, Mutex, PoisonError};

use matsu_core::id::NodeId;
use matsu_core::ports::store::StoreError;
use matsu_core::wake::Hub;
use rusqlite::Connection;

use crate::sql::Transition;
use crate::sqlite::connection;
use crate::sqlite::writer::run_alone;

pub struct Memory {
    connection: Mutex<Connection>,
    hub: Arc<Hub>,
}

impl Memory {
    pub fn open(hub: Arc<Hub>) -> Result<Self, StoreError> {
        Ok(Self { connection: Mutex::new(connection::in_memory()?), hub })
    }

    pub fn run<T: Transition>(&self, transition: &T) -> Result<T::Output, StoreError> {
        let (outcome, topics) = {
            let mut connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
            run_alone(transition, &mut connection, "BEGIN IMMEDIATE")
        };
        self.hub.publish(&topics);
        outcome
    }

    /// All nodes are in this process, which is alive.
    pub fn dead_nodes() -> Vec<NodeId> {
        Vec::new()
    }
}
