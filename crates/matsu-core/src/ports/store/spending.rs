//! What is scarce: budgets of a task, permits inside a job, turns at a rate. All over all nodes.

use async_trait::async_trait;

use crate::budget::{BudgetLine, BudgetUnit};
use crate::clock::Timestamp;
use crate::id::TaskId;
use crate::job::Lease;
use crate::slot::Slot;

use super::StoreError;

#[async_trait]
pub trait SpendingStore {
    /// The task's budget, by unit.
    async fn budget(&self, task: &TaskId) -> Result<Vec<BudgetLine>, StoreError>;

    /// Sets aside up to `amount`; grants less rather than pass the limit, and where nothing is left it is `Closed`
    /// with `BUDGET_EXHAUSTED`. A unit without a limit is granted in full. What is not settled returns when the job
    /// ends or its owner dies.
    async fn reserve(&self, lease: &Lease, unit: BudgetUnit, amount: i64) -> Result<Reservation, StoreError>;

    /// Turns a reservation into what was really spent; the rest returns. Settling twice is `NotFound`.
    async fn settle(&self, lease: &Lease, reservation: &Reservation, spent: i64) -> Result<(), StoreError>;

    /// Takes a permit of an inner slot. `false`: none is free. A job holds at most one at a time: a second one, of
    /// another slot, is `LimitExceeded`. Taking the same again changes nothing.
    async fn take_inner_permit(&self, lease: &Lease, slot: Slot, permits_max: u32) -> Result<bool, StoreError>;

    /// Gives an inner permit back. Giving back what is not held changes nothing.
    async fn free_inner_permit(&self, lease: &Lease, slot: Slot) -> Result<(), StoreError>;

    /// A job begins to wait for its own descendants: its slot permit is free for them.
    async fn lend_permit(&self, lease: &Lease) -> Result<(), StoreError>;

    /// The wait is over: takes a permit again, an extra one if none is free. Idempotent.
    async fn regain_permit(&self, lease: &Lease, permits_max: u32) -> Result<(), StoreError>;

    /// The next moment at which `key` may act, `step_ms` after the one before; never earlier than `now`.
    async fn take_turn(&self, key: &str, step_ms: i64, now: Timestamp) -> Result<Timestamp, StoreError>;

    /// A turn of `key` that has not been taken yet is not given before `until`. Never brings one forward.
    async fn hold_turns(&self, key: &str, until: Timestamp) -> Result<(), StoreError>;
}

/// Something set aside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reservation {
    pub id: i64,
    pub unit: BudgetUnit,
    /// What was granted.
    pub amount: i64,
}
