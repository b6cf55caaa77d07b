//! Runs of agents: submitting them, running them as jobs, reading what they said, answering what they ask.

mod answers;
mod budget;
mod chat_body;
mod chat_lines;
mod chat_outcome;
mod checking;
mod choice;
mod consent;
mod dependencies;
mod fallback;
mod live_runs;
mod merge;
mod merge_body;
mod output;
mod own_session;
mod patch;
mod reading;
mod receipts;
mod redacted;
mod review;
mod run;
mod run_body;
mod submit;
mod usage;

pub use answers::{AnswerListener, OpenQuestion};
pub use chat_body::ChatRuns;
pub(crate) use chat_lines::failed as could_not_answer;
pub use choice::AUTO;
pub use live_runs::{LiveRuns, RunHandle};
pub use merge::MergeWish;
pub use merge_body::MergeRuns;
pub use patch::{FilePatch, files_of};
pub use reading::{LogWish, RunLog};
pub use review::{AppliedChanges, AppliedOrSent, RunBranch};
pub use run::go_on_command;
pub use run_body::AgentRuns;
pub use submit::{RunError, RunOptions, StartedRuns};
pub use usage::{UsageSum, UsageWish};

use crate::runtime::service;

service! {
    /// Runs of agents: starting, answering, reading, reviewing, merging.
    Agents
}
