//! Runs of agents: submitting them, running them as jobs, reading what they said, answering what they ask.

mod answers;
mod assign;
mod budget;
mod chat_body;
mod chat_lines;
mod chat_outcome;
mod checking;
mod choice;
mod consent;
mod conversation;
mod dependencies;
mod fallback;
mod live_runs;
mod output;
mod own_session;
mod reading;
mod redacted;
mod run;
mod run_body;
mod submit;
mod usage;

pub use answers::{AnswerListener, OpenQuestion};
pub use assign::HandedTask;
pub use chat_body::ChatRuns;
pub(crate) use chat_lines::failed as could_not_answer;
pub use choice::AUTO;
pub use live_runs::{LiveRuns, RunHandle};
pub use reading::{LogWish, RunLog};
pub(crate) use reading::{MeantRun, Prefers, RunChoice};
pub use run::go_on_command;
pub use run_body::AgentRuns;
pub(crate) use run_body::{away, failed};
pub use submit::{RunError, RunOptions, StartedRuns};
pub use usage::{UsageSum, UsageWish};

use crate::runtime::service;

service! {
    /// Runs of agents: starting, answering, reading.
    Agents
}
