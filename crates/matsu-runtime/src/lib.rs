//! Verbs of Matsu: the one wait, the queue and its workers. Knows ports only.

pub mod access;
pub mod agentic_loop;
pub mod agents;
pub mod bodies;
pub mod chat;
pub mod chats;
pub mod cursors;
pub mod dispatch;
pub mod native_task;
pub mod notify;
pub mod push;
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
pub mod upkeep;
pub mod wait;
pub mod webhooks;
pub mod worker;

pub use cursors::{Cursors, InstanceId};
pub use runtime::{Bodies, Expiry, JobBody, JobContext, Runtime, RuntimeOptions, SessionOptions, Settings, Workers};
pub use status::{ReturnedBecause, TaskView, WaitError, WaitFor, WaitReply, WaitRequest};
pub use stop_signal::{StopLevel, StopSignal};
pub use tasks::{StopReport, TaskError};
pub use wait::{Check, Condition, Waited, wait_until};
pub use worker::Service;
