//! Kinds of jobs and the policy that goes with each.

use crate::limits::FAILURES_MAX;
use crate::words::words;

words! {
    /// What a job does. One body is registered for each kind that a process can run.
    pub enum JobKind {
        Search = "search_queue",
        Verify = "verify",
        /// Has a model write the report of a research task.
        Report = "report",
        AgentRun = "agent_run",
        /// Starts the agent of a chat for what a person has said.
        AgentChat = "agent_chat",
        /// Brings the changes of several runs together in one branch.
        Merge = "merge",
        /// Ends at once. For tests and benches.
        Noop = "noop",
        /// Sleeps as its input says. For tests and benches.
        Sleep = "sleep",
    }
}

/// What becomes of a job whose owner died.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// Queued again; it continues from its checkpoint.
    Requeue,
    /// Failed with `SERVER_RESTARTED`; what it had produced is kept.
    Fail,
}

impl JobKind {
    #[must_use]
    pub fn recovery(self) -> Recovery {
        match self {
            // Running an agent again could repeat what it already did to the outside world.
            Self::AgentRun => Recovery::Fail,
            // What is said in a chat is delivered at least once.
            Self::AgentChat | Self::Search | Self::Verify | Self::Report | Self::Merge | Self::Noop | Self::Sleep => {
                Recovery::Requeue
            }
        }
    }

    /// Whether its work goes on when the process that owns it is gone, so that another one takes it over.
    #[must_use]
    pub fn outlives_owner(self) -> bool {
        match self {
            Self::AgentRun | Self::AgentChat => true,
            Self::Search | Self::Verify | Self::Report | Self::Merge | Self::Noop | Self::Sleep => false,
        }
    }

    /// Whether its work is done by the very process that owns it, so that what breaks the work breaks the process.
    #[must_use]
    pub fn runs_inside(self) -> bool {
        match self {
            // Git and other tasks do the work of a merge.
            Self::AgentRun | Self::AgentChat | Self::Merge => false,
            Self::Search | Self::Verify | Self::Report | Self::Noop | Self::Sleep => true,
        }
    }

    /// Whether the runtime counts its seconds against the task's budget, and ends it when they are spent.
    #[must_use]
    pub fn is_metered(self) -> bool {
        match self {
            Self::AgentRun | Self::AgentChat | Self::Merge | Self::Sleep => true,
            // They count their own, and end in their own words with what they have.
            Self::Search | Self::Verify | Self::Report => false,
            // It is over before there is anything to count.
            Self::Noop => false,
        }
    }

    /// Own errors that are retried before the job is failed.
    #[must_use]
    pub fn failures_max(self) -> u32 {
        match self {
            Self::AgentRun | Self::AgentChat | Self::Merge | Self::Noop => 0,
            Self::Search | Self::Verify | Self::Report | Self::Sleep => FAILURES_MAX,
        }
    }
}
