//! Work that should have started by itself and could not. It becomes a task that has failed with the reason, so that its
//! owner hears of it in every way in which the end of a task is reported.

use serde_json::json;

use crate::clock::Timestamp;
use crate::id::{JobId, TaskId};
use crate::principal::Principal;
use crate::task::{NewTask, TaskKind};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unstarted {
    pub task_id: TaskId,
    pub job_id: JobId,
    pub owner: Principal,
    pub title: String,
    /// The project that it was for.
    pub started_in: Option<String>,
    /// The agents that were to run.
    pub agents: Vec<String>,
    pub code: String,
    /// Why nothing was started.
    pub why: String,
    /// The reason, and what to do next.
    pub message: String,
    pub at: Timestamp,
}

impl Unstarted {
    /// Its task, without jobs.
    #[must_use]
    pub fn task(&self) -> NewTask {
        NewTask {
            id: self.task_id.clone(),
            kind: TaskKind::Agent,
            owner: self.owner.clone(),
            project_id: None,
            title: self.title.clone(),
            config_json: json!({ "agents": self.agents, "not_started": true, "started_in": self.started_in })
                .to_string(),
            budget: Vec::new(),
            assignee: None,
            parent_id: None,
            depends_on: Vec::new(),
            jobs: Vec::new(),
            idempotency: None,
            created_at: self.at,
        }
    }
}

/// A schedule or a webhook whose last start failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedStart {
    /// `schedule` or `webhook`.
    pub kind: String,
    pub name: String,
    pub owner: Principal,
    pub at: Timestamp,
    pub why: String,
}
