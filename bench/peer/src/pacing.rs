//! Stamps that travel inside a job's payload, and the log its body writes them to.
//!
//! Enqueuer and body share a process, so one monotonic start makes their clocks the same clock.

use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

static START: OnceLock<Instant> = OnceLock::new();

/// Nanoseconds since the first stamp of this process.
#[derive(Clone, Copy, Debug)]
pub struct Stamp(pub u64);

impl Stamp {
    pub fn now() -> Self {
        Self(START.get_or_init(Instant::now).elapsed().as_nanos() as u64)
    }
}

/// A filler of exactly `bytes` bytes that no codec has to escape.
pub fn payload_text(bytes: usize) -> String {
    "matsu-pine-".chars().cycle().take(bytes).collect()
}

/// Collects one latency per job body; the enqueuer waits on it, so at most one job is in flight.
pub struct LatencyLog {
    sender: Sender<u64>,
    receiver: Receiver<u64>,
    samples: Vec<u64>,
}

impl LatencyLog {
    pub fn new() -> Self {
        let (sender, receiver) = channel();
        Self { sender, receiver, samples: Vec::new() }
    }

    /// What a job body calls with `Stamp::now().0 - enqueued.0`.
    pub fn sender(&self) -> Sender<u64> {
        self.sender.clone()
    }

    /// Waits for the job in flight. The limit only turns a lost job into an error instead of a hang.
    pub fn wait_one(&mut self, limit: Duration) -> Result<()> {
        let latency = self.receiver.recv_timeout(limit).context("a job never started")?;
        self.samples.push(latency);
        Ok(())
    }

    pub fn into_samples(self) -> Vec<u64> {
        self.samples
    }
}

impl Default for LatencyLog {
    fn default() -> Self {
        Self::new()
    }
}
