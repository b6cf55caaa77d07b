//! Readers: a few connections that see the last commit and never wait for the writer.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use matsu_core::ports::store::StoreError;
use rusqlite::Connection;
use tokio::sync::Semaphore;

use super::connection;
use super::writer::run_alone;
use crate::sql::{Transition, internal};

const READERS: usize = 4;

/// A pool. A caller needs one of the semaphore's permits to take an idle reader, or to open one if none is idle.
pub struct Readers {
    path: Arc<Path>,
    places: Arc<Semaphore>,
    idle: Arc<Mutex<Vec<Connection>>>,
}

impl Readers {
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        // The first at once: what cannot be read is found out now.
        let idle = Arc::new(Mutex::new(vec![connection::reader(path)?]));
        Ok(Self { path: Arc::from(path), places: Arc::new(Semaphore::new(READERS)), idle })
    }

    /// Runs a transition that only reads, in one snapshot: here if it is quick, else on a blocking thread.
    pub async fn read<T: Transition>(&self, transition: T) -> Result<T::Output, StoreError> {
        let place = Arc::clone(&self.places).acquire_owned().await.map_err(internal)?;
        let (idle, is_quick) = (Arc::clone(&self.idle), transition.is_quick());
        let path = Arc::clone(&self.path);
        let work = move || {
            let _place = place;
            let taken = lock(&idle).pop();
            let mut connection = taken.map_or_else(|| connection::reader(&path), Ok)?;
            let (outcome, _) = run_alone(&transition, &mut connection, "BEGIN DEFERRED");
            lock(&idle).push(connection);
            outcome
        };
        if is_quick { work() } else { tokio::task::spawn_blocking(work).await.map_err(internal)? }
    }
}

fn lock(idle: &Mutex<Vec<Connection>>) -> std::sync::MutexGuard<'_, Vec<Connection>> {
    idle.lock().unwrap_or_else(PoisonError::into_inner)
}
