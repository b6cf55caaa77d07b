//! What the harness asks of a queue and what it gets back.
//!
//! A crate of its own because each peer runs as a separate process: two of them link a version of SQLite that cannot
//! share a lock file with the harness, and a fresh process gives every measurement the same clean heap.

mod order;
mod pacing;
mod queue;

pub use order::{Answer, Ask, Durability, How, Order, Sample};
pub use pacing::{LatencyLog, Stamp, payload_text};
pub use queue::{Opener, Queue, answer, serve};
