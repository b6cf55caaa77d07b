//! What is scarce: budgets of a task, permits inside a job, turns at a rate. All over all nodes.

use crate::budget::{BudgetLine, BudgetUnit};
use crate::clock::Timestamp;
use crate::id::TaskId;
use crate::job::Lease;
use crate::slot::Slot;

use super::request;

/// The task's budget, by unit.
#[derive(Clone, Debug)]
pub struct ReadBudget(pub TaskId);
request!(ReadBudget => Vec<BudgetLine>);

/// Sets aside up to `amount`; grants less rather than pass the limit, and where nothing is left it is `Closed`
/// with `BUDGET_EXHAUSTED`. A unit without a limit is granted in full. What is not settled returns when the job
/// ends or its owner dies.
#[derive(Clone, Debug)]
pub struct Reserve {
    pub lease: Lease,
    pub unit: BudgetUnit,
    pub amount: i64,
}
request!(Reserve => Reservation);

/// Turns a reservation into what was really spent; the rest returns. Settling twice is `NotFound`.
#[derive(Clone, Debug)]
pub struct Settle {
    pub lease: Lease,
    pub reservation: Reservation,
    pub spent: i64,
}
request!(Settle => ());

/// What is done with a permit inside a running job. Returns whether the job holds the permit afterwards.
#[derive(Clone, Debug)]
pub struct MovePermit {
    pub lease: Lease,
    pub step: PermitStep,
}
request!(MovePermit => bool);

/// The next moment at which `key` may act, `step_ms` after the one before; never earlier than `now`.
#[derive(Clone, Debug)]
pub struct TakeTurn {
    pub key: String,
    pub step_ms: i64,
    pub now: Timestamp,
}
request!(TakeTurn => Timestamp);

/// A turn of `key` that has not been taken yet is not given before `until`. Never brings one forward.
#[derive(Clone, Debug)]
pub struct HoldTurns {
    pub key: String,
    pub until: Timestamp,
}
request!(HoldTurns => ());

#[derive(Clone, Debug)]
pub enum PermitStep {
    /// Takes a permit of an inner slot, if one is free. A job holds at most one at a time: a second one, of another
    /// slot, is `LimitExceeded`. Taking the same again changes nothing.
    TakeInner { slot: Slot, permits_max: u32 },
    /// Gives an inner permit back. Giving back what is not held changes nothing.
    FreeInner { slot: Slot },
    /// A job begins to wait for its own descendants: its slot permit is free for them.
    Lend,
    /// The wait is over: takes a permit again, an extra one if none is free. Idempotent.
    Regain { permits_max: u32 },
}

/// Something set aside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reservation {
    pub id: i64,
    pub unit: BudgetUnit,
    /// What was granted.
    pub amount: i64,
}
