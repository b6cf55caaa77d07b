//! Which tasks a call without ids lists.

use matsu_core::clock::Timestamp;
use matsu_core::limits::{LIST_PAGE_MAX, OPEN_TASKS_LISTED_MAX, RESULT_KEPT_AFTER_READ};
use matsu_core::page::PageRequest;
use matsu_core::ports::store::TaskFilter;
use matsu_core::task::{Task, TaskKind};

use crate::tool::{ToolContext, ToolError};

/// What a list without ids shows, and how many unfinished tasks and unread results there are.
pub async fn read(cx: &ToolContext) -> Result<(Vec<Task>, usize), ToolError> {
    let now = cx.runtime.clock().now();
    let mut tasks = pages(cx, now, PAGES_LISTED_MAX).await?;
    tasks.retain(is_news);
    tasks.sort_by_key(rank);
    let total = tasks.len();
    let most = OPEN_TASKS_LISTED_MAX as usize;
    if total < most {
        let lately = pages(cx, now.minus(RESULT_KEPT_AFTER_READ), 1).await?;
        tasks.extend(lately.into_iter().filter(|task| rank(task) == READ));
    }
    tasks.truncate(most);
    Ok((tasks, total))
}

/// Unfinished tasks, and finished ones that were not read before this moment.
async fn pages(cx: &ToolContext, unread_since: Timestamp, pages_max: usize) -> Result<Vec<Task>, ToolError> {
    let filter = TaskFilter { open_or_unread_since: Some(unread_since), ..TaskFilter::default() };
    let mut tasks = Vec::new();
    let mut after = None;
    for _ in 0..pages_max {
        let request = PageRequest::new(after, Some(LIST_PAGE_MAX));
        let page = cx.runtime.list(&cx.principal, filter.clone(), &request).await?;
        tasks.extend(page.items.into_iter().filter(|task| task.kind != TaskKind::Wait));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    Ok(tasks)
}

/// Pages of tasks that a list looks through.
const PAGES_LISTED_MAX: usize = 20;

/// Where a task stands in a list without ids.
fn rank(task: &Task) -> u8 {
    match (task.status.is_terminal(), task.first_read_at) {
        (false, _) => UNFINISHED,
        (true, None) => UNREAD,
        (true, Some(_)) => READ,
    }
}

const UNFINISHED: u8 = 0;
const UNREAD: u8 = 1;
const READ: u8 = 2;

/// Whether the task is unfinished, or its result was not read.
pub fn is_news(task: &Task) -> bool {
    rank(task) < READ
}
