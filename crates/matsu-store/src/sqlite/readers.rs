//! Readers: a few connections that see the last commit and never wait for the writer.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use matsu_core::ports::store::StoreError;
use rusqlite::Connection;
use tokio::sync::Semaphore;

use super::connection;
use super::writer::{run_alone, run_now};
use crate::sql::{Transition, internal};

/// Slow reads at the same time, and connections that are kept for the next read.
const READERS: usize = 4;

pub struct Readers {
    /// Slow reads wait here for each other. A quick read waits for none of them.
    slow: Arc<Semaphore>,
    pool: Arc<Pool>,
}

impl Readers {
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        // The first at once: what cannot be read is found out now.
        let idle = Mutex::new(vec![connection::reader(path)?]);
        Ok(Self { slow: Arc::new(Semaphore::new(READERS)), pool: Arc::new(Pool { path: Box::from(path), idle }) })
    }

    /// Runs a transition that only reads, in one snapshot: here if it is quick, else on a blocking thread.
    pub async fn read<T: Transition>(&self, transition: T) -> Result<T::Output, StoreError> {
        if transition.is_quick() {
            return self.pool.read(&transition);
        }
        let permit = Arc::clone(&self.slow).acquire_owned().await.map_err(internal)?;
        let pool = Arc::clone(&self.pool);
        let work = move || {
            let _permit = permit;
            pool.read(&transition)
        };
        tokio::task::spawn_blocking(work).await.map_err(internal)?
    }
}

/// Connections that only read, opened when one is missing.
struct Pool {
    path: Box<Path>,
    idle: Mutex<Vec<Connection>>,
}

impl Pool {
    fn read<T: Transition>(&self, transition: &T) -> Result<T::Output, StoreError> {
        let taken = lock(&self.idle).pop();
        let mut connection = taken.map_or_else(|| connection::reader(&self.path), Ok)?;
        let (outcome, _) = if transition.is_single_statement() {
            run_now(transition, &mut connection)
        } else {
            run_alone(transition, &mut connection, "BEGIN DEFERRED")
        };
        let mut idle = lock(&self.idle);
        if idle.len() < READERS {
            idle.push(connection);
        }
        outcome
    }
}

fn lock(idle: &Mutex<Vec<Connection>>) -> std::sync::MutexGuard<'_, Vec<Connection>> {
    idle.lock().unwrap_or_else(PoisonError::into_inner)
}
