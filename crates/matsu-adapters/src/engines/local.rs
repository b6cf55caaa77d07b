//! The engine over the user's own documents: Markdown, text, HTML and PDF in the folders a search may look into.
//!
//! Every search first brings the index up to date with the folders, for a bounded time; what has not been read by then
//! is found by the next one. A document is found only through a folder that the request names, so one owner's
//! documents are never another's results.

mod connection;
mod folders;
mod index;
mod scan;
mod words;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use matsu_core::clock::Clock;
use matsu_core::ports::search_engine::{EngineError, EngineRequest, Pace, SearchEngine};
use matsu_core::research::address::domain_of;
use matsu_core::research::merge::Hit;

pub use folders::media_type;
use index::Index;
use scan::{Scan, Scanned};

pub const NAME: &str = "local";

/// A search waits this long for the index to catch up with folders it has seen before.
const CATCH_UP_MAX: Duration = Duration::from_secs(2);
/// And this long for folders it sees for the first time.
const FIRST_READ_MAX: Duration = Duration::from_secs(60);

/// Finds documents in folders.
pub struct LocalEngine {
    index: Arc<Index>,
    /// Folders that every search of the machine's own user may look into, besides those of the request.
    folders: Vec<PathBuf>,
    clock: Clock,
}

impl LocalEngine {
    /// # Errors
    /// The index file cannot be opened.
    pub fn open(index_file: &Path, folders: Vec<PathBuf>, clock: Clock) -> Result<Self, EngineError> {
        let index = Index::open(index_file).map_err(|error| failed(&error))?;
        Ok(Self { index: Arc::new(index), folders, clock })
    }

    /// The folders of a request, links resolved, each once; those that do not exist are left out.
    fn folders_of(&self, request: &EngineRequest) -> Vec<PathBuf> {
        let named = request.folders.iter().map(PathBuf::from);
        let configured = self.folders.iter().filter(|_| request.folders.is_empty()).cloned();
        let mut found: Vec<PathBuf> = named.chain(configured).filter_map(|folder| folder.canonicalize().ok()).collect();
        found.sort();
        found.dedup();
        found
    }

    async fn catch_up(&self, folders: &[PathBuf]) -> Result<(), EngineError> {
        let is_new = self.index.has_unread(folders).map_err(|error| failed(&error))?;
        let (index, folders) = (Arc::clone(&self.index), folders.to_vec());
        // Goes on by itself when the search no longer waits for it.
        let reading = tokio::task::spawn_blocking(move || Scan::new(&index).run(&folders));
        let patience = if is_new { FIRST_READ_MAX } else { CATCH_UP_MAX };
        match self.clock.within(patience, reading).await {
            None => Ok(()),
            Some(Ok(Ok(scanned))) => {
                let Scanned { read, removed, .. } = scanned;
                if read + removed > 0 {
                    tracing::debug!(read, removed, "the index of local documents changed");
                }
                Ok(())
            }
            Some(Ok(Err(error))) => Err(failed(&error)),
            Some(Err(_)) => Err(EngineError::Failed("reading the folders was cut short".to_owned())),
        }
    }
}

fn failed(error: &rusqlite::Error) -> EngineError {
    EngineError::Failed(format!("the index of local documents: {error}"))
}

#[async_trait]
impl SearchEngine for LocalEngine {
    fn name(&self) -> &'static str {
        NAME
    }

    fn pace(&self) -> Pace {
        Pace::Local
    }

    async fn search(&self, request: &EngineRequest) -> Result<Vec<Hit>, EngineError> {
        let folders = self.folders_of(request);
        if folders.is_empty() {
            return Ok(Vec::new());
        }
        self.catch_up(&folders).await?;
        let (index, query, hits_max) = (Arc::clone(&self.index), request.query.clone(), request.hits_max);
        let asked = tokio::task::spawn_blocking(move || index.search(&query, &folders, hits_max)).await;
        let found = asked.map_err(|_| EngineError::Failed("the search was cut short".to_owned()))?;
        found.map_err(|error| failed(&error))
    }
}

/// What a document counts as for independence: the domain of the address it gives itself, else its folder.
#[must_use]
pub fn domain_of_document(folder: &Path, body: &[u8], media_type: &str) -> String {
    let declared = crate::extract::declared_url(body, media_type);
    declared.and_then(|url| domain_of(&url)).unwrap_or_else(|| domain_of_folder(folder))
}

fn domain_of_folder(folder: &Path) -> String {
    let name = folder.file_name().map_or_else(|| "/".into(), |name| name.to_string_lossy());
    format!("local:{name}")
}

#[cfg(test)]
mod tests;
