//! Native MCP tasks as views of stored tasks.
//!
//! A wait that a client turned into a task of its own is a row of kind `wait` that remembers what was waited for.
//! Nothing runs for it: a request about it decides the wait at that moment, from the same rows and by the same rule as
//! every other wait. So it survives restarts, costs nothing between requests, and consumes nothing.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use matsu_core::id::{SessionId, TaskId};
use matsu_core::limits::NATIVE_WAIT_MAX;
use matsu_core::ports::store::{StopTask, TaskLookup};
use matsu_core::principal::Principal;
use matsu_core::task::{NewTask, StopMode, StopReason, Task, TaskKind, TaskStatus};

use crate::chats::sessions::Sessions;
use crate::runtime::service;
use crate::tasks::status::{ReturnedBecause, WaitError, WaitFor, WaitReply, WaitRequest, Waits};
use crate::tasks::{TaskError, Tasks};

/// What a wait task remembers.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum WaitConfig {
    Tasks(TasksWait),
    NextAction(NextActionWait),
}

/// A wait for what a session does next.
#[derive(Serialize, Deserialize)]
struct NextActionWait {
    session_id: SessionId,
    after_seq: Option<i64>,
}

#[derive(Serialize, Deserialize)]
struct TasksWait {
    ids: Vec<TaskId>,
    since: BTreeMap<TaskId, i64>,
    wait_for: WaitFor,
    /// The tool that the wait began with; its answer is what the wait ends with.
    #[serde(default)]
    tool: String,
}

/// A stored task as a native one.
#[derive(Clone, Debug)]
pub struct NativeTask {
    pub task: Task,
    /// The result of a wait; set once it is over.
    pub arrived: Option<Arrived>,
}

/// What a wait that is over was about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Arrived {
    Tasks {
        /// The tool that the wait began with.
        tool: String,
        ids: Vec<TaskId>,
        /// What was known of each when the wait began.
        since: BTreeMap<TaskId, i64>,
    },
    NextAction,
}

service! {
    /// Waits that go on as tasks of their own.
    DeferredWaits
}

impl DeferredWaits<'_> {
    /// Turns a wait into a task of its own. What is known goes with it, since the caller's cursor may move on.
    ///
    /// # Errors
    /// As the store's.
    pub async fn defer_wait(
        self,
        tool: &str,
        request: &WaitRequest,
        since: BTreeMap<TaskId, i64>,
    ) -> Result<TaskId, TaskError> {
        let config = TasksWait { ids: request.ids.clone(), since, wait_for: request.wait_for, tool: tool.to_owned() };
        self.submit_wait(&request.owner, &WaitConfig::Tasks(config)).await
    }

    /// As [`DeferredWaits::defer_wait`], for a session's next action. It belongs to the principal that the transport
    /// authenticated, which will ask about it.
    ///
    /// # Errors
    /// As the store's.
    pub async fn defer_next_action(
        self,
        owner: &Principal,
        session_id: &SessionId,
        after_seq: Option<i64>,
    ) -> Result<TaskId, TaskError> {
        let config = NextActionWait { session_id: session_id.clone(), after_seq };
        self.submit_wait(owner, &WaitConfig::NextAction(config)).await
    }

    async fn submit_wait(self, owner: &Principal, config: &WaitConfig) -> Result<TaskId, TaskError> {
        let config_json = serde_json::to_string(config).map_err(|error| TaskError::Invalid(error.to_string()))?;
        let now = self.runtime.clock().now();
        let task = NewTask {
            id: TaskId::mint(now),
            kind: TaskKind::Wait,
            owner: owner.clone(),
            project_id: None,
            title: "a wait".to_owned(),
            config_json,
            budget: Vec::new(),
            assignee: None,
            parent_id: None,
            depends_on: Vec::new(),
            jobs: Vec::new(),
            idempotency: None,
            created_at: now,
        };
        Ok(Tasks::of(self.runtime).submit(task).await?.task.id)
    }

    /// Where a native task stands. A wait may be held here for `hold` before it is called unfinished.
    ///
    /// # Errors
    /// `NotFound` for what never was or is another's. An expired task is answered with its last status.
    pub async fn native_task(
        self,
        owner: &Principal,
        id: &TaskId,
        hold: Duration,
        caller: &CancellationToken,
    ) -> Result<NativeLookup, TaskError> {
        let task = match Tasks::of(self.runtime).lookup(owner, id).await? {
            TaskLookup::Found(task) => *task,
            TaskLookup::Expired { status, .. } => return Ok(NativeLookup::Expired(status)),
        };
        if task.kind != TaskKind::Wait || task.status.is_terminal() {
            let arrived = (task.kind == TaskKind::Wait).then(|| waited_for(&task)).flatten();
            return Ok(NativeLookup::Found(Box::new(NativeTask { task, arrived })));
        }
        self.decide_wait(task, hold, caller).await
    }

    async fn decide_wait(
        self,
        task: Task,
        hold: Duration,
        caller: &CancellationToken,
    ) -> Result<NativeLookup, TaskError> {
        let Ok(config) = serde_json::from_str::<WaitConfig>(&task.config_json) else {
            return Err(TaskError::Invalid("this wait cannot be read".to_owned()));
        };
        let over = self.runtime.clock().now().since(task.created_at) >= NATIVE_WAIT_MAX;
        let satisfied = over
            || match &config {
                WaitConfig::Tasks(config) => self.tasks_have_news(&task, config, hold, caller).await?,
                WaitConfig::NextAction(wait) => {
                    Sessions::of(self.runtime).has_next_action(&wait.session_id, wait.after_seq).await?
                }
            };
        if !satisfied {
            return Ok(NativeLookup::Found(Box::new(NativeTask { task, arrived: None })));
        }
        let (task_id, now) = (task.id.clone(), self.runtime.clock().now());
        let (mode, reason) = (StopMode::Immediate, StopReason::Completed);
        let ended = self.runtime.store().run(StopTask { task_id, mode, reason, now }).await?.task;
        Ok(NativeLookup::Found(Box::new(NativeTask { arrived: Some(config.arrived()), task: ended })))
    }

    async fn tasks_have_news(
        self,
        task: &Task,
        config: &TasksWait,
        hold: Duration,
        caller: &CancellationToken,
    ) -> Result<bool, TaskError> {
        let request = WaitRequest {
            owner: task.owner.clone(),
            ids: config.ids.clone(),
            since: Some(config.since.clone()),
            wait_for: config.wait_for,
            hold,
            hold_max: Some(hold),
            instance: None,
            interrupt: None,
        };
        match Waits::of(self.runtime).wait_for_tasks(request, caller).await {
            Ok(WaitReply { returned_because: ReturnedBecause::Timeout, .. }) => Ok(false),
            Ok(_) => Ok(true),
            // What was waited for is gone: that is news as well.
            Err(WaitError::Task(TaskError::NotFound(_))) => Ok(true),
            Err(WaitError::Task(error)) => Err(error),
            Err(WaitError::CallerDisconnected) => Ok(false),
        }
    }
}

impl WaitConfig {
    fn arrived(self) -> Arrived {
        match self {
            Self::Tasks(wait) => Arrived::Tasks { tool: wait.tool, ids: wait.ids, since: wait.since },
            Self::NextAction(_) => Arrived::NextAction,
        }
    }
}

/// A native task, or what is left of one.
#[derive(Clone, Debug)]
pub enum NativeLookup {
    Found(Box<NativeTask>),
    Expired(TaskStatus),
}

fn waited_for(task: &Task) -> Option<Arrived> {
    serde_json::from_str::<WaitConfig>(&task.config_json).ok().map(WaitConfig::arrived)
}
