//! Giving a task to a named agent: one with a definition is started for it, another takes it when it comes.

use matsu_core::agent::Agent;
use matsu_core::error_code::ErrorCode;
use matsu_core::id::{AgentId, ProjectId, TaskId};
use matsu_core::job::Priority;
use matsu_core::ports::agent::RunWish;
use matsu_core::ports::store::{ReadAgent, ReadProject, Reassign, StoreError};
use matsu_core::principal::Principal;
use matsu_core::project::Project;
use matsu_core::run::RunPresence;
use matsu_core::task::{NewTask, Task, TaskKind};
use serde::{Deserialize, Serialize};

use super::Agents;
use super::submit::{RunError, RunOptions};
use crate::tasks::{TaskError, Tasks};

/// What a task for an agent that comes by itself remembers.
#[derive(Debug, Serialize, Deserialize)]
pub struct HandedTask {
    pub message: String,
}

/// The instructions of an agent that is started for a task, besides the task.
const REPORT: &str = "You work on this as a task of Matsu, and you are connected to it as the MCP server matsu. When you \
                      are done, or cannot go on, call report_completed with result success, failed or blocked and a \
                      summary. If a reply says that there is a notification, call get_notifications and follow it.";

impl Agents<'_> {
    /// Gives a task to an agent: one with a definition is started for it, another takes it when it comes.
    ///
    /// # Errors
    /// An unknown agent or project; a blank message; a definition that cannot be started here.
    pub async fn assign_task(
        self,
        owner: &Principal,
        agent: &AgentId,
        project: &ProjectId,
        message: String,
    ) -> Result<Task, TaskError> {
        if message.trim().is_empty() {
            let message = "message is empty; write what the agent should do".to_owned();
            return Err(StoreError::Refused { code: ErrorCode::InvalidParams, message }.into());
        }
        let worker = self.runtime.store().run(ReadAgent(agent.clone())).await?;
        let project = self.runtime.store().run(ReadProject(project.clone())).await?;
        if worker.definition.is_some() {
            return self.start_worker(owner, worker, project, message).await;
        }
        let (agent, project) = (&worker.id, &project.id);
        let now = self.runtime.clock().now();
        let title = message.lines().next().unwrap_or_default().to_owned();
        let config = HandedTask { message };
        let task = NewTask {
            id: TaskId::mint(now),
            kind: TaskKind::Agent,
            owner: owner.clone(),
            project_id: Some(project.to_string()),
            title: format!("{agent}: {title}"),
            config_json: serde_json::to_string(&config).map_err(|error| TaskError::Invalid(error.to_string()))?,
            budget: Vec::new(),
            assignee: Some(agent.to_string()),
            parent_id: None,
            depends_on: Vec::new(),
            jobs: Vec::new(),
            idempotency: None,
            created_at: now,
        };
        Ok(Tasks::of(self.runtime).submit(task).await?.task)
    }

    async fn start_worker(
        self,
        owner: &Principal,
        worker: Agent,
        project: Project,
        message: String,
    ) -> Result<Task, TaskError> {
        let known = self.runtime.agents().map(|host| host.agents()).unwrap_or_default();
        let known = known.into_iter().find(|known| Some(&known.name) == worker.definition.as_ref());
        let takes_system_prompt = known.as_ref().is_some_and(|known| known.supports.system_prompt);
        let reports = known.is_some_and(|known| known.connect_back.is_enabled);
        let who = worker.system_prompt.clone().filter(|_| !takes_system_prompt);
        let report = reports.then(|| REPORT.to_owned());
        let body = message.clone();
        let wish = RunWish {
            agent: worker.definition.unwrap_or_default(),
            message: who.into_iter().chain([message]).chain(report).collect::<Vec<_>>().join("\n\n"),
            system_prompt: worker.system_prompt.filter(|_| takes_system_prompt),
            working_directory: project.working_directory,
            presence: Some(RunPresence { agent_id: worker.id, project_id: project.id }),
            ..RunWish::default()
        };
        let options = RunOptions {
            tool: "hand_task",
            priority: Priority::Medium,
            idempotency_key: None,
            body,
            depends_on: Vec::new(),
            run_at: None,
            parent: None,
            started_in: None,
            chosen: None,
        };
        match self.start_runs(owner, vec![wish], options).await {
            Ok(started) => Ok(started.inserted.task),
            Err(RunError::Refused(refusal)) => {
                Err(StoreError::Refused { code: refusal.code, message: refusal.message }.into())
            }
            Err(RunError::Task(error)) => Err(error),
        }
    }

    /// Gives a task to another agent; the session that worked on it is interrupted.
    ///
    /// # Errors
    /// A foreign task, an unknown agent, a task that has ended or that Matsu itself runs.
    pub async fn reassign(self, owner: &Principal, id: &TaskId, to: &AgentId) -> Result<Task, TaskError> {
        Tasks::of(self.runtime).read_own(owner, id).await?;
        self.runtime.store().run(ReadAgent(to.clone())).await?;
        let request = Reassign { task_id: id.clone(), to: Some(to.to_string()), now: self.runtime.clock().now() };
        Ok(self.runtime.store().run(request).await?)
    }
}
