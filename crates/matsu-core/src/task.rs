//! A task: work that a client or a person started. A handle names it.

pub mod review;
pub mod status;

use serde::Serialize;

use crate::budget::BudgetLine;
use crate::clock::Timestamp;
use crate::id::{JobId, TaskId};
use crate::job::NewJob;
use crate::principal::Principal;
use crate::research::search::ResearchConfig;
use crate::words::words;

pub use review::{Review, ReviewState};
pub use status::{IllegalTransition, JobCounts, TaskStatus, check_transition, status_from_jobs};

words! {
    /// What was asked for.
    pub enum TaskKind {
        Research = "research",
        Agent = "agent",
        /// A wait that a client turned into a native task.
        Wait = "wait",
    }
}

words! {
    /// How hard to stop.
    pub enum StopMode {
        /// Queued work is dropped, running work may end and keeps its result.
        Graceful = "graceful",
        /// Everything ends now; no result is stored.
        Immediate = "immediate",
    }
}

words! {
    /// Why a task was stopped; decides the status it ends in.
    pub enum StopReason {
        Completed = "completed",
        BudgetExhausted = "budget_exhausted",
        UserCancelled = "user_cancelled",
    }
}

impl StopReason {
    #[must_use]
    pub fn final_status(self) -> TaskStatus {
        match self {
            Self::Completed | Self::BudgetExhausted => TaskStatus::Completed,
            Self::UserCancelled => TaskStatus::Cancelled,
        }
    }
}

/// A stop that was asked for, durable from then on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Stop {
    pub mode: StopMode,
    pub reason: StopReason,
    pub requested_at: Timestamp,
}

/// A task as stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Task {
    pub id: TaskId,
    pub kind: TaskKind,
    pub owner: Principal,
    pub project_id: Option<String>,
    pub title: String,
    pub status: TaskStatus,
    pub status_message: Option<String>,
    /// The principal that paused or blocked it.
    pub held_by: Option<Principal>,
    /// Grows with every visible change.
    pub revision: i64,
    /// `revision` at the last change worth a model's turn.
    pub finished_revision: i64,
    /// `revision` at the last question or auth item raised.
    pub attention_revision: i64,
    pub config_json: String,
    pub assignee: Option<String>,
    pub parent_id: Option<TaskId>,
    pub depth: u32,
    pub counts: JobCounts,
    pub stop: Option<Stop>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub finished_at: Option<Timestamp>,
    pub first_read_at: Option<Timestamp>,
    /// What was decided about the changes of its runs, one entry for each run.
    pub reviews: Vec<Review>,
    /// Other tasks start after it.
    pub is_awaited: bool,
    /// Position in the list of all tasks; the cursor of its pages.
    pub seq: i64,
}

impl Task {
    /// Nothing is left that could still change by itself.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.status.is_terminal() || (self.counts.unfinished() == 0 && !self.is_carried_by_session())
    }

    /// The decision about the changes of one of its runs.
    #[must_use]
    pub fn review_of(&self, job: &JobId) -> Option<&Review> {
        self.reviews.iter().find(|review| review.job_id == *job)
    }

    /// The last decision about the changes of any of its runs.
    #[must_use]
    pub fn last_review(&self) -> Option<&Review> {
        self.reviews.iter().max_by_key(|review| review.at)
    }

    /// The agents whose runs it has, as it was asked for.
    #[must_use]
    pub fn agents(&self) -> Vec<String> {
        #[derive(serde::Deserialize, Default)]
        #[serde(default)]
        struct Runs {
            agents: Vec<String>,
        }
        let is_agent = self.kind == TaskKind::Agent;
        let runs = is_agent.then(|| serde_json::from_str::<Runs>(&self.config_json).unwrap_or_default());
        runs.unwrap_or_default().agents
    }

    /// Whether it stands for work of a schedule or a webhook that could not start.
    #[must_use]
    pub fn is_unstarted(&self) -> bool {
        #[derive(serde::Deserialize, Default)]
        #[serde(default)]
        struct Mark {
            not_started: bool,
        }
        let is_agent = self.kind == TaskKind::Agent;
        is_agent && serde_json::from_str::<Mark>(&self.config_json).unwrap_or_default().not_started
    }

    /// The folder of the project that it belongs to: that of the client that started it, else of the directory it is for.
    #[must_use]
    pub fn started_in(&self) -> Option<String> {
        started_in(&self.config_json)
    }

    /// The tasks that it starts after, as it was asked for.
    #[must_use]
    pub fn depends_on(&self) -> Vec<TaskId> {
        #[derive(serde::Deserialize, Default)]
        #[serde(default)]
        struct Order {
            depends_on: Vec<TaskId>,
        }
        let is_agent = self.kind == TaskKind::Agent;
        let order = is_agent.then(|| serde_json::from_str::<Order>(&self.config_json).unwrap_or_default());
        order.unwrap_or_default().depends_on
    }

    /// Research that a person started: it ends when its searches have ended.
    #[must_use]
    pub fn ends_when_done(&self) -> bool {
        self.kind == TaskKind::Research
            && serde_json::from_str::<ResearchConfig>(&self.config_json).is_ok_and(|config| config.ends_when_done)
    }

    /// Ended, and yet open for more searches: research that ended because it was done.
    #[must_use]
    pub fn can_continue(&self) -> bool {
        self.status == TaskStatus::Completed && self.ends_when_done()
    }

    /// No job of ours does the work: an agent that connects by itself does, and reports how it went.
    #[must_use]
    pub fn is_carried_by_session(&self) -> bool {
        self.kind == TaskKind::Agent && self.counts.total() == 0 && self.assignee.is_some()
    }
}

/// The project folder of the client that started a task, by the task's configuration.
#[must_use]
pub fn started_in(config_json: &str) -> Option<String> {
    #[derive(serde::Deserialize, Default)]
    #[serde(default)]
    struct StartConfig {
        started_in: Option<String>,
    }
    serde_json::from_str::<StartConfig>(config_json).unwrap_or_default().started_in
}

/// Whether the news of a task is for a client that works in this folder. Another project's is not: its own next session
/// gets it. What was started nowhere is everyone's, and a client that works nowhere gets all.
#[must_use]
pub fn is_news_in(started_in: Option<&str>, folder: Option<&str>) -> bool {
    started_in.is_none_or(|place| folder.is_none_or(|folder| folder == place))
}

/// A task to be stored, with its first jobs, in one transaction.
#[derive(Clone, Debug)]
pub struct NewTask {
    pub id: TaskId,
    pub kind: TaskKind,
    pub owner: Principal,
    pub project_id: Option<String>,
    pub title: String,
    pub config_json: String,
    pub budget: Vec<BudgetLine>,
    pub assignee: Option<String>,
    pub parent_id: Option<TaskId>,
    /// Its jobs are not claimed before these tasks are over, or one of them has failed.
    pub depends_on: Vec<TaskId>,
    pub jobs: Vec<NewJob>,
    pub idempotency: Option<IdempotencyKey>,
    pub created_at: Timestamp,
}

/// Makes a repeated call return the first one's task. Bound to the caller, the call and its body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdempotencyKey {
    pub principal: Principal,
    pub tool: String,
    pub key: String,
    pub body_hash: String,
}
