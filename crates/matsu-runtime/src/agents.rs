//! Runs of agents: submitting them, running them as jobs, reading what they said, answering what they ask.

mod answers;
mod live_runs;
mod output;
mod own_session;
mod reading;
mod run;
mod run_body;
mod submit;

pub use answers::question_of;
pub use live_runs::{LiveRuns, RunSeat};
pub use reading::RunLog;
pub use run_body::AgentRuns;
pub use submit::{RunError, RunOptions, StartedRuns};
