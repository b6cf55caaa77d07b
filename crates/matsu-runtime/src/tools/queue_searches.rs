//! `queue_searches`: hands over queries, all or none, and answers at once.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use matsu_core::error_code::ErrorCode;
use matsu_core::id::JobId;
use matsu_core::job::{JobKind, NewJob};
use matsu_core::limits::QUERY_CHARS_MAX;
use matsu_core::ports::store::EnqueuedJob;
use matsu_core::research::query::fold;
use matsu_core::research::search::{ResearchConfig, SearchInput};
use matsu_core::slot::Slot;

use super::research_access::{check_engines, check_searchable, research_task, stage};
use super::run_start::PriorityWord;
use crate::tasks::Tasks;
use crate::tool::{Annotations, Tool, ToolContext, ToolError, ToolReply, Toolset};

pub struct QueueSearches;

#[derive(Deserialize, JsonSchema)]
pub struct Input {
    /// Id from create_task.
    #[schemars(length(min = 1, max = 100))]
    task_id: String,
    /// Search queries, each of 1 to 500 characters.
    #[schemars(length(min = 1, max = 100))]
    queries: Vec<String>,
    /// Optional settings.
    options: Option<Options>,
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Options {
    /// Search engines to use.
    #[schemars(length(min = 1, max = 20))]
    engines: Option<Vec<String>>,
    /// Pages per search (default 15).
    #[schemars(range(min = 1, max = 200))]
    max_pages: Option<u32>,
    /// Order in the queue (default medium).
    priority: Option<PriorityWord>,
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    queued_count: usize,
    /// In the order of the queries; these ids name the searches everywhere.
    search_ids: Vec<String>,
    skipped: Vec<Skipped>,
    revision: i64,
    message: String,
}

#[derive(Serialize, JsonSchema)]
struct Skipped {
    query: String,
    reason: String,
    /// The search that is the same.
    search_id: String,
}

impl Tool for QueueSearches {
    const NAME: &'static str = "queue_searches";
    const TITLE: &'static str = "Queue searches";
    const DESCRIPTION: &'static str = "Research: queue searches for a research task; returns their ids at once, before \
        they run. If one query is invalid, none is queued; one that is already queued or running is skipped and \
        listed. Then do other work, or wait with one get_status(wait=60, wait_for=all).";
    const TOOLSET: Toolset = Toolset::Research;
    const CORE: bool = true;
    const ANNOTATIONS: Annotations = Annotations { open_world: true, ..Annotations::ADDS };
    type Input = Input;
    type Output = Output;

    async fn call(cx: &ToolContext, input: Input) -> Result<ToolReply<Output>, ToolError> {
        let options = input.options.unwrap_or_default();
        let queries = check_queries(&input.queries)?;
        let engines = options.engines.unwrap_or_default();
        check_engines(cx, "options.engines", &engines)?;
        let task = research_task(cx, &input.task_id).await?;
        let config: ResearchConfig = serde_json::from_str(&task.config_json).unwrap_or_default();
        let named = if engines.is_empty() { &config.engines } else { &engines };
        check_searchable(cx, named, &config.folders)?;
        let priority = PriorityWord::or_medium(options.priority);
        let now = cx.runtime.clock().now();
        let jobs = queries.iter().map(|query| {
            let search =
                SearchInput { query: (*query).to_owned(), engines: engines.clone(), pages_max: options.max_pages };
            NewJob {
                id: JobId::mint_search(now),
                kind: JobKind::Search,
                priority,
                slot: Slot::NetworkClient,
                input_json: serde_json::to_string(&search).unwrap_or_default(),
                cause_id: None,
                run_at: now,
                dedupe_key: Some(fold(query)),
            }
        });
        let jobs = jobs.collect();
        let enqueued = Tasks::of(&cx.runtime).enqueue(&cx.principal, &task.id, jobs).await.map_err(closed)?;
        let (mut search_ids, mut skipped) = (Vec::new(), Vec::new());
        for (query, job) in queries.iter().zip(&enqueued.jobs) {
            match job {
                EnqueuedJob::Queued(id) => search_ids.push(id.to_string()),
                EnqueuedJob::Duplicate(id) => skipped.push(Skipped {
                    query: (*query).to_owned(),
                    reason: "duplicate".to_owned(),
                    search_id: id.to_string(),
                }),
            }
        }
        let revision = enqueued.task.as_ref().map_or(task.revision, |task| task.revision);
        if let Some(task) = &enqueued.task {
            stage(cx, &task.id, task.revision);
        }
        let queued_count = search_ids.len();
        let noun = if queued_count == 1 { "search" } else { "searches" };
        let message = format!("{queued_count} {noun} queued. Use get_status to monitor progress.");
        Ok(ToolReply::Done(Output { queued_count, search_ids, skipped, revision, message }))
    }
}

fn check_queries(queries: &[String]) -> Result<Vec<&str>, ToolError> {
    let trimmed: Vec<&str> = queries.iter().map(|query| query.trim()).collect();
    let bad = trimmed.iter().map(|query| query.chars().count()).enumerate();
    match bad.into_iter().find(|(_, chars)| !(1..=QUERY_CHARS_MAX).contains(chars)) {
        None => Ok(trimmed),
        Some((at, chars)) => {
            let (field, expected) = (format!("queries[{at}]"), format!("1 to {QUERY_CHARS_MAX} characters"));
            let message = format!("{field} must have {expected} after trimming, got {chars}; nothing was queued");
            Err(ToolError::param(&field, &expected, &format!("{chars} characters"), message))
        }
    }
}

/// For a caller that adds work, a task that another principal paused is the same as a blocked one.
fn closed(error: crate::tasks::TaskError) -> ToolError {
    let mut error = ToolError::from(error);
    if error.code == ErrorCode::TaskPaused {
        error.code = ErrorCode::TaskBlocked;
    }
    error
}
