//! A search engine: a question in, a ranked list of addresses out.
//!
//! It makes one attempt and reports what went wrong. Turns, retries and the circuit breaker are the caller's.

use std::time::Duration;

use async_trait::async_trait;

use crate::principal::Principal;
use crate::research::merge::Hit;

#[async_trait]
pub trait SearchEngine: Send + Sync {
    /// What users name it by; one word.
    fn name(&self) -> &'static str;

    /// How often it may be asked, over all workers.
    fn pace(&self) -> Pace;

    /// Whether it finds something only in folders that the request names.
    fn needs_folder(&self) -> bool {
        false
    }

    /// Best first, at most `hits_max`. Nothing found is an empty list, not an error.
    async fn search(&self, request: &EngineRequest) -> Result<EngineHits, EngineError>;
}

/// What an engine found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EngineHits {
    pub hits: Vec<Hit>,
    /// What is missing from the list, a sentence for each part of the engine that did not respond.
    pub missing: Vec<String>,
    /// Documents that are there and could not be read, so that they are not found.
    pub unread: Vec<UnreadDocument>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadDocument {
    pub url: String,
    pub reason: String,
}

impl From<Vec<Hit>> for EngineHits {
    fn from(hits: Vec<Hit>) -> Self {
        Self { hits, ..Self::default() }
    }
}

#[derive(Clone, Debug)]
pub struct EngineRequest {
    pub query: String,
    /// BCP 47; engines that take a language use it.
    pub language: Option<String>,
    pub hits_max: u32,
    /// The principal that searches: what belongs to another principal is not found.
    pub owner: Principal,
    /// Folders the owner lets `local` look into; other engines ignore them.
    pub folders: Vec<String>,
}

/// How politely a thing is to be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// On this machine: as often as one likes.
    Local,
    /// One request at a time, and this long between two.
    Remote { step: Duration },
}

/// Why there is no list, named for what the caller does next.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EngineError {
    /// Asked too often: stretch the pace, try no sooner than this.
    #[error("rate-limited (429)")]
    RateLimited { retry_after: Option<Duration> },
    /// It refuses us: open the breaker.
    #[error("refused: {0}")]
    Blocked(String),
    /// It may answer next time.
    #[error("{0}")]
    Failed(String),
}
