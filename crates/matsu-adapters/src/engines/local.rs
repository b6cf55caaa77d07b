//! The engine over the user's own documents: Markdown, text, HTML and PDF in the folders a search may look into.
//!
//! Every search first brings the index up to date with the folders, for a bounded time; what has not been read by then
//! is found by the next one. A document is found only through a folder that the request names, and only for the user
//! of this machine, so one owner's documents are never another's results.

mod connection;
mod folders;
mod freshness;
mod index;
mod scan;
mod words;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use matsu_core::clock::Clock;
use matsu_core::ports::search_engine::{EngineError, EngineHits, EngineRequest, Pace, SearchEngine, UnreadDocument};
use matsu_core::principal::Principal;
use matsu_core::research::address::domain_of;
use matsu_core::research::merge::Hit;
use tokio::runtime::Handle;

pub use folders::{media_type, open_inside};
use freshness::{Freshness, Step};
use index::Index;
use scan::{Scan, Scanned};

use crate::reading::DocumentReader;

pub const NAME: &str = "local";

/// Finds documents in folders.
pub struct LocalEngine {
    index: Arc<Index>,
    /// Where searches look that name no folder.
    folders: Vec<PathBuf>,
    freshness: Arc<Freshness>,
    reader: Arc<dyn DocumentReader>,
    clock: Clock,
}

impl LocalEngine {
    /// # Errors
    /// The index file cannot be opened.
    pub fn open(
        index_file: &Path,
        folders: Vec<PathBuf>,
        reader: Arc<dyn DocumentReader>,
        clock: Clock,
    ) -> Result<Self, EngineError> {
        let index = Index::open(index_file).map_err(|error| failed(&error))?;
        Ok(Self { index: Arc::new(index), folders, freshness: Arc::default(), reader, clock })
    }

    /// Brings the index up to date, for as long as it is worth waiting.
    async fn catch_up(&self, folders: &[PathBuf]) -> Result<(), EngineError> {
        let is_new = self.index.has_unread(folders).map_err(|error| failed(&error))?;
        let patience = match self.freshness.begin(folders, is_new, self.clock.instant()) {
            Step::GoOn => return Ok(()),
            Step::LookBeside => Duration::ZERO,
            Step::LookAndWait(patience) => patience,
        };
        // It goes on by itself when the search no longer waits for it.
        let looking = tokio::task::spawn_blocking(self.look_at(folders));
        match self.clock.within(patience, looking).await {
            None => Ok(()),
            Some(Ok(looked)) => looked.map_err(|error| failed(&error)),
            Some(Err(_)) => Err(EngineError::Failed("reading the folders was cut short".to_owned())),
        }
    }

    fn look_at(&self, folders: &[PathBuf]) -> impl FnOnce() -> rusqlite::Result<()> + use<> {
        let (index, freshness, clock) = (Arc::clone(&self.index), Arc::clone(&self.freshness), self.clock);
        let (folders, reader, runtime) = (folders.to_vec(), Arc::clone(&self.reader), Handle::current());
        move || {
            let began = clock.instant();
            let looked = Scan::new(&index, &*reader, runtime).run(&folders);
            let now = clock.instant();
            let seen = looked.as_ref().map_or(0, |scanned| scanned.seen);
            freshness.end(&folders, seen, now.duration_since(began), now);
            let Scanned { read, removed, .. } = looked?;
            if read + removed > 0 {
                tracing::debug!(read, removed, "the index of local documents changed");
            }
            Ok(())
        }
    }

    /// Reads folders to their end, however long it takes.
    ///
    /// # Errors
    /// The index cannot be written.
    pub async fn read_folders(&self, folders: &[PathBuf]) -> Result<(), EngineError> {
        let looked = tokio::task::spawn_blocking(self.look_at(folders)).await;
        let looked = looked.map_err(|_| EngineError::Failed("reading the folders was cut short".to_owned()))?;
        looked.map_err(|error| failed(&error))
    }
}

/// Files that could not be read, as many as one search names.
const UNREAD_NAMED_MAX: usize = 10;

/// A first look at many or slow documents goes on after the search.
const NOT_ALL_READ: &str = "some documents are not indexed yet; search again in a minute";

/// The folders a search looks into: those it names, else those configured. Links are resolved, each is there once, and
/// those that do not exist are left out.
#[must_use]
pub fn folders_of(named: &[String], configured: &[PathBuf]) -> Vec<PathBuf> {
    let named: Vec<PathBuf> = named.iter().map(PathBuf::from).collect();
    let chosen = if named.is_empty() { configured } else { &named };
    let mut found: Vec<PathBuf> = chosen.iter().filter_map(|folder| folder.canonicalize().ok()).collect();
    found.sort();
    found.dedup();
    found
}

/// The configured folders are the local owner's. Any other principal reads only what the task names, which was checked
/// when the task was made.
pub fn configured_for<'a>(owner: &Principal, configured: &'a [PathBuf]) -> &'a [PathBuf] {
    if *owner == Principal::local_user() { configured } else { &[] }
}

/// Folders without a single document with text.
fn nothing_to_read(folders: &[PathBuf]) -> String {
    let names: Vec<String> = folders.iter().map(|folder| folder.display().to_string()).collect();
    format!("there is no document that can be read in {} (Markdown, text, HTML and PDF are)", names.join(", "))
}

/// Files that could not be read. One that is found by its name is read once more and named then.
fn unread(index: &Index, folders: &[PathBuf], hits: &[Hit]) -> rusqlite::Result<Vec<UnreadDocument>> {
    let found = index.unread(folders, UNREAD_NAMED_MAX)?.into_iter().map(|(path, reason)| UnreadDocument {
        url: url::Url::from_file_path(&path).map(String::from).unwrap_or_default(),
        reason,
    });
    Ok(found.filter(|one| !hits.iter().any(|hit| hit.url == one.url)).collect())
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

    fn needs_folder(&self) -> bool {
        self.folders.is_empty()
    }

    async fn search(&self, request: &EngineRequest) -> Result<EngineHits, EngineError> {
        let folders = folders_of(&request.folders, configured_for(&request.owner, &self.folders));
        if folders.is_empty() {
            return Ok(EngineHits::default());
        }
        self.catch_up(&folders).await?;
        let (index, query, hits_max) = (Arc::clone(&self.index), request.query.clone(), request.hits_max);
        let asked = tokio::task::spawn_blocking(move || {
            let hits = index.search(&query, &folders, hits_max)?;
            let missing = if index.has_unread(&folders)? {
                vec![NOT_ALL_READ.to_owned()]
            } else if hits.is_empty() && !index.has_text(&folders)? {
                vec![nothing_to_read(&folders)]
            } else {
                Vec::new()
            };
            Ok(EngineHits { unread: unread(&index, &folders, &hits)?, hits, missing })
        });
        let found = asked.await.map_err(|_| EngineError::Failed("the search was cut short".to_owned()))?;
        found.map_err(|error| failed(&error))
    }
}

/// What a document counts as for independence: the domain of the address it gives itself, else its folder.
fn domain_of_document(folder: &Path, declared_url: Option<&str>) -> String {
    declared_url.and_then(domain_of).unwrap_or_else(|| domain_of_folder(folder))
}

/// What a document counts as that gives itself no address.
#[must_use]
pub fn domain_of_folder(folder: &Path) -> String {
    let name = folder.file_name().map_or_else(|| "/".into(), |name| name.to_string_lossy());
    format!("local:{name}")
}

#[cfg(test)]
mod tests;
