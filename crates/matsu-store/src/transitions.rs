//! Every transition, written once for all backends. One file per idea; each is one transaction.
//!
//! Lock order, which keeps PostgreSQL free of deadlocks: task rows by ascending id (through [`ledger::Ledger`]),
//! then jobs, then permits; then chats, then sessions. SQLite has one writer and needs no locks.

pub mod answer_codes;
pub mod auth_queue;
pub mod calibration;
pub mod changes;
pub mod chats;
pub mod claim;
pub mod claim_alone;
pub mod cleanup;
pub mod dependencies;
pub mod directory;
pub mod engines;
pub mod enqueue;
pub mod evidence_read;
pub mod evidence_rows;
pub mod expire;
pub mod feedback;
pub mod finish_and_claim;
pub mod guard;
pub mod hold;
pub mod insert_task;
pub mod interrupts;
pub mod kept_work;
pub mod ledger;
pub mod left_runs;
pub mod messages;
pub mod nodes;
pub mod notifications;
pub mod notify;
pub mod park;
pub mod permits;
pub mod push;
pub mod read;
pub mod record;
pub mod report;
pub mod review;
pub mod rows;
pub mod run_answers;
pub mod run_output;
pub mod run_sessions;
pub mod schedules;
pub mod session_rows;
pub mod sessions;
pub mod spending;
pub mod spent;
pub mod standing;
pub mod steer;
pub mod stop;
pub mod tokens;
pub mod transcripts;
pub mod turns;
pub mod unstarted;
pub mod update_job;
pub mod users;
pub mod webhooks;

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
