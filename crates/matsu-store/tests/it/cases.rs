//! What every backend must do, one function per case.

pub mod changes;
pub mod chats;
pub mod corrections;
pub mod evidence;
pub mod evidence_lists;
pub mod fences;
pub mod idempotency;
pub mod notifications;
pub mod notify;
pub mod push;
pub mod queue;
pub mod recovery;
pub mod runs;
pub mod scarce;
pub mod schedules;
pub mod sessions;
pub mod spent;
pub mod stopping;
pub mod tasks;
pub mod tokens;
pub mod transcripts;
pub mod turns;
pub mod webhooks;
