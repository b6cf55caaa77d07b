//! The report of the caller's research task, and a citation in its context.

use matsu_core::error_code::ErrorCode;
use matsu_core::research::report::Report;

use super::research_access::research_task;
use crate::research::report::{self, PassageInContext};
use crate::tool::{ToolContext, ToolError};

/// # Errors
/// There is no such research task, or the store does not answer.
pub async fn read(cx: &ToolContext, task_id: &str) -> Result<Report, ToolError> {
    let task = research_task(cx, task_id).await?;
    Ok(report::of(&cx.runtime, &task).await?)
}

/// A passage that the report cites. `quote`: mark this; else every quote of the passage.
///
/// # Errors
/// There is no such task, or its claims do not stand on that passage.
pub async fn passage(
    cx: &ToolContext,
    task_id: &str,
    fragment_id: &str,
    quote: Option<&str>,
) -> Result<PassageInContext, ToolError> {
    let task = research_task(cx, task_id).await?;
    report::passage(&cx.runtime, &task, fragment_id, quote).await?.ok_or_else(|| {
        let message = format!("no claim of {task_id} uses the passage {fragment_id}; the report lists its citations");
        ToolError::new(ErrorCode::ResourceNotFound, message)
    })
}
