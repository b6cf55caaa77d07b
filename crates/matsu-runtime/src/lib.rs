//! Verbs of Matsu: the one wait, the queue and its workers. Knows ports only.

pub mod agentic_loop;
pub mod agents;
pub mod bodies;
pub mod body;
pub mod chat;
pub mod context;
pub mod cursors;
pub mod dispatch;
pub mod native_task;
pub mod notify;
pub mod options;
pub mod queue;
pub mod research;
pub mod runtime;
pub mod schedules;
pub mod sessions;
pub mod snapshots;
pub mod status;
pub mod stop_signal;
pub mod tasks;
pub mod tool;
pub mod tools;
mod upkeep;
mod users;
pub mod wait;

pub use body::{Bodies, JobBody};
pub use context::JobContext;
pub use cursors::{Cursors, InstanceId};
pub use options::{Expiry, RuntimeOptions, Workers};
pub use queue::worker::Service;
pub use runtime::Runtime;
pub use sessions::SessionOptions;
pub use status::{ReturnedBecause, TaskView, WaitError, WaitFor, WaitReply, WaitRequest};
pub use stop_signal::{StopSignal, StopWord};
pub use tasks::{StopReport, TaskError};
pub use wait::{Check, Condition, Waited, wait_until};
