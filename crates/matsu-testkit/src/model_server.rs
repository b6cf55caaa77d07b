//! A model server on loopback that answers from a script, in the wire formats of the real ones.
//!
//! It runs on a thread of its own, so tests with and without a runtime, with paused time or not, can use it. Every
//! request is recorded before it is answered: a test that sees an answer can rely on finding its request.

pub mod formats;
mod journal;
mod request;
mod script;
mod serve;
pub mod strict;
#[cfg(test)]
mod tests;

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::sync::oneshot;

pub use journal::Journal;
pub use request::{Asked, Fate, Format, Recorded};
pub use script::{Part, Reply, Rule, Script, When};

/// Decides what is answered. Called once for each request to a model, in the order they come.
pub type Author = Box<dyn FnMut(&Asked) -> Reply + Send>;

/// Whether requests are checked before they are answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manners {
    Easy,
    Strict,
}

/// Ends with its owner.
pub struct ModelServer {
    address: SocketAddr,
    journal: Arc<Journal>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl ModelServer {
    /// Answers by the script's rules.
    ///
    /// # Errors
    /// No free port, or no thread.
    pub fn start(script: Script) -> Result<Self> {
        let mut script = script;
        Self::with(Box::new(move |asked| script.reply(asked)))
    }

    /// Answers with what the author returns.
    ///
    /// # Errors
    /// No free port, or no thread.
    pub fn with(author: Author) -> Result<Self> {
        Self::on(0, author)
    }

    /// Answers by the script's rules, and refuses with 400 what the real vendors refuse.
    ///
    /// # Errors
    /// No free port, or no thread.
    pub fn strict(script: Script) -> Result<Self> {
        let mut script = script;
        Self::open(0, Box::new(move |asked| script.reply(asked)), Manners::Strict)
    }

    /// The same on a port that the caller chose.
    ///
    /// # Errors
    /// The port is taken, or no thread.
    pub fn on(port: u16, author: Author) -> Result<Self> {
        Self::open(port, author, Manners::Easy)
    }

    fn open(port: u16, author: Author, manners: Manners) -> Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", port)).context("no port for the model server")?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let journal = Arc::new(Journal::default());
        let (stop, stopped) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let kept = Arc::clone(&journal);
        let thread = std::thread::Builder::new().name("model-server".to_owned()).spawn(move || {
            runtime.block_on(serve::serve(listener, (author, manners), kept, stopped));
            // Streams that hang are ended with their tasks.
            runtime.shutdown_background();
        })?;
        Ok(Self { address, journal, stop: Some(stop), thread: Some(thread) })
    }

    /// The address for clients: `http://127.0.0.1:PORT`, without a path.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Everything that was asked so far.
    #[must_use]
    pub fn requests(&self) -> Vec<Recorded> {
        self.journal.all()
    }

    /// The requests to a model, without the small talk that clients make besides.
    #[must_use]
    pub fn asked(&self) -> Vec<Recorded> {
        self.requests().into_iter().filter(|request| request.asked.is_some()).collect()
    }

    /// The first request that `wanted` accepts; waits for it.
    #[must_use]
    pub fn wait_for(&self, within: Duration, wanted: impl Fn(&Recorded) -> bool) -> Option<Recorded> {
        self.journal.wait_for(within, wanted)
    }

    /// Waits until there are that many requests; whether there are.
    pub fn wait_for_count(&self, within: Duration, count: usize) -> bool {
        self.journal.wait_for_count(within, count)
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
