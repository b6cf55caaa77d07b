//! `cancel_task`: ends a task and everything it started.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use futures_util::future::join_all;
use matsu_core::id::TaskId;
use matsu_core::task::{StopMode, StopReason};

use super::run_start::PROCESSES_GONE_WITHIN;
use crate::agents::{Agents, RunHandle};
use crate::tasks::Tasks;
use crate::tool::{Annotations, Repeat, Tool, ToolContext, ToolError, ToolReply, Toolset};

pub struct CancelTask;

#[derive(Deserialize, JsonSchema)]
pub struct Input {
    /// Id of the task.
    #[schemars(length(min = 1, max = 100))]
    task_id: String,
    /// graceful (default): work may finish within 30 s; immediate: end now.
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
    /// The status of the task now.
    status: String,
    mode: String,
    /// Cancelled jobs: queued and running ones.
    cancelled: Cancelled,
    /// Set if the task had ended before this call; nothing was changed then.
    already_ended: bool,
    /// Ended processes of runs; the call waits for those on this machine.
    processes_ended: u32,
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
    const TITLE: &'static str = "Cancel a task";
    const DESCRIPTION: &'static str = "Task: end any task and everything it started. Returns the final status, also \
        for an ended task. For research, stop_task can also clean up.";
    const TOOLSET: Toolset = Toolset::Agents;
    const CORE: bool = true;
    const ANNOTATIONS: Annotations =
        Annotations { read_only: false, destructive: true, idempotent: true, open_world: false };
    const REPEAT: Repeat = Repeat::Harmless;
    type Input = Input;
    type Output = Output;

    async fn call(cx: &ToolContext, input: Input) -> Result<ToolReply<Output>, ToolError> {
        let id = TaskId::from_text(input.task_id);
        let mode = match input.mode {
            Some(Mode::Immediate) => StopMode::Immediate,
            Some(Mode::Graceful) | None => StopMode::Graceful,
        };
        cx.watched.set(std::slice::from_ref(&id));
        let began = cx.runtime.clock().instant();
        // Before the stop: afterwards they may have left already.
        let runs = Agents::of(&cx.runtime).runs_below(&cx.principal, &id).await;
        let report =
            Tasks::of(&cx.runtime).stop(&cx.principal, &id, mode, StopReason::UserCancelled, &cx.caller).await?;
        let ended = join_all(runs.iter().map(RunHandle::processes_ended));
        let ended = cx.runtime.clock().within(PROCESSES_GONE_WITHIN, ended).await.unwrap_or_default();
        let took_ms = u64::try_from((cx.runtime.clock().instant() - began).as_millis()).unwrap_or(u64::MAX);
        Ok(ToolReply::Done(Output {
            task_id: id.to_string(),
            status: report.task.status.to_string(),
            mode: mode.to_string(),
            cancelled: Cancelled { queued: report.cancelled_queued, running: report.cancelled_running },
            already_ended: report.was_terminal,
            processes_ended: ended.iter().sum(),
            took_ms,
            revision: report.task.revision,
        }))
    }
}
