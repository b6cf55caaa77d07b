//! The tools that do something: log, report progress, ask a legacy client, become a task.

use std::time::Duration;

use matsu_core::id::{JobId, TaskId};
use matsu_core::job::{JobKind, NewJob, Priority};
use matsu_core::slot::Slot;
use matsu_core::task::{NewTask, TaskKind};
use matsu_server::mcp::{caller_of, follows_tasks};
use rmcp::model::{
    CallToolResponse, CallToolResult, ClientCapabilities, ContentBlock, JsonObject, ProgressNotificationParam,
    ServerNotification, ServerRequest,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::{Value, json};

use super::Fixture;
use crate::data::DATA;
use crate::jobs::{FixtureInput, seconds};
use matsu_runtime::tasks::Tasks;

const STEP: Duration = Duration::from_millis(50);

type Context = RequestContext<RoleServer>;

pub fn said(text: impl Into<String>) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(text)])
}

impl Fixture {
    pub async fn call(&self, tool: &str, arguments: JsonObject, cx: &Context) -> Result<CallToolResponse, ErrorData> {
        if let Some(result) = DATA.results.get(tool) {
            return Ok(result.clone().into());
        }
        if let Some(request) = DATA.client_calls.get(tool) {
            return ask_client(request.clone(), &arguments, cx).await.map(Into::into);
        }
        let clock = *self.app.runtime().clock();
        match tool {
            "greet" => {
                Ok(said(format!("Hello, {}!", arguments.get("name").and_then(Value::as_str).unwrap_or(""))).into())
            }
            "test_tool_with_logging" => {
                for words in ["Tool execution started", "Tool processing data", "Tool execution completed"] {
                    log(words, cx).await?;
                    clock.sleep(STEP).await;
                }
                Ok(said("logged").into())
            }
            "test_tool_with_progress" => {
                for done in [0.0, 50.0, 100.0] {
                    if let Some(token) = cx.meta.get_progress_token() {
                        let progress = ProgressNotificationParam::new(token, done).with_total(100.0);
                        let _ = cx.peer.notify_progress(progress).await;
                    }
                    clock.sleep(STEP).await;
                }
                Ok(said("done").into())
            }
            "test_reconnection" => {
                clock.sleep(STEP).await;
                Ok(said("reconnected").into())
            }
            "test_missing_capability" => need(capabilities(cx).sampling.is_some(), json!({ "sampling": {} }))
                .map(|()| said("The client can sample.").into()),
            "slow_compute" if !follows_tasks(cx) => {
                let arguments = Value::Object(arguments);
                clock.sleep(seconds(&arguments)).await;
                Ok(said(format!("Done: {arguments}")).into())
            }
            "slow_compute" | "failing_job" | "protocol_error_job" | "confirm_delete" | "multi_input" => {
                self.start(tool, Value::Object(arguments), cx).await
            }
            _ => Err(ErrorData::invalid_params(format!("there is no tool {tool}"), None)),
        }
    }

    /// Stores the call as a task with one job, as every task of the product is stored.
    pub async fn start(&self, tool: &str, arguments: Value, cx: &Context) -> Result<CallToolResponse, ErrorData> {
        let tasks = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
        need(follows_tasks(cx), tasks)?;
        let now = self.app.runtime().clock().now();
        let input = FixtureInput { tool: tool.to_owned(), arguments };
        let job = NewJob {
            id: JobId::mint(now),
            kind: JobKind::AgentRun,
            priority: Priority::Medium,
            slot: Slot::AgentChat,
            input_json: serde_json::to_string(&input).map_err(broken)?,
            cause_id: None,
            run_at: now,
            dedupe_key: None,
        };
        let task = NewTask {
            id: TaskId::mint(now),
            kind: TaskKind::Agent,
            owner: caller_of(cx)?.principal,
            project_id: None,
            title: tool.to_owned(),
            config_json: "{}".to_owned(),
            budget: Vec::new(),
            assignee: None,
            parent_id: None,
            depends_on: Vec::new(),
            jobs: vec![job],
            idempotency: None,
            created_at: now,
        };
        let inserted = Tasks::of(self.app.runtime()).submit(task).await.map_err(broken)?;
        self.native_tasks(cx)?.created(&inserted.task.id).await
    }
}

/// The client's capabilities, as this very request declares them.
pub fn capabilities(cx: &Context) -> ClientCapabilities {
    cx.meta.client_capabilities().unwrap_or_default()
}

fn need(has: bool, capability: Value) -> Result<(), ErrorData> {
    if has {
        return Ok(());
    }
    let required = serde_json::from_value(capability).map_err(broken)?;
    Err(ErrorData::missing_required_client_capability(required))
}

pub fn broken(error: impl std::fmt::Display) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}

async fn log(words: &str, cx: &Context) -> Result<(), ErrorData> {
    let params = json!({ "level": "info", "logger": "conformance", "data": words });
    let notification: ServerNotification =
        serde_json::from_value(json!({ "method": "notifications/message", "params": params })).map_err(broken)?;
    let _ = cx.peer.send_notification(notification).await;
    Ok(())
}

/// As clients before 2026-07-28 are asked: by a request of the server's own.
async fn ask_client(mut request: Value, arguments: &JsonObject, cx: &Context) -> Result<CallToolResult, ErrorData> {
    if let Some(message) = arguments.get("message") {
        request["params"]["message"] = message.clone();
    }
    if let Some(prompt) = arguments.get("prompt") {
        request["params"]["messages"][0]["content"]["text"] = prompt.clone();
    }
    let request: ServerRequest = serde_json::from_value(request).map_err(broken)?;
    let answer = cx.peer.send_request(request).await.map_err(broken)?;
    let answer = serde_json::to_value(answer).map_err(broken)?;
    let words = answer["content"]["text"].as_str().map(|text| format!("LLM response: {text}"));
    Ok(said(
        words.unwrap_or_else(|| format!("User response: action={}, content={}", answer["action"], answer["content"])),
    ))
}
