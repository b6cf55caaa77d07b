//! What one run of the harness knows: sizes, places, and who takes part.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result};
use bench_peer::{Ask, Durability, Order};
use tempfile::TempDir;

use crate::matsu_side;
use crate::peers::mcp_servers::McpPeers;
use crate::processes::Processes;
use crate::report::load_average;

pub const BARE_SQLITE: &str = "bare rusqlite";
pub const BARE_GROUPED: &str = "bare rusqlite grouped";
pub const SQLITE_PEERS: &[&str] = &["apalis-sqlite", "honker", "honker batch 10"];
pub const POSTGRES_PEERS: &[&str] =
    &["graphile_worker", "apalis-postgres", "graphile_worker local queue", "apalis-postgres batch 100"];
const PAYLOAD_BYTES: usize = 100;

#[derive(Clone, Copy, Eq, PartialEq)]
pub enum Size {
    Quick,
    Full,
}

impl Size {
    pub fn pick<T>(self, quick: T, full: T) -> T {
        match self {
            Self::Quick => quick,
            Self::Full => full,
        }
    }
}

pub struct Bench {
    pub size: Size,
    pub rounds: usize,
    /// Absent when `MATSU_TEST_POSTGRES` is not set; the Postgres rows then say so instead of running.
    pub postgres: Option<String>,
    pub processes: Processes,
    pub charts: PathBuf,
    pub load_at_start: String,
    scratch: TempDir,
    stores: AtomicUsize,
    mcp_peers: OnceLock<McpPeers>,
}

impl Bench {
    pub fn prepare(size: Size, rounds: Option<usize>, scratch: Option<PathBuf>, out: &Path) -> Result<Self> {
        raise_file_limit();
        let charts = out.parent().unwrap_or(Path::new("")).to_path_buf();
        std::fs::create_dir_all(if charts.as_os_str().is_empty() { Path::new(".") } else { &charts })?;
        let scratch = match scratch {
            Some(parent) => TempDir::with_prefix_in("matsu-bench-", parent),
            None => TempDir::with_prefix("matsu-bench-"),
        };
        Ok(Self {
            size,
            rounds: rounds.unwrap_or(size.pick(1, 3)),
            postgres: std::env::var("MATSU_TEST_POSTGRES").ok(),
            processes: Processes::prepare()?,
            load_at_start: load_average(),
            charts,
            scratch: scratch.context("no scratch directory")?,
            stores: AtomicUsize::new(0),
            mcp_peers: OnceLock::new(),
        })
    }

    /// A fresh SQLite path in every order: no contender meets a file another one has warmed or fragmented.
    pub fn sqlite_order(&self, peer: &str, durability: Durability, ask: Ask) -> Order {
        let number = self.stores.fetch_add(1, Ordering::Relaxed);
        let store = self.scratch.path().join(format!("{number}.db")).display().to_string();
        Order { peer: peer.to_owned(), store, durability, payload_bytes: PAYLOAD_BYTES, ask }
    }

    pub fn postgres_order(&self, server: &str, peer: &str, ask: Ask) -> Order {
        Order {
            peer: peer.to_owned(),
            store: server.to_owned(),
            durability: Durability::Full,
            payload_bytes: PAYLOAD_BYTES,
            ask,
        }
    }

    /// Files of finished measurements go at once: a million-job history is a few hundred megabytes.
    pub fn discard(&self, order: &Order) {
        let Ok(entries) = std::fs::read_dir(self.scratch.path()) else { return };
        for entry in entries.flatten() {
            if entry.path().display().to_string().starts_with(&order.store) {
                let _ = std::fs::remove_file(entry.path());
            }
        }
    }

    /// A fresh folder for a server of its own.
    pub fn fresh_folder(&self) -> Result<PathBuf> {
        let number = self.stores.fetch_add(1, Ordering::Relaxed);
        let folder = self.scratch.path().join(format!("{number}.d"));
        std::fs::create_dir(&folder)?;
        Ok(folder)
    }

    /// Installed when the first row asks for them: most rows do without.
    pub fn mcp_peers(&self) -> Result<&McpPeers> {
        if let Some(peers) = self.mcp_peers.get() {
            return Ok(peers);
        }
        let installed = McpPeers::install()?;
        Ok(self.mcp_peers.get_or_init(|| installed))
    }

    pub fn scratch(&self) -> &Path {
        self.scratch.path()
    }
}

/// The limit first: ratios are taken to the first of the list, and rounds run in this order.
pub fn sqlite_contenders() -> Vec<&'static str> {
    [&[BARE_SQLITE, BARE_GROUPED], matsu_side::SQLITE, SQLITE_PEERS].concat()
}

pub fn postgres_contenders() -> Vec<&'static str> {
    [POSTGRES_PEERS, matsu_side::POSTGRES].concat()
}

/// 10,000 waiters are 10,000 sockets here and as many in the server, which inherits the limit.
fn raise_file_limit() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        eprintln!("the file limit stays as it is: {error}");
    }
}
