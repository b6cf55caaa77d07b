//! The built-in loop: a model and tools take turns until the model has ended its answer.
//!
//! The caller's history is read and never changed; what is new comes back as a delta. However it ends, the delta holds
//! everything that was completed, and history and delta together are a valid transcript. Nothing is spawned: the loop
//! runs while its stream is polled, and ends when it is dropped.

pub mod approval;
mod ask;
mod blocking;
mod bounds;
mod drive;
pub mod event;
mod ids;
pub mod options;
pub mod outputs;
mod repeats;
mod round;
pub mod spending;
mod stopwatch;
mod stream;

use std::sync::Arc;

use matsu_core::history::Entry;
use matsu_core::ports::provider::Provider;

pub use approval::{Approver, ByDanger, Decision, PendingCall, Policy};
pub use blocking::{InsideRuntime, execute_with_tools_blocking};
pub use event::{AgenticLoopResult, Event, LoopError, StopReason};
pub use options::{LoopLimits, LoopOptions};
pub use outputs::KeptOutputs;
pub use spending::{Spending, SpendingMax};
pub use stream::LoopStream;

/// Lets a model answer the newest entry of a history, with tools.
#[must_use]
pub fn execute_with_tools(provider: Arc<dyn Provider>, history: &[Entry], options: LoopOptions) -> LoopStream {
    stream::LoopStream::new(provider, history.to_vec(), options)
}
