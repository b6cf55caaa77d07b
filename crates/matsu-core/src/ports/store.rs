//! Durable state. One method is one transition, and one transition is one transaction: it happened, or it did not.
//!
//! Time comes in as `now`; lists come back in a stated order; an absent row is `NotFound`, never a panic.
//! After a commit the store publishes what changed on its [`Hub`], never before.

pub mod auth_queue;
pub mod calibration;
pub mod chats;
pub mod directory;
pub mod error;
pub mod evidence;
pub mod feedback;
pub mod jobs;
pub mod nodes;
pub mod notifications;
pub mod notify;
pub mod push;
pub mod runs;
pub mod schedules;
pub mod sessions;
pub mod spending;
pub mod tasks;
pub mod transcripts;
pub mod turns;
pub mod upkeep;
pub mod webhooks;

use std::sync::Arc;

use async_trait::async_trait;

use crate::change::Topic;
use crate::id::SessionId;
use crate::wake::Hub;

pub use auth_queue::{AuthFilter, AuthOutcome, AuthQueueStore, AuthTarget, ResolveAuth, ResolvedAuth};
pub use calibration::{CalibrationStore, EvaluationFilter, NewCalibration, RollBack, RolledBack};
pub use chats::{ChatStore, MessageFilter, OpenedChat, Say, TakeMessages, Taken, TakenMessage};
pub use directory::DirectoryStore;
pub use error::StoreError;
pub use evidence::{
    ClaimRow, ClaimView, Cleared, EdgeView, EvidenceStore, EvidenceTotals, Materials, MaterialsWish, NewAuthItem,
    NewClaim, NewEdge, NewEvidence, NewHit, NewPage, Only, Orphaned, PassageRow, Recorded, Removal, SearchList,
    SearchRow, SearchWish, Unverified,
};
pub use feedback::{CorrectEdge, CorrectedEdge, FeedbackEntry, FeedbackStore, NewRule, SetAdoption};
pub use jobs::{
    Claim, ClaimOutcome, Enqueue, Enqueued, EnqueuedJob, Finish, FinishAndClaim, JobFilter, JobOrder, JobStore,
    JobUpdate, Order, OrderKind, ProgressNote,
};
pub use nodes::{LeftRun, NewNode, NodeStore, SlotUse};
pub use notifications::{Give, Marking, NotificationStore, PendingInterrupt, UnreadResult};
pub use notify::NotifyStore;
pub use push::PushStore;
pub use runs::{
    AgentSession, OutputFrom, OutputPart, OutputPosition, OutputRange, OutputSlice, OutputStream, RunStore,
    SessionClaim, SessionNote,
};
pub use schedules::ScheduleStore;
pub use sessions::{
    EndSession, NewSession, Report, Reported, SessionFilter, SessionKey, SessionStore, Standing, WantedFor,
};
pub use spending::{Reservation, SpendingStore};
pub use tasks::{
    Expired, ExpiryRule, InsertedTask, Reassign, SetReview, SetStatus, Steer, StopTask, StoppedTask, TaskFilter,
    TaskLookup, TaskStore,
};
pub use transcripts::{AppendEntries, Change, Describe, TranscriptStore};
pub use turns::{ChatCall, Conversation, EndTurn, Turn, TurnOutcome, TurnStore};
pub use upkeep::{
    ChangeBatch, ChangeStore, PruneRule, Pruned, QueueCount, StoreInfo, Summary, TokenStore, UpkeepStore,
};
pub use webhooks::WebhookStore;

/// Everything the runtime asks of a backend.
#[async_trait]
pub trait Store:
    TaskStore
    + JobStore
    + NodeStore
    + SpendingStore
    + RunStore
    + ChangeStore
    + TokenStore
    + UpkeepStore
    + EvidenceStore
    + AuthQueueStore
    + FeedbackStore
    + CalibrationStore
    + DirectoryStore
    + ChatStore
    + SessionStore
    + NotificationStore
    + NotifyStore
    + PushStore
    + ScheduleStore
    + WebhookStore
    + TurnStore
    + TranscriptStore
    + Send
    + Sync
{
    /// Where this process's sleepers wait.
    fn hub(&self) -> &Arc<Hub>;

    /// The same store as a session may write to it: each of its transactions fails with `Interrupted`, and leaves
    /// nothing behind, if an interrupt of that session was committed first and is not acknowledged.
    fn guarded(&self, session: &SessionId) -> Arc<dyn Store>;

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
