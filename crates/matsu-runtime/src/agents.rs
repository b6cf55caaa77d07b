//! Runs of agents: submitting them, running them as jobs, reading what they said, answering what they ask.

mod answers;
mod assign;
mod budget;
mod chat_body;
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
pub use choice::AUTO;
pub use live_runs::{LiveRuns, RunHandle};
pub use reading::{LogWish, RunLog, RunPatch};
pub(crate) use reading::{MeantRun, Prefers, RunChoice};
pub use run::go_on_command;
pub use run_body::AgentRuns;
pub(crate) use run_body::store_unavailable;
pub use submit::{RunError, RunOptions, StartedRuns};
pub use usage::{UsageSum, UsageWish};

use std::sync::Arc;

use matsu_core::ports::agent::AgentHost;

use crate::runtime::service;
use crate::tasks::TaskError;

service! {
    /// Runs of agents: starting, answering, reading.
    Agents
}

impl<'a> Agents<'a> {
    /// What starts programs on this machine.
    ///
    /// # Errors
    /// This process has none.
    pub(crate) fn host(self) -> Result<&'a Arc<dyn AgentHost>, TaskError> {
        let none = || TaskError::Invalid("agents are not available in this process; start `matsu serve`".to_owned());
        self.runtime.agents().ok_or_else(none)
    }
}
