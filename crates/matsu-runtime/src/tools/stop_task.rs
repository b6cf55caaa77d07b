//! `stop_task`: ends a research task, softly or at once, and cleans up behind it if asked to.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use matsu_core::ports::store::{ClearOrphans, ClearTask, Cleared, Removal};
use matsu_core::research::search::SearchStatus;
use matsu_core::task::{StopMode, StopReason};

use super::research_access::{not_found, research_task, stage};
use crate::research::Horizon;
use crate::research::status_view::{ResearchView, status_word};
use crate::tasks::Tasks;
use crate::tool::{Annotations, Repeat, Tool, ToolContext, ToolError, ToolReply, Toolset};

pub struct StopTask;

#[derive(Deserialize, JsonSchema)]
pub struct Input {
    /// Id from create_task.
    #[schemars(length(min = 1, max = 100))]
    task_id: String,
    /// Final status of the task (default completed).
    reason: Option<Reason>,
    /// graceful (default): work may finish within 30 s; immediate: end now.
    mode: Option<Mode>,
    /// Delete: none (default); soft: its claims; orphans: also pages that no task uses.
    cleanup: Option<Cleanup>,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Reason {
    Completed,
    BudgetExhausted,
    UserCancelled,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Mode {
    Graceful,
    Immediate,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Cleanup {
    None,
    Soft,
    Orphans,
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    task_id: String,
    final_status: String,
    reason: String,
    mode: String,
    cancelled: Cancelled,
    waited_ms: u64,
    /// Set if the task had ended before this call.
    already_ended: bool,
    summary: Summary,
    /// What was removed, if a clean-up was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    cleaned: Option<Cleaned>,
    warnings: Vec<String>,
    revision: i64,
}

#[derive(Serialize, JsonSchema)]
struct Cancelled {
    queued: i64,
    running: i64,
}

#[derive(Serialize, JsonSchema)]
struct Summary {
    total_searches: i64,
    satisfied_searches: i64,
    total_claims: i64,
    total_pages: i64,
    total_fragments: i64,
    primary_source_ratio: f64,
    elapsed_seconds: u64,
}

#[derive(Default, Serialize, JsonSchema)]
struct Cleaned {
    claims: u64,
    edges: u64,
    result_rows: u64,
    fragments: u64,
    pages: u64,
}

impl Cleaned {
    fn add(&mut self, cleared: &Cleared) {
        self.claims += cleared.claims;
        self.edges += cleared.edges;
        self.result_rows += cleared.hits;
        self.fragments += cleared.fragments;
        self.pages += cleared.pages;
    }
}

impl Tool for StopTask {
    const NAME: &'static str = "stop_task";
    const TITLE: &'static str = "Stop a research task";
    const DESCRIPTION: &'static str = "Research: end a research task; for agents use cancel_task. graceful (default) \
        cancels queued searches and waits up to 30 s for running ones; immediate stops everything now and deletes the \
        task's claims. Call get_materials first. Returns the final status, also for an ended task.";
    const TOOLSET: Toolset = Toolset::Research;
    const CORE: bool = true;
    const ANNOTATIONS: Annotations =
        Annotations { read_only: false, destructive: true, idempotent: true, open_world: false };
    const REPEAT: Repeat = Repeat::Harmless;
    type Input = Input;
    type Output = Output;

    async fn call(cx: &ToolContext, input: Input) -> Result<ToolReply<Output>, ToolError> {
        let task = research_task(cx, &input.task_id).await?;
        let reason = match input.reason {
            Some(Reason::BudgetExhausted) => StopReason::BudgetExhausted,
            Some(Reason::UserCancelled) => StopReason::UserCancelled,
            Some(Reason::Completed) | None => StopReason::Completed,
        };
        let (mode, least) = match input.mode {
            Some(Mode::Immediate) => (StopMode::Immediate, Cleanup::Soft),
            Some(Mode::Graceful) | None => (StopMode::Graceful, Cleanup::None),
        };
        cx.watched.set(std::slice::from_ref(&task.id));
        let stopped = Tasks::of(&cx.runtime).stop(&cx.principal, &task.id, mode, reason, &cx.caller).await;
        let report = stopped.map_err(|error| not_found(&task.id, error))?;
        let seen = ResearchView::read(&cx.runtime, &report.task, &Horizon::default()).await?;
        // An immediate stop leaves nothing half done behind.
        let cleanup = input.cleanup.filter(|wish| *wish != Cleanup::None).unwrap_or(least);
        let ended = report.task.status.is_terminal();
        let cleaned = if ended { clean(cx, &report.task, cleanup).await? } else { None };
        let ended_for = report.task.stop.map_or(reason, |stop| stop.reason);
        stage(cx, &report.task.id, report.task.revision);
        Ok(ToolReply::Done(Output {
            task_id: report.task.id.to_string(),
            final_status: status_word(report.task.status).to_owned(),
            reason: ended_for.to_string(),
            mode: mode.to_string(),
            cancelled: Cancelled { queued: report.cancelled_queued, running: report.cancelled_running },
            waited_ms: report.waited_ms,
            already_ended: report.was_terminal,
            summary: Summary::of(&seen, &report.task),
            cleaned,
            warnings: seen.warnings(&report.task),
            revision: report.task.revision,
        }))
    }
}

async fn clean(
    cx: &ToolContext,
    task: &matsu_core::task::Task,
    cleanup: Cleanup,
) -> Result<Option<Cleaned>, ToolError> {
    if cleanup == Cleanup::None {
        return Ok(None);
    }
    let mut cleaned = Cleaned::default();
    let store = cx.runtime.store();
    cleaned.add(&store.run(ClearTask { task_id: task.id.clone(), now: cx.runtime.clock().now() }).await?);
    if cleanup == Cleanup::Orphans {
        cleaned.add(&store.run(ClearOrphans(Removal::Remove)).await?);
    }
    Ok(Some(cleaned))
}

impl Summary {
    fn of(seen: &ResearchView, task: &matsu_core::task::Task) -> Self {
        let (metrics, totals) = (seen.metrics(task), &seen.totals);
        Self {
            total_searches: metrics.total_searches,
            satisfied_searches: seen.list.count(SearchStatus::Satisfied),
            total_claims: totals.claims,
            total_pages: totals.pages,
            total_fragments: totals.fragments,
            primary_source_ratio: totals.primary_ratio(),
            elapsed_seconds: metrics.elapsed_seconds,
        }
    }
}
