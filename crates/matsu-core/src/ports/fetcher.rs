//! Fetching a page: one request, no hop further. The caller follows redirects itself, so that turns, domain rules and
//! the hop limit hold for every address on the way.
//!
//! The fetcher alone judges addresses: private, loopback, link-local and metadata ones are refused after the name was
//! resolved, and the connection goes to the very address that was checked. It alone knows robots.txt and cookies.

use std::time::Duration;

use async_trait::async_trait;

use crate::principal::Principal;
use crate::research::auth::AuthType;
use crate::research::evidence::PageOrigin;

#[async_trait]
pub trait Fetcher: Send + Sync {
    /// How long to leave between two requests to the host of this address, as robots.txt or the settings ask.
    /// Refuses what must not be asked for at all. Reads robots.txt if it is not known yet.
    async fn clearance(&self, request: &FetchRequest) -> Result<Clearance, FetchError>;

    /// One request, after clearance.
    async fn fetch(&self, request: &FetchRequest, means: FetchMeans) -> Result<FetchOutcome, FetchError>;

    /// Whether a browser is installed that could run a page's scripts.
    fn has_browser(&self) -> bool;
}

#[derive(Clone, Debug)]
pub struct FetchRequest {
    /// Canonical. `file:` addresses are served only for hits of `local`, from inside `folders`.
    pub url: String,
    /// Engines that named it.
    pub engines: Vec<String>,
    /// Whose cookies and folders may be used.
    pub owner: Principal,
    pub folders: Vec<String>,
    /// What is known of an older copy, to be asked for only if it changed.
    pub etag: Option<String>,
    pub last_modified: Option<String>,
}

/// May be asked, at this pace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clearance {
    /// Zero for what is on this machine.
    pub step: Duration,
    /// Requests a day that one registrable domain is asked at most.
    pub daily_max: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FetchMeans {
    Http,
    /// The caller holds the permit of the browser.
    Browser,
}

#[derive(Clone, Debug)]
pub enum FetchOutcome {
    Page(Box<FetchedPage>),
    /// The older copy still holds.
    NotModified,
    /// Go there instead; absolute.
    Redirect {
        to: String,
        /// The owner's cookies were sent to learn this: what is there is for the owner alone.
        is_private: bool,
    },
    /// A person must log in: 401, 403, a challenge, a login, a CAPTCHA.
    NeedsAuth {
        auth_type: AuthType,
    },
    /// What came is an empty frame: ask again with a browser.
    NeedsScripts,
}

/// What came back.
#[derive(Clone, Debug)]
pub struct FetchedPage {
    pub url: String,
    pub body: Vec<u8>,
    /// As the server declared it, parameters included.
    pub media_type: String,
    pub etag: Option<String>,
    pub last_modified: Option<String>,
    pub origin: PageOrigin,
    /// It took the owner's cookies or folders: it belongs to the owner and is shown to no other principal.
    pub is_private: bool,
    /// What independence is counted by, where the address does not say it.
    pub domain: Option<String>,
}

/// Why there is no page, named for what the caller does next.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FetchError {
    /// Never ask: the address leads where nothing may be fetched from.
    #[error("address refused: {0}")]
    Refused(String),
    /// Never ask: robots.txt says no.
    #[error("robots.txt disallows it")]
    Robots,
    /// Asked too often: stretch the pace and leave it.
    #[error("rate-limited (429)")]
    RateLimited { retry_after: Option<Duration> },
    /// The server has no such page, or another answer that will not change soon.
    #[error("status {0}")]
    Status(u16),
    #[error("larger than allowed")]
    TooLarge,
    /// It may work another time.
    #[error("{0}")]
    Failed(String),
}
