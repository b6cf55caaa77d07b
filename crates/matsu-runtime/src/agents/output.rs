//! What a run says, on its way into the store: in bounded parts, soon, and never faster than the store takes it.

use std::time::Duration;

use tokio::time::Instant;

use matsu_core::clock::Clock;
use matsu_core::job::Lease;
use matsu_core::limits::{RUN_FLUSH_AFTER, RUN_OUTPUT_BYTES_MAX, RUN_PART_BYTES_MAX, TICK};
use matsu_core::ports::store::{AppendOutput, OutputPart, OutputStream, StoreError};

use crate::runtime::Runtime;

/// What was said and is not stored yet.
pub struct OutputWriter {
    runtime: Runtime,
    lease: Lease,
    clock: Clock,
    pending: Vec<OutputPart>,
    pending_bytes: usize,
    /// Bytes so far, of the result and of the log.
    written: [u64; 2],
    flush_at: Option<Instant>,
    is_lost: bool,
}

impl OutputWriter {
    /// `written`: bytes of the result and of the log that are stored already.
    pub fn new(runtime: Runtime, lease: Lease, written: [u64; 2]) -> Self {
        let clock = *runtime.clock();
        let pending = Vec::new();
        Self { runtime, lease, clock, pending, pending_bytes: 0, written, flush_at: None, is_lost: false }
    }

    /// Bytes of the result so far.
    pub fn result_bytes(&self) -> u64 {
        self.written[0]
    }

    pub fn is_truncated(&self) -> bool {
        self.written.iter().any(|bytes| *bytes > RUN_OUTPUT_BYTES_MAX as u64)
    }

    /// When what waits wants to be stored.
    pub fn flush_at(&self) -> Option<Instant> {
        self.flush_at
    }

    /// Whether so much waits that it must be stored now.
    pub fn is_full(&self) -> bool {
        self.pending_bytes >= RUN_PART_BYTES_MAX
    }

    /// Takes what was said. All of it is stored in one transaction, so that it is there once or not at all.
    pub fn push(&mut self, stream: OutputStream, text: &str) {
        let mut rest = text;
        while !rest.is_empty() {
            let (part, after) = rest.split_at(rest.floor_char_boundary(RUN_PART_BYTES_MAX.min(rest.len())));
            self.take(stream, part);
            rest = after;
        }
    }

    fn take(&mut self, stream: OutputStream, text: &str) {
        let count = &mut self.written[usize::from(stream == OutputStream::Log)];
        match self.pending.last_mut() {
            Some(last) if last.stream == stream && last.text.len() + text.len() <= RUN_PART_BYTES_MAX => {
                last.text.push_str(text);
            }
            _ => self.pending.push(OutputPart { stream, start: *count, text: text.to_owned() }),
        }
        *count += text.len() as u64;
        self.pending_bytes += text.len();
        self.flush_at.get_or_insert_with(|| self.clock.instant() + RUN_FLUSH_AFTER);
    }

    /// Stores what waits. A store that is away is waited for: the program's pipe fills up meanwhile, and nothing here
    /// grows. Once the lease is lost nothing more can be stored, and nothing is kept. `read_to` is the position in the
    /// program's output that is reached with it. `true`: everything before that position is stored.
    pub async fn flush(&mut self, read_to: u64) -> bool {
        let mut pause = Duration::ZERO;
        while !self.pending.is_empty() && !self.is_lost {
            self.clock.sleep(pause).await;
            match self
                .runtime
                .store()
                .run(AppendOutput { lease: self.lease.clone(), parts: self.pending.clone(), read_to })
                .await
            {
                Ok(()) => break,
                Err(StoreError::Unavailable(_)) => pause = TICK,
                Err(error) => {
                    tracing::debug!(job.id = %self.lease.job_id, %error, "output of a run was dropped");
                    self.is_lost = true;
                }
            }
        }
        self.pending.clear();
        self.pending_bytes = 0;
        self.flush_at = None;
        !self.is_lost
    }
}
