//! The job all of these peers run: it counts itself, and in latency runs reports how long it took to start.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use bench_peer::{Stamp, payload_text};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Body {
    pub stamp: u64,
    pub text: String,
}

impl Body {
    pub fn new(payload_bytes: usize) -> Self {
        Self { stamp: Stamp::now().0, text: payload_text(payload_bytes) }
    }
}

/// Shared by all workers of one measurement.
#[derive(Clone, Debug, Default)]
pub struct Counter {
    started: Arc<AtomicUsize>,
    latencies: Option<Sender<u64>>,
}

impl Counter {
    pub fn reporting_to(latencies: Sender<u64>) -> Self {
        Self { latencies: Some(latencies), ..Self::default() }
    }

    pub fn start(&self, body: &Body) {
        self.started.fetch_add(1, Ordering::Relaxed);
        if let Some(latencies) = &self.latencies {
            // The receiver only goes away at the end of the measurement.
            let _ = latencies.send(Stamp::now().0 - body.stamp);
        }
    }

    pub async fn all_started(&self, jobs: usize, limit: Duration) -> Result<()> {
        let begun = Instant::now();
        while self.started.load(Ordering::Relaxed) < jobs {
            ensure!(begun.elapsed() < limit, "{} of {jobs} jobs started", self.started.load(Ordering::Relaxed));
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        Ok(())
    }
}

pub fn share(jobs: usize, callers: usize, caller: usize) -> usize {
    jobs / callers + usize::from(caller < jobs % callers)
}
