//! Every transition, written once for all backends; each is one transaction. One folder per module, one file per family;
//! what several modules share stands beside the folders. Agents, models and research import tasks and chats; tasks import
//! chats.
//!
//! Lock order, which keeps PostgreSQL free of deadlocks: task rows by ascending id (through [`ledger::Ledger`]),
//! then jobs, then permits; then chats, then sessions. SQLite has one writer and needs no locks.

pub mod access;
pub mod agents;
pub mod chats;
pub mod dependencies;
pub mod hold;
pub mod jobs;
pub mod ledger;
pub mod models;
pub mod notices;
pub mod notify;
pub mod paging;
pub mod repos;
pub mod research;
pub mod rows;
pub mod tasks;

/// An unfinished job, spelled as in the partial index so that both planners recognise it. Not by its state: then
/// every claim would have to touch that index.
macro_rules! unfinished {
    () => {
        "finished_at IS NULL"
    };
}
/// The words of a job that a live worker holds.
macro_rules! held {
    () => {
        "state IN ('running', 'awaiting_input')"
    };
}
pub(crate) use {held, unfinished};
