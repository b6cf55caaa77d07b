//! Which tasks a call without ids lists: those of the project that the client works on.

use std::time::Duration;

use matsu_core::clock::Timestamp;
use matsu_core::id::TaskId;
use matsu_core::limits::{LIST_PAGE_MAX, OPEN_TASKS_LISTED_MAX};
use matsu_core::page::PageRequest;
use matsu_core::ports::store::TaskFilter;
use matsu_core::task::{Task, TaskKind, is_news_in};

use crate::tasks::Tasks;
use crate::tool::{ToolContext, ToolError};

/// A part of the list.
pub struct Listed {
    pub tasks: Vec<Task>,
    /// All unfinished or unread tasks, in order.
    pub news: Vec<TaskId>,
    /// The number of those tasks.
    pub total: usize,
    /// Where the next part begins.
    pub next_after: Option<usize>,
}

/// What a list without ids shows, without the first `after` of it.
pub async fn read(cx: &ToolContext, after: usize) -> Result<Listed, ToolError> {
    let now = cx.runtime.clock().now();
    let mut tasks = pages(cx, now, PAGES_LISTED_MAX).await?;
    tasks.retain(is_news);
    tasks.sort_by_key(rank);
    let (total, most) = (tasks.len(), OPEN_TASKS_LISTED_MAX as usize);
    let news = tasks.iter().map(|task| task.id.clone()).collect();
    if total < after.saturating_add(most) {
        let lately = pages(cx, now.minus(LATELY), 1).await?;
        tasks.extend(lately.into_iter().filter(|task| rank(task) == READ));
    }
    let end = after.saturating_add(most);
    let next_after = (end < tasks.len()).then_some(end);
    let tasks = tasks.into_iter().skip(after).take(most).collect();
    Ok(Listed { tasks, news, total, next_after })
}

/// Unfinished tasks, and finished ones that were not read before this moment.
async fn pages(cx: &ToolContext, unread_since: Timestamp, pages_max: usize) -> Result<Vec<Task>, ToolError> {
    let filter = TaskFilter { open_or_unread_since: Some(unread_since), ..TaskFilter::default() };
    let mut tasks = Vec::new();
    let mut after = None;
    for _ in 0..pages_max {
        let request = PageRequest::new(after, Some(LIST_PAGE_MAX));
        let page = Tasks::of(&cx.runtime).list(&cx.principal, filter.clone(), &request).await?;
        let folder = cx.workplace.project.as_deref();
        let is_own = |task: &Task| task.kind != TaskKind::Wait && is_news_in(task.started_in().as_deref(), folder);
        tasks.extend(page.items.into_iter().filter(is_own));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    Ok(tasks)
}

/// Results that were read this long ago are still listed, behind the others.
const LATELY: Duration = Duration::from_secs(3600);

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
fn is_news(task: &Task) -> bool {
    rank(task) < READ
}
