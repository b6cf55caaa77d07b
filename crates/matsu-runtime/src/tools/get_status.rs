//! `get_status`: where a research task stands, at once or when something changes.

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use matsu_core::job::end::clip;
use matsu_core::limits::INLINE_WAIT;
use matsu_core::research::search::SearchStatus;
use matsu_core::task::Task;

use super::research_access::{not_found, research_task, stage};
use crate::research::status_view::{AuthView, BudgetView, Metrics, QueueView, ResearchView, SearchView, status_word};
use crate::research::{DeliveredStatus, Horizon};
use crate::tasks::status::{ReturnedBecause, TaskView, WaitError, WaitFor, WaitReply, WaitRequest, Waits};
use crate::tool::native_task::DeferredWaits;
use crate::tool::{Annotations, NativeTasks, Repeat, Tool, ToolContext, ToolError, ToolReply, Toolset};

pub struct GetStatus;

#[derive(Clone, Deserialize, JsonSchema)]
pub struct Input {
    /// Id from create_task.
    #[schemars(length(min = 1, max = 100))]
    task_id: String,
    /// Seconds to wait for a change.
    #[schemars(range(min = 0, max = 60))]
    wait: Option<u64>,
    /// next.since of the last reply.
    #[schemars(range(min = 0))]
    since: Option<i64>,
    /// When to return. finished (default): a search ended; all: nothing is left to do; any: something changed.
    wait_for: Option<Wanted>,
    /// summary: counts only; full (default): every search.
    detail: Option<Detail>,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Wanted {
    Finished,
    All,
    Any,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Detail {
    Summary,
    Full,
}

#[derive(Serialize, JsonSchema)]
pub struct Status {
    task_id: String,
    /// exploring, finished (nothing is left to do, more can be queued), paused, completed, failed, cancelled
    status: String,
    query: String,
    revision: i64,
    next: Next,
    waited_ms: u64,
    returned_because: String,
    /// Set if nothing is queued: what to do next.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'static str>,
    /// Seconds; set if the server waited less than you asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    hold_max: Option<u64>,
    /// All searches, or only those that changed since `since`.
    #[serde(skip_serializing_if = "Option::is_none")]
    searches: Option<Vec<SearchView>>,
    /// Number of searches of each status.
    searches_by_status: BTreeMap<String, i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    queue: Option<QueueView>,
    metrics: Metrics,
    budget: BudgetView,
    #[serde(skip_serializing_if = "Option::is_none")]
    auth_queue: Option<AuthView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pending_auth_count: Option<usize>,
    warnings: Vec<String>,
    /// What is still running; empty: nothing.
    waiting_for: Vec<String>,
    idle_seconds: u64,
}

#[derive(Serialize, JsonSchema)]
struct Next {
    since: i64,
}

const NOTHING_QUEUED: &str = "nothing is queued: read the results with get_materials, search for more with \
    queue_searches, or end the task with stop_task";

impl Tool for GetStatus {
    const NAME: &'static str = "get_status";
    const TITLE: &'static str = "Status of a research task";
    const DESCRIPTION: &'static str = "Research: progress of a research task: searches, budget, warnings, running \
        work. For agents use get_task_status. Do not poll: with wait the server replies when something changes; with \
        wait_for=all when all is done. Pass next.since back to get only what is new.";
    const TOOLSET: Toolset = Toolset::Research;
    const CORE: bool = true;
    const ANNOTATIONS: Annotations = Annotations::READS;
    const REPEAT: Repeat = Repeat::Harmless;
    const WAIT_ARGUMENT: Option<&'static str> = Some("wait");
    type Input = Input;
    type Output = Status;

    async fn call(cx: &ToolContext, input: Input) -> Result<ToolReply<Status>, ToolError> {
        // Before any wait: an unknown id fails at once.
        let task = research_task(cx, &input.task_id).await?;
        let reply = match wait(cx, &task, &input).await? {
            ToolReply::Done(reply) => reply,
            ToolReply::Deferred(id) => return Ok(ToolReply::Deferred(id)),
        };
        let Some(view) = reply.tasks.first() else {
            return Err(not_found(&task.id, crate::tasks::TaskError::NotFound(task.id.clone())));
        };
        let status = report(cx, &input, view, &reply).await?;
        stage(cx, &view.task.id, view.task.revision);
        Ok(ToolReply::Done(status))
    }
}

/// Waits as wished. A caller that can follow native tasks is answered with one if the wait is long.
async fn wait(cx: &ToolContext, task: &Task, input: &Input) -> Result<ToolReply<WaitReply>, ToolError> {
    let wished = Duration::from_secs(input.wait.unwrap_or(0));
    let follows = cx.tasks == NativeTasks::Understood && wished > INLINE_WAIT;
    let request = WaitRequest {
        owner: cx.principal.clone(),
        ids: vec![task.id.clone()],
        since: input.since.map(|since| BTreeMap::from([(task.id.clone(), since)])),
        wait_for: match input.wait_for {
            Some(Wanted::All) => WaitFor::All,
            Some(Wanted::Any) => WaitFor::Any,
            Some(Wanted::Finished) | None => WaitFor::Finished,
        },
        hold: if follows { INLINE_WAIT } else { wished },
        hold_max: Some(cx.hold_max()),
        instance: cx.instance.clone(),
        interrupt: None,
    };
    cx.watched.set(&request.ids);
    let reply =
        Waits::of(&cx.runtime).wait_for_tasks(request.clone(), &cx.caller).await.map_err(|error| match error {
            WaitError::Task(error) => not_found(&task.id, error),
            gone @ WaitError::CallerDisconnected => gone.into(),
        })?;
    if follows && reply.returned_because == ReturnedBecause::Timeout {
        let known = reply.tasks.iter().map(|view| (view.task.id.clone(), view.waits_from)).collect();
        return Ok(ToolReply::Deferred(
            DeferredWaits::of(&cx.runtime).defer_wait(GetStatus::NAME, &request, known).await?,
        ));
    }
    Ok(ToolReply::Done(reply))
}

async fn report(cx: &ToolContext, input: &Input, view: &TaskView, reply: &WaitReply) -> Result<Status, ToolError> {
    let task = &view.task;
    let is_full = input.detail != Some(Detail::Summary);
    // Only a caller that waits, or names what it knows, is sent less than everything.
    let knows = input.since.is_some() || input.wait.unwrap_or(0) > 0;
    let horizon =
        if knows { cx.runtime.part::<DeliveredStatus>().since(&task.id, view.since) } else { Horizon::default() };
    let seen = ResearchView::read(&cx.runtime, task, &horizon).await?;
    let listed: Vec<(_, SearchStatus)> = seen.searches(&horizon).collect();
    let shown = listed.iter().map(|(row, status)| (row.job.id.clone(), *status)).collect();
    let searches = listed.iter().map(|(row, status)| SearchView::of(row, *status)).collect();
    if is_full {
        cx.runtime.part::<DeliveredStatus>().note(&task.id, task.revision, task.updated_at, shown);
    }
    let auth = seen.auth();
    let mut by_status = BTreeMap::new();
    for (status, count) in &seen.list.counts {
        *by_status.entry(status.to_string()).or_default() += count;
    }
    let mut warnings = seen.warnings(task);
    if !is_full {
        warnings.truncate(2);
    }
    Ok(Status {
        task_id: task.id.to_string(),
        status: status_word(task.status).to_owned(),
        query: if is_full { seen.config.question.clone() } else { clip(&seen.config.question, 60) },
        revision: task.revision,
        next: Next { since: task.revision },
        waited_ms: reply.waited_ms,
        returned_because: reply.returned_because.as_str().to_owned(),
        message: (reply.returned_because == ReturnedBecause::Idle).then_some(NOTHING_QUEUED),
        hold_max: reply.hold_max.map(|hold| hold.as_secs()),
        searches: is_full.then_some(searches),
        searches_by_status: by_status,
        queue: is_full.then(|| seen.queue()),
        metrics: seen.metrics(task),
        budget: seen.budget.clone(),
        pending_auth_count: (!is_full).then_some(auth.pending_count),
        auth_queue: is_full.then_some(auth),
        warnings,
        waiting_for: seen.waiting_for(),
        idle_seconds: seen.idle_seconds(task),
    })
}
