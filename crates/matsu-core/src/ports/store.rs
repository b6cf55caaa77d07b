//! Durable state. One request is one transition, and one transition is one transaction: it happened, or it did not.
//!
//! Time comes in as `now`; lists come back in a stated order; an absent row is `NotFound`, never a panic.
//! After a commit the store publishes what changed on its [`Hub`], never before.

pub mod access;
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

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;

use crate::change::Topic;
use crate::clock::Timestamp;
use crate::id::{JobId, NodeId, SessionId};
use crate::task::NewTask;
use crate::wake::Hub;

pub use access::*;
pub use auth_queue::*;
pub use calibration::*;
pub use chats::*;
pub use directory::*;
pub use error::*;
pub use evidence::*;
pub use feedback::*;
pub use jobs::*;
pub use nodes::*;
pub use notifications::*;
pub use notify::*;
pub use push::*;
pub use runs::*;
pub use schedules::*;
pub use sessions::*;
pub use spending::*;
pub use tasks::*;
pub use transcripts::*;
pub use turns::*;
pub use upkeep::*;
pub use webhooks::*;

/// What a store can be asked: a type of its own, which names what comes back.
pub trait Request: Send + Sync + 'static {
    type Output: Send + 'static;
}

/// A store that can be asked this.
#[async_trait]
pub trait Run<R: Request> {
    async fn run(&self, request: R) -> Result<R::Output, StoreError>;
}

/// Names what comes back for a request.
macro_rules! request {
    ($(#[$doc:meta])* $name:ty => $output:ty) => {
        $(#[$doc])*
        impl $crate::ports::store::Request for $name {
            type Output = $output;
        }
    };
}
use request;

/// Everything the runtime asks of a backend: the one list. Methods are what each backend does in its own way.
#[async_trait]
pub trait Store:
    Run<ReadAuthItems>
    + Run<ResolveAuth>
    + Run<ExpireAuth>
    + Run<AuthItemsOf>
    + Run<ReadCalibration>
    + Run<ReadCalibrationVersions>
    + Run<NewCalibration>
    + Run<RollBack>
    + Run<ReadSamples>
    + Run<CountSamples>
    + Run<AddEvaluation>
    + Run<ReadEvaluations>
    + Run<ReadRollbacks>
    + Run<OpenChat>
    + Run<ReadChat>
    + Run<ReadChatFor>
    + Run<ListChats>
    + Run<ChatsKnownTo>
    + Run<InsertMessage>
    + Run<ListMessages>
    + Run<PostMessage>
    + Run<AcknowledgeMessages>
    + Run<TakeMessages>
    + Run<TakeBackMessages>
    + Run<EndChat>
    + Run<GiveUpOnAgents>
    + Run<InsertProject>
    + Run<ReadProject>
    + Run<ListProjects>
    + Run<InsertAgent>
    + Run<ReadAgent>
    + Run<ListAgents>
    + Run<RecordEvidence>
    + Run<PageByUrl>
    + Run<FragmentsOf>
    + Run<PassagesOf>
    + Run<PagesOf>
    + Run<ReportJobs>
    + Run<ClaimsOfSearch>
    + Run<ReadSearches>
    + Run<ReadEvidenceTotals>
    + Run<ReadMaterials>
    + Run<ClearTask>
    + Run<ClearOrphans>
    + Run<ReadBreaker>
    + Run<SetBreaker>
    + Run<TakeDaily>
    + Run<ReadRules>
    + Run<NewRule>
    + Run<ClearRules>
    + Run<SetAdoption>
    + Run<CorrectEdge>
    + Run<ReadFeedback>
    + Run<Enqueue>
    + Run<FinishAndClaim>
    + Run<IsLoneJobWaiting>
    + Run<ClaimAlone>
    + Run<UpdateJob>
    + Run<NoteProgress>
    + Run<ParkForInput>
    + Run<ResumeFromInput>
    + Run<RequeueParked>
    + Run<ReadJob>
    + Run<ListJobs>
    + Run<ListJobSummaries>
    + Run<ReadOrders>
    + Run<ReadNodes>
    + Run<ReadSlots>
    + Run<ReadLeftRuns>
    + Run<AdoptRun>
    + Run<LoseRun>
    + Run<InsertNotice>
    + Run<Give>
    + Run<AcknowledgeGiven>
    + Run<TakeBackNotifications>
    + Run<PendingInterrupts>
    + Run<ListNotifications>
    + Run<SweepNotifications>
    + Run<UnreadResults>
    + Run<PutChannels>
    + Run<AddNotice>
    + Run<TakeNotices>
    + Run<BundleNotices>
    + Run<SettleNotices>
    + Run<NextNoticeAt>
    + Run<NoteChannel>
    + Run<ChannelStates>
    + Run<PutCodes>
    + Run<UseCode>
    + Run<LeaseReplies>
    + Run<SetReplyPosition>
    + Run<SweepNotices>
    + Run<PutSubscription>
    + Run<ListSubscriptions>
    + Run<RemoveSubscription>
    + Run<InsertRun>
    + Run<ReadAgentSession>
    + Run<NoteSession>
    + Run<AppendOutput>
    + Run<ReadOutputPosition>
    + Run<ReadOutput>
    + Run<AnswerQuestion>
    + Run<KeepWork>
    + Run<NoteSpent>
    + Run<ReadSpent>
    + Run<ReadAnswer>
    + Run<AddSchedule>
    + Run<ReadSchedule>
    + Run<ListSchedules>
    + Run<SetSchedule>
    + Run<RemoveSchedule>
    + Run<DueSchedules>
    + Run<FireSchedule>
    + Run<TakeFirings>
    + Run<SettleFiring>
    + Run<ListFirings>
    + Run<NextScheduleAt>
    + Run<FailedStarts>
    + Run<NewSession>
    + Run<ReadSession>
    + Run<ReadStanding>
    + Run<TouchSession>
    + Run<ReadSessionView>
    + Run<EndSession>
    + Run<Report>
    + Run<ReadReport>
    + Run<SessionOfRun>
    + Run<ListSessions>
    + Run<SweepSessions>
    + Run<ReadBudget>
    + Run<Reserve>
    + Run<Settle>
    + Run<MovePermit>
    + Run<TakeTurn>
    + Run<HoldTurns>
    + Run<NewTask>
    + Run<ReadTask>
    + Run<ReadTasks>
    + Run<ListTasks>
    + Run<CountTasks>
    + Run<SetStatus>
    + Run<Reassign>
    + Run<StopTask>
    + Run<MarkRead>
    + Run<TakeBackRead>
    + Run<SetReview>
    + Run<ExpireTasks>
    + Run<OpenTranscript>
    + Run<ReadTranscript>
    + Run<ListTranscripts>
    + Run<ReadChatContent>
    + Run<ReadEntries>
    + Run<AppendTranscript>
    + Run<SaveDraft>
    + Run<DescribeTranscript>
    + Run<BeginTurn>
    + Run<TurnUnderWay>
    + Run<EndTurn>
    + Run<ReadQuestion>
    + Run<ReleaseChats>
    + Run<ChangesSince>
    + Run<ReadChangeCursor>
    + Run<InsertToken>
    + Run<TokenByHash>
    + Run<ListTokens>
    + Run<RevokeToken>
    + Run<ExtendToken>
    + Run<PutUser>
    + Run<ReadUser>
    + Run<ListUsers>
    + Run<RemoveUser>
    + Run<CountUnfinished>
    + Run<ReadSummary>
    + Run<AddWebhook>
    + Run<ReadWebhook>
    + Run<WebhookAt>
    + Run<ListWebhooks>
    + Run<PauseWebhook>
    + Run<RemoveWebhook>
    + Run<HasWebhooks>
    + Run<ReceiveDelivery>
    + Run<TakeDeliveries>
    + Run<SettleDelivery>
    + Run<ListDeliveries>
    + Run<NextDeliveryAt>
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

    /// Makes this process known, after taking whatever proves it alive. While it is known, no slot has more permits
    /// than it allows, on whatever node.
    async fn register_node(&self, node: NewNode) -> Result<(), StoreError>;

    /// Reports that the node is still alive. A no-op where a lock proves it.
    async fn beat(&self, id: &NodeId) -> Result<(), StoreError>;

    /// Nodes of this store that are certainly dead. Called once a tick by one task of the process, which is what
    /// the count of unmoved heartbeats stands on.
    async fn dead_nodes(&self, observer: &NodeId) -> Result<Vec<NodeId>, StoreError>;

    /// Settles every job the node held, frees its permits, returns its reservations, forgets the node. Runs that
    /// outlive their node stay as they are, and while there are any the node is kept as one that has left. Idempotent.
    /// Returns the settled jobs in id order.
    async fn reap_node(&self, id: &NodeId, now: Timestamp) -> Result<Vec<JobId>, StoreError>;

    /// Removes what the rule calls too old, at most `rows_max` of each sort, oldest first.
    async fn prune(&self, rule: PruneRule, rows_max: u32) -> Result<Pruned, StoreError>;

    /// Reads and writes something small, so that a full disk or a lost server shows.
    async fn check(&self) -> Result<StoreInfo, StoreError>;

    /// Copies a live store to a new file, consistently.
    async fn backup(&self, to: &Path) -> Result<(), StoreError>;
}

/// What is known about a change that another process made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ForeignChange {
    /// These moved.
    Topics(Vec<Topic>),
    /// Something did; read the changes to learn what.
    Unknown,
}
