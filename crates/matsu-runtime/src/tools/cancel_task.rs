//! `cancel_task`: ends a task and everything it started.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use matsu_core::id::TaskId;
use matsu_core::task::{StopMode, StopReason};

use crate::tool::{Annotations, Answer, Tool, ToolContext, ToolError, Toolset};

pub struct CancelTask;

#[derive(Deserialize, JsonSchema)]
pub struct Input {
    /// The task's id.
    #[schemars(length(min = 1, max = 100))]
    task_id: String,
    /// graceful (default): running work may end within 30 s and keeps its result. immediate: everything ends now.
    mode: Option<Mode>,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Mode {
    Graceful,
    Immediate,
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    task_id: String,
    /// Where the task stands now.
    status: String,
    mode: String,
    /// Jobs that were cancelled: waiting ones and running ones.
    cancelled: Cancelled,
    /// Set if the task had ended before this call; nothing was changed then.
    already_ended: bool,
    took_ms: u64,
    revision: i64,
}

#[derive(Serialize, JsonSchema)]
struct Cancelled {
    queued: i64,
    running: i64,
}

impl Tool for CancelTask {
    const NAME: &'static str = "cancel_task";
    const DESCRIPTION: &'static str = "Agent: end a task by its id, with everything it started. Graceful lets running \
        work finish within 30 s and keep its result; immediate ends it now. Cancelling a finished task is harmless \
        and says how it ended.";
    const TOOLSET: Toolset = Toolset::Agents;
    const ANNOTATIONS: Annotations = Annotations { read_only: false, destructive: true, idempotent: true };
    type Input = Input;
    type Output = Output;

    async fn call(cx: &ToolContext, input: Input) -> Result<Answer<Output>, ToolError> {
        let id = TaskId::from_text(input.task_id);
        let mode = match input.mode {
            Some(Mode::Immediate) => StopMode::Immediate,
            Some(Mode::Graceful) | None => StopMode::Graceful,
        };
        cx.watched.set(std::slice::from_ref(&id));
        let report = cx.runtime.stop(&cx.principal, &id, mode, StopReason::UserCancelled, &cx.caller).await?;
        Ok(Answer::Done(Output {
            task_id: id.to_string(),
            status: report.task.status.to_string(),
            mode: mode.to_string(),
            cancelled: Cancelled { queued: report.cancelled_queued, running: report.cancelled_running },
            already_ended: report.was_terminal,
            took_ms: report.waited_ms,
            revision: report.task.revision,
        }))
    }
}
