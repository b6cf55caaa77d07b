//! A web of a few hundred pages on loopback, with search engines that know them.
//!
//! Several loopback addresses serve the same paths under one port, and each counts as a site of its own; what they say
//! differs by site, so that some support a statement and others deny it. Besides the library there are logins, traps and
//! oddities, each under a path of its own; see `serve`. Every request is recorded before it is answered.

mod engines;
mod guarded_pages;
mod journal;
mod library;
mod oddities;
mod pdf;
mod serve;
#[cfg(test)]
mod tests;

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::sync::oneshot;

pub use engines::Mood;
pub use journal::Visit;
pub use library::{LANGUAGES, PAGES_PER_TOPIC, TOPICS, Topic};

use journal::Journal;
use serve::SiteState;

/// How many sites there are: `127.0.0.1` and those after it.
pub const SITES: u8 = 6;

/// An address that serves too but that no client may reach: `127.0.0.99`, in no list of hosts. A visit to it is a leak.
pub const INSIDE: u8 = 98;

/// The cookie that counts as a login.
pub const KEY: &str = "session=open-sesame";

/// Ends with its owner.
pub struct TestSite {
    port: u16,
    state: SiteState,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl TestSite {
    /// # Errors
    /// No free port, or no thread.
    pub fn start() -> Result<Self> {
        let (port, listeners) = bind().context("no port that is free on every address")?;
        let state = SiteState::new(port);
        let (stop, stopped) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let kept = state.clone();
        let thread = std::thread::Builder::new().name("test-site".to_owned()).spawn(move || {
            runtime.block_on(serve::serve(listeners, kept, stopped));
            runtime.shutdown_background();
        })?;
        Ok(Self { port, state, stop: Some(stop), thread: Some(thread) })
    }

    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The address of a path on site `site`, from 0.
    #[must_use]
    pub fn url(&self, site: u8, path: &str) -> String {
        format!("http://{}{path}", address(site, self.port))
    }

    /// What a guard must let through for these sites: `host:port` of each.
    #[must_use]
    pub fn hosts(&self) -> Vec<String> {
        (0..SITES).map(|site| address(site, self.port).to_string()).collect()
    }

    /// The base address of the SearXNG that knows the library.
    #[must_use]
    pub fn searxng(&self) -> String {
        self.url(0, "/searxng")
    }

    /// The base address of the OpenAlex that knows works about the library's topics.
    #[must_use]
    pub fn openalex(&self) -> String {
        self.url(0, "/openalex")
    }

    /// How the engine of that name (`searxng`, `openalex`) answers from now on.
    pub fn set_mood(&self, engine: &str, mood: Mood) {
        self.state.set_mood(engine, mood);
    }

    /// Every request so far, in order.
    #[must_use]
    pub fn visits(&self) -> Vec<Visit> {
        self.journal().all()
    }

    /// Requests whose path begins so.
    #[must_use]
    pub fn visits_to(&self, path: &str) -> Vec<Visit> {
        self.visits().into_iter().filter(|visit| visit.path.starts_with(path)).collect()
    }

    /// Requests that reached the address inside, whatever they asked for.
    #[must_use]
    pub fn leaks(&self) -> Vec<Visit> {
        self.visits().into_iter().filter(|visit| visit.site == INSIDE).collect()
    }

    /// The first request that `wanted` accepts; waits for it.
    #[must_use]
    pub fn wait_for(&self, within: Duration, wanted: impl Fn(&Visit) -> bool) -> Option<Visit> {
        self.journal().wait_for(within, wanted)
    }

    fn journal(&self) -> &Arc<Journal> {
        self.state.journal()
    }
}

impl Drop for TestSite {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn address(site: u8, port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, site + 1], port))
}

/// One port that is free on every address. Another process may hold it on one of them, so a few are tried.
fn bind() -> Result<(u16, Vec<(u8, TcpListener)>)> {
    let mut last = None;
    for _ in 0..20 {
        let first = TcpListener::bind(address(0, 0))?;
        let port = first.local_addr()?.port();
        let open = |site| Ok::<_, std::io::Error>((site, TcpListener::bind(address(site, port))?));
        let rest: std::io::Result<Vec<_>> = (1..SITES).chain([INSIDE]).map(open).collect();
        match rest {
            Ok(rest) => return Ok((port, std::iter::once((0, first)).chain(rest).collect())),
            Err(error) => last = Some(error),
        }
    }
    Err(last.map_or_else(|| anyhow::anyhow!("no port"), Into::into))
}
