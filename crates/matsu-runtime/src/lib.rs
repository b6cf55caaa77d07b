//! Verbs of Matsu: the one wait, the queue and its workers. Knows ports only.

pub mod access;
pub mod agents;
pub mod bodies;
pub mod chats;
pub mod cursors;
pub mod dispatch;
pub mod models;
pub mod notify;
pub mod polled;
pub mod repos;
pub mod research;
pub mod runtime;
pub mod snapshots;
pub mod stop_signal;
pub mod tasks;
pub mod tool;
pub mod tools;
pub mod upkeep;
pub mod worker;

pub use cursors::{Cursors, InstanceId};
pub use runtime::{Bodies, Expiry, JobBody, JobContext, Runtime, RuntimeOptions, SessionOptions, Settings, Workers};
pub use stop_signal::{StopLevel, StopSignal};
pub use tasks::status::{ReturnedBecause, TaskView, WaitError, WaitFor, WaitReply, WaitRequest};
pub use tasks::wait::{Check, Condition, Waited, wait_until};
pub use tasks::{StopReport, TaskError};
pub use worker::Service;
