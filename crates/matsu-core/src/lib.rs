//! Nouns, pure decisions and port traits of Matsu. No I/O.
//!
//! Everything here is a value, a pure function over values, or a trait that another crate implements.
//! The one exception is [`wake`]: an in-process signal that both the stores and the runtime need.

pub mod access;
pub mod agent;
pub mod budget;
pub mod change;
pub mod chat;
pub mod clock;
pub mod confinement;
pub mod error_code;
pub mod history;
pub mod id;
pub mod job;
pub mod language;
pub mod limits;
pub mod merge;
pub mod node;
pub mod notification;
pub mod notify;
pub mod page;
pub mod plain_text;
pub mod ports;
pub mod principal;
pub mod project;
pub mod push;
pub mod receipt;
pub mod redaction;
pub mod research;
pub mod run;
pub mod schedule;
pub mod secret;
pub mod session;
pub mod slot;
pub mod task;
pub mod token;
pub mod transcript;
pub mod unstarted;
pub mod usage;
pub mod wake;
pub mod webhook;
mod words;
