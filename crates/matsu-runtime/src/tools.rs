//! The list of tools. Adding one is a file in `tools/`, a `mod` line and an entry here.

mod cancel_task;
mod get_task_status;
mod task_report;

use std::sync::LazyLock;

use crate::tool::ToolEntry;

/// Every tool, in the order clients see them.
pub static TOOLS: LazyLock<Vec<ToolEntry>> = LazyLock::new(|| {
    vec![ToolEntry::of::<get_task_status::GetTaskStatus>(), ToolEntry::of::<cancel_task::CancelTask>()]
});
