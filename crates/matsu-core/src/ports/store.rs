//! Durable state. One method is one transition, and one transition is one transaction: it happened, or it did not.
//!
//! Time comes in as `now`; lists come back in a stated order; an absent row is `NotFound`, never a panic.
//! After a commit the store publishes what changed on its [`Hub`], never before.

pub mod error;
pub mod jobs;
pub mod nodes;
pub mod runs;
pub mod spending;
pub mod tasks;
pub mod upkeep;

use std::sync::Arc;

use async_trait::async_trait;

use crate::change::Topic;
use crate::wake::Hub;

pub use error::StoreError;
pub use jobs::{
    Claim, ClaimOutcome, Enqueue, Enqueued, EnqueuedJob, Finish, FinishAndClaim, JobFilter, JobStore, JobUpdate, Order,
    OrderKind,
};
pub use nodes::{NewNode, NodeStore};
pub use runs::{
    AgentSession, OutputFrom, OutputPart, OutputRange, OutputSlice, OutputStream, RunStore, SessionClaim, SessionNote,
};
pub use spending::{Reservation, SpendingStore};
pub use tasks::{
    Expired, ExpiryRule, InsertedTask, SetStatus, Steer, StopTask, StoppedTask, TaskFilter, TaskLookup, TaskStore,
};
pub use upkeep::{ChangeBatch, ChangeStore, StoreInfo, TokenStore, UpkeepStore};

/// Everything the runtime asks of a backend.
#[async_trait]
pub trait Store:
    TaskStore + JobStore + NodeStore + SpendingStore + RunStore + ChangeStore + TokenStore + UpkeepStore + Send + Sync
{
    /// Where this process's sleepers wait.
    fn hub(&self) -> &Arc<Hub>;

    /// Resolves when another process may have changed something. Never resolves where there is no other process.
    async fn foreign_change(&self) -> ForeignChange;
}

/// What is known about a change that another process made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ForeignChange {
    /// These moved.
    Topics(Vec<Topic>),
    /// Something did; read the changes to learn what.
    Unknown,
}
