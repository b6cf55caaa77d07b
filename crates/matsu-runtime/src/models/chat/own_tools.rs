//! Matsu's own tools, offered to the loop without a network in between: the same dispatch as over MCP.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use futures_util::future::join_all;
use matsu_core::id::TaskId;
use matsu_core::ports::tool_source::{Offered, ToolAnswer, ToolReply, ToolRequest, ToolSource};
use matsu_core::principal::Principal;
use matsu_core::task::{StopMode, StopReason};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::dispatch::presets::Offer;
use crate::dispatch::{self, Reply};
use crate::runtime::Runtime;
use crate::tasks::Tasks;
use crate::tool::{ToolContext, ToolEntry};

pub struct OwnTools {
    runtime: Runtime,
    principal: Principal,
    offer: Offer,
    /// Makes sure that some process does the work that a call starts.
    workers: Option<Arc<dyn Workforce>>,
    /// Tasks that calls have begun.
    started: Mutex<Vec<TaskId>>,
}

/// Starts what does the work, where this process does none.
#[async_trait]
pub trait Workforce: Send + Sync {
    /// # Errors
    /// Nothing does the work and nothing could be started, in words.
    async fn ensure(&self) -> Result<(), String>;
}

/// The tools that begin a task.
const STARTING: [&str; 3] = ["create_task", "use_agent", "use_agents"];

impl OwnTools {
    #[must_use]
    pub fn new(runtime: Runtime, principal: Principal, offer: Offer) -> Self {
        Self { runtime, principal, offer, workers: None, started: Mutex::default() }
    }

    /// For a process that does no work itself.
    #[must_use]
    pub fn with_workers(self, workers: Arc<dyn Workforce>) -> Self {
        Self { workers: Some(workers), ..self }
    }

    /// Remembers the task that a call has begun.
    fn note(&self, tool: &str, body: &Value) {
        let task = body["task_id"].as_str().filter(|_| STARTING.contains(&tool)).map(TaskId::from_text);
        self.started.lock().unwrap_or_else(PoisonError::into_inner).extend(task);
    }

    /// The names that no other tool may have.
    #[must_use]
    pub fn names(offer: &Offer) -> Vec<String> {
        offer.tools().map(|tool| tool.name.to_owned()).collect()
    }
}

#[async_trait]
impl ToolSource for OwnTools {
    async fn offer(&self) -> Offered {
        Offered { tools: self.offer.tools().map(ToolEntry::spec).collect(), notes: Vec::new() }
    }

    async fn call(&self, request: ToolRequest) -> ToolReply {
        let Some(tool) = self.offer.find(&request.name) else {
            return ToolReply::Now(ToolAnswer::error(format!("there is no tool {}", request.name)));
        };
        if tool.annotations.open_world
            && !tool.annotations.read_only
            && let Some(workers) = &self.workers
            && let Err(why) = workers.ensure().await
        {
            return ToolReply::Now(ToolAnswer::error(format!("nothing was started: {why}")));
        }
        let cx = ToolContext::new(self.runtime.clone(), self.principal.clone());
        let answer = match dispatch::call(tool, &cx, request.arguments).await {
            Reply::Done { body, is_error } => {
                self.note(&request.name, &body);
                ToolAnswer { is_error, ..ToolAnswer::good(body.to_string()) }
            }
            Reply::Interrupted { text, .. } => ToolAnswer::good(text),
            Reply::Task(id) => ToolAnswer::good(json!({ "ok": true, "task_id": id }).to_string()),
        };
        ToolReply::Now(answer)
    }

    async fn stop_started(&self) {
        let started = std::mem::take(&mut *self.started.lock().unwrap_or_else(PoisonError::into_inner));
        let no_job_ends = CancellationToken::new();
        let stops = started.iter().map(|id| {
            let (mode, reason) = (StopMode::Immediate, StopReason::BudgetExhausted);
            Tasks::of(&self.runtime).stop(&self.principal, id, mode, reason, &no_job_ends)
        });
        for failed in join_all(stops).await.into_iter().filter_map(Result::err) {
            tracing::warn!(error = %failed, "could not stop a task of a chat that used up its budget");
        }
    }
}
