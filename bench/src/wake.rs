//! The questions about parked waiters, put in the same words to every server.
//!
//! A wake-up is timed from the moment that work ended in the server, by the server's clock, to the moment after the
//! last byte of its waiter's answer was read. For Matsu nothing is stored at the first of these moments.
//!
//! A change that is asked for over HTTP is timed from the moment before the first byte of that request is written. So
//! it holds the change itself: for the bare server a counter, for Matsu a durable transaction. How long the change
//! alone took (until the answer to its caller) is given beside it.

use std::future::Future;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use bench_peer::Durability;

use crate::bench::Bench;
use crate::peers::bare_axum::BareAxum;
use crate::peers::matsu_server::MatsuServer;
use crate::waiters::{Waiter, monotonic_ns};

/// Long enough for a request to be read and parked on a loaded machine, checked by the target's own since-semantics:
/// a waiter that parks late is answered at once, so a wake-up is never lost, only measured a little differently.
const SETTLE_ONE: Duration = Duration::from_millis(5);
const CONNECT_BATCH: usize = 250;
/// Long enough for its waiter to be parked when it ends.
const WORK: Duration = Duration::from_millis(8);
/// Every topic begins at revision 1.
const FIRST: u64 = 1;

#[derive(Clone, Copy)]
pub enum Topic {
    /// The one waiter whose wake-up is timed.
    Probe,
    /// What a whole crowd waits for together.
    Crowd,
    /// Of another client, by number.
    Other(usize),
}

/// A server in a process of its own that parks HTTP requests until something changes.
pub trait WakeTarget {
    fn address(&self) -> SocketAddr;

    fn pid(&self) -> u32;

    /// Topics for that many others, each at its first revision.
    fn make_topics(&mut self, others: usize) -> impl Future<Output = Result<()>>;

    /// A complete request that returns once the topic's revision is above `since`.
    fn wait_request(&self, topic: Topic, since: u64) -> Vec<u8>;

    /// A complete request that makes one visible change.
    fn publish_request(&mut self, topic: Topic) -> Vec<u8>;

    /// Waits over HTTP for work of this length. How many nanoseconds after its end the answer was here.
    fn end_of_work(&mut self, length: Duration) -> impl Future<Output = Result<u64>>;
}

/// Who takes part in the rows over HTTP.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Server {
    BareAxum,
    /// With one bare commit at FULL before each wake-up.
    BareDurable,
    Matsu(Durability),
}

impl Server {
    pub const NORMAL: Self = Self::Matsu(Durability::Normal);
    pub const FULL: Self = Self::Matsu(Durability::Full);

    pub fn name(self) -> &'static str {
        match self {
            Self::BareAxum => "bare axum",
            Self::BareDurable => "bare axum + commit (FULL)",
            Self::Matsu(Durability::Normal) => "Matsu (NORMAL)",
            Self::Matsu(Durability::Full) => "Matsu (FULL)",
        }
    }

    pub async fn launch(self, bench: &Bench) -> Result<Target> {
        match self {
            Self::BareAxum => Ok(Target::BareAxum(BareAxum::launch(None).await?)),
            Self::BareDurable => {
                let ledger = bench.fresh_folder()?.join("ledger.db");
                Ok(Target::BareAxum(BareAxum::launch(Some(&ledger)).await?))
            }
            Self::Matsu(durability) => {
                let folder: PathBuf = bench.fresh_folder()?;
                Ok(Target::Matsu(MatsuServer::launch(bench.processes.server()?, folder, durability).await?))
            }
        }
    }
}

/// A running server of either kind.
pub enum Target {
    BareAxum(BareAxum),
    Matsu(MatsuServer),
}

impl WakeTarget for Target {
    fn address(&self) -> SocketAddr {
        match self {
            Self::BareAxum(target) => target.address(),
            Self::Matsu(target) => target.address(),
        }
    }

    fn pid(&self) -> u32 {
        match self {
            Self::BareAxum(target) => target.pid(),
            Self::Matsu(target) => target.pid(),
        }
    }

    async fn make_topics(&mut self, others: usize) -> Result<()> {
        match self {
            Self::BareAxum(target) => target.make_topics(others).await,
            Self::Matsu(target) => target.make_topics(others).await,
        }
    }

    fn wait_request(&self, topic: Topic, since: u64) -> Vec<u8> {
        match self {
            Self::BareAxum(target) => target.wait_request(topic, since),
            Self::Matsu(target) => target.wait_request(topic, since),
        }
    }

    fn publish_request(&mut self, topic: Topic) -> Vec<u8> {
        match self {
            Self::BareAxum(target) => target.publish_request(topic),
            Self::Matsu(target) => target.publish_request(topic),
        }
    }

    async fn end_of_work(&mut self, length: Duration) -> Result<u64> {
        match self {
            Self::BareAxum(target) => target.end_of_work(length).await,
            Self::Matsu(target) => target.end_of_work(length).await,
        }
    }
}

/// Latencies of wake-ups, and of the changes that caused them.
#[derive(Default)]
pub struct Wakes {
    /// From the end of work that ended by itself.
    pub ended_ns: Vec<u64>,
    pub woken_ns: Vec<u64>,
    pub changed_ns: Vec<u64>,
}

impl Wakes {
    pub fn extend(&mut self, more: Self) {
        self.ended_ns.extend(more.ended_ns);
        self.woken_ns.extend(more.woken_ns);
        self.changed_ns.extend(more.changed_ns);
    }
}

#[derive(Clone, Copy)]
enum Crowding {
    Separate,
    Together,
}

impl Crowding {
    fn topic(self, number: usize) -> Topic {
        match self {
            Self::Separate => Topic::Other(number),
            Self::Together => Topic::Crowd,
        }
    }
}

/// Waiters that stay parked for as long as they are kept.
struct Crowd {
    waiters: Vec<Waiter>,
    since: u64,
    crowding: Crowding,
}

impl Crowd {
    async fn park(target: &mut impl WakeTarget, count: usize, crowding: Crowding) -> Result<Self> {
        if matches!(crowding, Crowding::Separate) {
            target.make_topics(count).await?;
        }
        let mut crowd = Self { waiters: Vec::with_capacity(count), since: FIRST, crowding };
        while crowd.waiters.len() < count {
            let asked = crowd.waiters.len();
            let batch = (count - asked).min(CONNECT_BATCH);
            let connecting: Vec<_> = (0..batch).map(|_| tokio::spawn(Waiter::connect(target.address()))).collect();
            for connection in connecting {
                crowd.waiters.push(connection.await??);
            }
            // At once: a server may close connections that show no key.
            crowd.ask_from(asked, target).await?;
        }
        crowd.settle().await;
        Ok(crowd)
    }

    async fn ask(&mut self, target: &impl WakeTarget) -> Result<()> {
        self.ask_from(0, target).await?;
        self.settle().await;
        Ok(())
    }

    async fn ask_from(&mut self, first: usize, target: &impl WakeTarget) -> Result<()> {
        for (number, waiter) in self.waiters.iter_mut().enumerate().skip(first) {
            waiter.send(&target.wait_request(self.crowding.topic(number), self.since)).await?;
        }
        Ok(())
    }

    /// Waits several times as long as the server needs for these requests.
    async fn settle(&self) {
        let settle = Duration::from_millis(200) + Duration::from_micros(300) * self.waiters.len() as u32;
        tokio::time::sleep(settle).await;
    }
}

/// Wakes one waiter at a time while `parked` others sleep on.
pub async fn probe(target: &mut impl WakeTarget, parked: usize, samples: usize) -> Result<Wakes> {
    let _crowd = Crowd::park(target, parked, Crowding::Separate).await?;
    let mut probe = Waiter::connect(target.address()).await?;
    let mut publisher = Waiter::connect(target.address()).await?;
    let mut since = FIRST;
    let mut wakes = Wakes::default();
    for _ in 0..samples {
        wakes.ended_ns.push(target.end_of_work(WORK).await?);
    }
    for _ in 0..samples {
        probe.send(&target.wait_request(Topic::Probe, since)).await?;
        tokio::time::sleep(SETTLE_ONE).await;
        // Reading in a task of its own keeps the publisher's reply from delaying the arrival stamp.
        let reading = tokio::spawn(async move { probe.response().await.map(|response| (probe, response)) });
        let request = target.publish_request(Topic::Probe);
        let began_ns = monotonic_ns();
        publisher.send(&request).await?;
        let changed = publisher.response().await?;
        let (waiter, response) = reading.await??;
        wakes.woken_ns.push(response.arrived_ns.saturating_sub(began_ns));
        wakes.changed_ns.push(changed.arrived_ns.saturating_sub(began_ns));
        let next = response.since.context("the answer says nothing about what is next")?;
        ensure!(next > since, "a waiter was woken for nothing");
        since = next;
        probe = waiter;
    }
    Ok(wakes)
}

/// Wakes all `count` waiters with one change, `rounds` times; the latencies of all rounds together.
pub async fn all_at_once(target: &mut impl WakeTarget, count: usize, rounds: usize) -> Result<Wakes> {
    let mut crowd = Crowd::park(target, count, Crowding::Together).await?;
    let mut publisher = Waiter::connect(target.address()).await?;
    let mut wakes = Wakes::default();
    for round in 0..rounds {
        if round > 0 {
            crowd.ask(target).await?;
        }
        let reading: Vec<_> = crowd
            .waiters
            .drain(..)
            .map(|mut waiter| tokio::spawn(async move { waiter.response().await.map(|response| (waiter, response)) }))
            .collect();
        tokio::time::sleep(Duration::from_millis(200)).await;
        let request = target.publish_request(Topic::Crowd);
        let began_ns = monotonic_ns();
        publisher.send(&request).await?;
        wakes.changed_ns.push(publisher.response().await?.arrived_ns.saturating_sub(began_ns));
        for read in reading {
            let (waiter, response) = read.await??;
            ensure!(response.arrived_ns > began_ns, "a waiter returned before the change");
            wakes.woken_ns.push(response.arrived_ns - began_ns);
            crowd.since = crowd.since.max(response.since.context("the answer says nothing about what is next")?);
            crowd.waiters.push(waiter);
        }
    }
    Ok(wakes)
}

/// Growth of the server's resident memory per parked waiter, in bytes.
pub async fn memory_per_waiter(target: &mut impl WakeTarget, count: usize) -> Result<f64> {
    // The first requests pay for lazily made pools and threads, which are not the waiters' cost.
    target.make_topics(count).await?;
    drop(Crowd::park(target, 10, Crowding::Separate).await?);
    tokio::time::sleep(Duration::from_millis(200)).await;
    let before = resident_bytes(target.pid())?;
    let crowd = Crowd::park(target, count, Crowding::Separate).await?;
    let after = resident_bytes(target.pid())?;
    drop(crowd);
    Ok(after.saturating_sub(before) as f64 / count as f64)
}

fn resident_bytes(pid: u32) -> Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).context("memory is read from /proc")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS in /proc")?;
    let kilobytes: u64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kilobytes * 1024)
}
