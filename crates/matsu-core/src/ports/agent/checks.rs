//! Checks of what a run has left: what a host is given to start one, and what it returns.

use crate::id::RunId;
use crate::job::Lease;
use crate::receipt::{Check, CheckFacts};
use crate::run::{Changes, TreeSetup};

use super::LiveRun;

/// A check to start, in a fresh checkout of the head of these changes.
#[derive(Clone, Debug)]
pub struct CheckOrder {
    pub lease: Lease,
    pub run_id: RunId,
    /// Whether the check goes on without its daemon.
    pub outlives: bool,
    pub changes: Changes,
    pub check: Check,
    /// How the checkout is prepared, as the run's tree was.
    pub tree: TreeSetup,
}

/// A check under way. It is followed like a run; what it prints comes as output.
pub struct StartedCheck {
    pub live: Box<dyn LiveRun>,
    pub facts: CheckFacts,
}

/// Which program of a job a machine has started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    Agent,
    Check,
}
