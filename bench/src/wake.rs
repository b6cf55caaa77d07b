//! The three questions about parked waiters, put in the same words to every server.

use std::future::Future;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::waiters::Waiter;

/// Long enough for a request to be read and parked on a loaded machine, checked by the target's own since-semantics:
/// a waiter that parks late is answered at once, so a wake-up is never lost, only measured a little differently.
const SETTLE_ONE: Duration = Duration::from_millis(5);
const CONNECT_BATCH: usize = 250;

#[derive(Clone, Copy)]
pub enum Topic {
    /// The one waiter whose wake-up is timed.
    Probe,
    /// Everybody else.
    Crowd,
}

/// A server in a process of its own that parks HTTP requests until something changes.
pub trait WakeTarget {
    fn address(&self) -> SocketAddr;

    fn pid(&self) -> u32;

    /// A complete request that returns once the topic's revision is above `since`.
    fn request(&self, topic: Topic, since: u64) -> Vec<u8>;

    /// Makes one visible change; returns the monotonic time just before it was published.
    fn publish(&mut self, topic: Topic) -> impl Future<Output = Result<u64>>;
}

/// A crowd that stays parked for as long as it is kept.
pub struct Crowd {
    waiters: Vec<Waiter>,
    since: u64,
}

impl Crowd {
    pub async fn park(target: &impl WakeTarget, count: usize, since: u64) -> Result<Self> {
        let mut waiters = Vec::with_capacity(count);
        while waiters.len() < count {
            let batch = (count - waiters.len()).min(CONNECT_BATCH);
            let connecting: Vec<_> = (0..batch).map(|_| tokio::spawn(Waiter::connect(target.address()))).collect();
            for connection in connecting {
                waiters.push(connection.await??);
            }
        }
        let mut crowd = Self { waiters, since };
        crowd.ask(target).await?;
        Ok(crowd)
    }

    async fn ask(&mut self, target: &impl WakeTarget) -> Result<()> {
        let request = target.request(Topic::Crowd, self.since);
        for waiter in &mut self.waiters {
            waiter.send(&request).await?;
        }
        // A tenth of a millisecond per waiter is several times what a parked request costs the server.
        let settle = Duration::from_millis(200) + Duration::from_micros(100) * self.waiters.len() as u32;
        tokio::time::sleep(settle).await;
        Ok(())
    }
}

/// Wakes one waiter at a time while `parked` others sleep on; one latency per sample.
pub async fn probe(target: &mut impl WakeTarget, parked: usize, samples: usize) -> Result<Vec<u64>> {
    let _crowd = Crowd::park(target, parked, 0).await?;
    let mut probe = Waiter::connect(target.address()).await?;
    let mut since = 0;
    let mut latencies = Vec::with_capacity(samples);
    for _ in 0..samples {
        probe.send(&target.request(Topic::Probe, since)).await?;
        tokio::time::sleep(SETTLE_ONE).await;
        // Reading in a task of its own keeps the publisher's reply from delaying the arrival stamp.
        let reading = tokio::spawn(async move { probe.response().await.map(|response| (probe, response)) });
        let published_ns = target.publish(Topic::Probe).await?;
        let (waiter, response) = reading.await??;
        latencies.push(response.arrived_ns.saturating_sub(published_ns));
        since = response.revision;
        probe = waiter;
    }
    Ok(latencies)
}

/// Wakes all `count` waiters with one change, `rounds` times; the latencies of all rounds together.
pub async fn all_at_once(target: &mut impl WakeTarget, count: usize, rounds: usize) -> Result<Vec<u64>> {
    let mut crowd = Crowd::park(target, count, 0).await?;
    let mut latencies = Vec::with_capacity(count * rounds);
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
        let published_ns = target.publish(Topic::Crowd).await?;
        for read in reading {
            let (waiter, response) = read.await??;
            latencies.push(response.arrived_ns.saturating_sub(published_ns));
            crowd.since = crowd.since.max(response.revision);
            crowd.waiters.push(waiter);
        }
    }
    Ok(latencies)
}

/// Growth of the server's resident memory per parked waiter, in bytes.
pub async fn memory_per_waiter(target: &impl WakeTarget, count: usize) -> Result<f64> {
    // The first requests pay for lazily made pools and threads, which are not the waiters' cost.
    drop(Crowd::park(target, 10, 0).await?);
    tokio::time::sleep(Duration::from_millis(200)).await;
    let before = resident_bytes(target.pid())?;
    let crowd = Crowd::park(target, count, 0).await?;
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
