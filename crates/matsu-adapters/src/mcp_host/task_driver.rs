//! Follows a native task of a server: polls as often as the server wants, answers each question once, cancels once.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use matsu_core::clock::Clock;
use matsu_core::ports::tool_source::ToolAnswer;
use rmcp::model::{CancelTaskParams, GetTaskParams, InputRequest, Task, TaskPayload, UpdateTaskParams};
use rmcp::service::{Peer, RoleClient, ServiceError};
use serde_json::{Value, json};
use tokio::task::JoinSet;

const POLL_MIN: Duration = Duration::from_millis(100);
const POLL_MAX: Duration = Duration::from_secs(30);
const POLL_DEFAULT: Duration = Duration::from_secs(1);
/// Failures in a row that are ridden out.
const FAILURES_MAX: u32 = 5;

pub struct Driver {
    peer: Peer<RoleClient>,
    task: Task,
    clock: Clock,
    farewells: Arc<Mutex<JoinSet<()>>>,
    /// Questions that were answered already; a server repeats them until it has noticed.
    answered: BTreeSet<String>,
    ended: bool,
}

impl Driver {
    pub fn new(peer: Peer<RoleClient>, task: Task, clock: Clock, farewells: Arc<Mutex<JoinSet<()>>>) -> Self {
        Self { peer, task, clock, farewells, answered: BTreeSet::new(), ended: false }
    }

    /// Until the task has ended. Dropping this cancels the task.
    pub async fn run(mut self) -> ToolAnswer {
        let mut failures = 0;
        loop {
            let wanted = self.task.poll_interval_ms.map_or(POLL_DEFAULT, Duration::from_millis);
            self.clock.sleep(wanted.clamp(POLL_MIN, POLL_MAX)).await;
            match self.peer.get_task(GetTaskParams::new(self.task.task_id.clone())).await {
                Ok(got) => {
                    failures = 0;
                    self.task = got.task.task.clone();
                    if let Some(answer) = self.take(got.task.payload).await {
                        self.ended = true;
                        return answer;
                    }
                }
                // The server does not know it (any more): polling on would never end.
                Err(ServiceError::McpError(error)) => {
                    self.ended = true;
                    return ToolAnswer::error(format!("the server has lost the task: {}", error.message));
                }
                Err(error) => {
                    failures += 1;
                    if failures > FAILURES_MAX || self.peer.is_transport_closed() {
                        self.ended = true;
                        return ToolAnswer::error(format!(
                            "the connection to the server was lost while its task ran: {error}"
                        ));
                    }
                }
            }
        }
    }

    async fn take(&mut self, payload: TaskPayload) -> Option<ToolAnswer> {
        match payload {
            TaskPayload::Completed { result } => Some(super::answer::from_result(&result)),
            TaskPayload::Failed { error } => {
                let words = error.get("message").and_then(Value::as_str).unwrap_or("no reason given");
                Some(ToolAnswer::error(format!("the task failed: {words}")))
            }
            TaskPayload::Cancelled => Some(ToolAnswer::error("the task was cancelled by its server")),
            TaskPayload::InputRequired { input_requests } => {
                let new: Vec<(String, InputRequest)> =
                    input_requests.into_iter().filter(|(key, _)| !self.answered.contains(key)).collect();
                if !new.is_empty() {
                    let answers = new.iter().map(|(key, request)| (key.clone(), declined(request))).collect();
                    let update = UpdateTaskParams::new(self.task.task_id.clone(), answers);
                    if self.peer.update_task(update).await.is_ok() {
                        self.answered.extend(new.into_iter().map(|(key, _)| key));
                    }
                }
                None
            }
            _ => None,
        }
    }
}

/// A server cannot ask a person here; declining lets it go on or end.
fn declined(request: &InputRequest) -> Value {
    match request {
        InputRequest::ListRoots(_) => json!({ "roots": [] }),
        _ => json!({ "action": "decline" }),
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        if self.ended || self.peer.is_transport_closed() {
            return;
        }
        let (peer, id) = (self.peer.clone(), self.task.task_id.clone());
        let mut farewells = self.farewells.lock().unwrap_or_else(PoisonError::into_inner);
        while farewells.try_join_next().is_some() {}
        farewells.spawn(async move {
            let _ = peer.cancel_task(CancelTaskParams::new(id)).await;
        });
    }
}
