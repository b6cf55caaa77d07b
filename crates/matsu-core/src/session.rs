//! A session: an agent's authenticated presence in a project, for a chat or for a task.

pub mod next_action;
pub mod purpose;

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::id::{AgentId, ChatId, JobId, ProjectId, RunId, SessionId, TaskId};
use crate::principal::Principal;
use crate::run::Mode;
use crate::words::words;

pub use next_action::{NextAction, SessionView, next_action};
pub use purpose::{Opening, choose_opening};

words! {
    /// What a session is for. The server chooses, a task before a chat.
    pub enum Purpose {
        Chat = "chat",
        Task = "task",
    }
}

words! {
    pub enum SessionState {
        Active = "active",
        /// It is over, and the agent gets to know it at its next look.
        Ending = "ending",
        Ended = "ended",
    }
}

words! {
    /// Why a session is over.
    pub enum EndReason {
        ClosedByPerson = "closed_by_person",
        Idle = "idle",
        Expired = "expired",
        LoggedOut = "logged_out",
        Reported = "reported",
        TaskCompleted = "task_completed",
        TaskFailed = "task_failed",
        TaskCancelled = "task_cancelled",
        Reassigned = "reassigned",
        /// The same agent has authenticated again.
        TakenOver = "taken_over",
        /// An interrupt was not acknowledged in time.
        NotAcknowledged = "not_acknowledged",
        /// The process it was given to has ended.
        ProcessEnded = "process_ended",
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Session {
    pub id: SessionId,
    /// Whose call made it; that principal may also name it by its id.
    pub owner: Principal,
    pub agent_id: AgentId,
    pub project_id: ProjectId,
    pub purpose: Purpose,
    pub task_id: Option<TaskId>,
    pub chat_id: Option<ChatId>,
    /// The job it was made for, if Matsu started the agent.
    pub job_id: Option<JobId>,
    /// The run of that job. The session's token is this run's and no other's.
    pub run_id: Option<RunId>,
    /// The permission mode of that run; what it starts may have at most this.
    pub mode: Option<String>,
    /// Toolsets and tools beyond `sessions`, if Matsu started the agent.
    pub grants: Option<String>,
    pub state: SessionState,
    pub end_reason: Option<EndReason>,
    pub created_at: Timestamp,
    pub last_seen_at: Timestamp,
    pub expires_at: Timestamp,
    pub ended_at: Option<Timestamp>,
    /// Position in the list of all sessions.
    pub seq: i64,
}

impl Session {
    #[must_use]
    pub fn principal(&self) -> Principal {
        Principal::session(self.id.as_str())
    }

    /// The hardest permission mode of what it starts: its run's own. One that came by itself works in the safest.
    #[must_use]
    pub fn mode_max(&self) -> Mode {
        self.mode.as_deref().and_then(Mode::parse).unwrap_or(Mode::ReadOnly)
    }

    /// Whether its agent has made a call of its own. One that was started may never do so.
    #[must_use]
    pub fn has_called(&self) -> bool {
        self.job_id.is_none() || self.last_seen_at > self.created_at
    }

    /// Whether its token opens anything at this moment.
    #[must_use]
    pub fn is_live(&self, now: Timestamp) -> bool {
        self.state != SessionState::Ended && self.expires_at > now
    }
}

/// How many notifications a session has not acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unread {
    pub interrupts: i64,
    pub others: i64,
    /// Of all of these, how many it has been given.
    pub delivered: i64,
}

impl Unread {
    #[must_use]
    pub fn total(self) -> i64 {
        self.interrupts + self.others
    }
}

/// An agent's report at the end of its task.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct AgentReport {
    #[serde(rename = "result")]
    pub outcome: Outcome,
    pub summary: Option<String>,
    pub next_steps: Option<String>,
}

words! {
    /// How a task went, as its agent reports it.
    pub enum Outcome {
        Success = "success",
        Failed = "failed",
        Blocked = "blocked",
    }
}
