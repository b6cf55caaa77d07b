//! `get_task_status`: where tasks stand, at once or when something changes. For none, one or many ids of any kind.

mod diff;
mod list;

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use matsu_core::error_code::ErrorCode;
use matsu_core::id::TaskId;
use matsu_core::limits::{INLINE_WAIT, TASKS_PER_WAIT_MAX};
use matsu_core::ports::store::ReadTasks;
use matsu_core::task::{Task, TaskStatus};

use diff::{DiffReport, DiffWish};

use super::run_start::lending;
use super::task_report::{Detail, OutputWish, TaskReport};
use crate::tasks::status::{ReturnedBecause, WaitFor, WaitReply, WaitRequest, Waits};
use crate::tasks::{TaskError, Tasks};
use crate::tool::native_task::DeferredWaits;
use crate::tool::{Annotations, NativeTasks, Repeat, Rules, Tool, ToolContext, ToolError, ToolReply, Toolset};

pub struct GetTaskStatus;

#[derive(Clone, Deserialize, JsonSchema)]
pub struct Input {
    /// One task; without ids your tasks are listed.
    #[schemars(length(min = 1, max = 100))]
    task_id: Option<String>,
    /// Several tasks; returns when one changes.
    #[schemars(length(min = 1, max = 50))]
    task_ids: Option<Vec<String>>,
    /// Seconds to wait for a change (default 0); if the server waits less, the reply has hold_max.
    #[schemars(range(min = 0, max = 3600))]
    timeout: Option<u64>,
    /// next.since of the last reply.
    since: Option<Since>,
    /// When to return. finished (default): a job ended or asks; all: every task ended; any: something changed.
    wait_for: Option<Wanted>,
    /// To read on in a long result: next_output_offset of the reply.
    #[schemars(range(min = 0))]
    output_offset: Option<u64>,
    /// Also return this many last lines of output.
    #[schemars(range(min = 1, max = 200))]
    tail: Option<u32>,
    /// Also return what the run changed: {} for the files, {path, offset} for a file's patch.
    diff: Option<DiffWish>,
    /// To read on in the list: next.after of the reply.
    #[schemars(range(min = 0))]
    after: Option<usize>,
}

#[derive(Clone, Deserialize, JsonSchema)]
#[serde(untagged)]
enum Since {
    One(#[schemars(range(min = 0))] i64),
    Each(BTreeMap<String, i64>),
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Wanted {
    Finished,
    All,
    Any,
}

#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Output {
    One(Box<OneTask>),
    Many(ManyTasks),
}

#[derive(Serialize, JsonSchema)]
pub struct OneTask {
    #[serde(flatten)]
    report: TaskReport,
    #[serde(skip_serializing_if = "Option::is_none")]
    diff: Option<DiffReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<NextOne>,
    #[serde(flatten)]
    waited: Waited,
}

#[derive(Serialize, JsonSchema)]
struct NextOne {
    since: i64,
}

#[derive(Serialize, JsonSchema)]
pub struct ManyTasks {
    /// Those with news.
    #[serde(skip_serializing_if = "Option::is_none")]
    changed: Option<Vec<String>>,
    tasks: Vec<Line>,
    /// Without ids: the number of open tasks and unread results.
    #[serde(skip_serializing_if = "Option::is_none")]
    total: Option<usize>,
    next: NextMany,
    #[serde(flatten)]
    waited: Waited,
}

#[derive(Serialize, JsonSchema)]
struct NextMany {
    since: BTreeMap<String, i64>,
    /// Set if there are more: pass as after.
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<usize>,
}

/// A task in a list: a full report, or one line where only an overview was asked for.
#[derive(Serialize, JsonSchema)]
struct Line {
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unread: Option<bool>,
    #[serde(flatten)]
    report: TaskReport,
}

#[derive(Serialize, JsonSchema, Default)]
struct Waited {
    #[serde(skip_serializing_if = "Option::is_none")]
    waited_ms: Option<u64>,
    /// changed, timeout, terminal, idle or interrupt.
    #[serde(skip_serializing_if = "Option::is_none")]
    returned_because: Option<String>,
    /// Seconds: the wait was cut to this.
    #[serde(skip_serializing_if = "Option::is_none")]
    hold_max: Option<u64>,
}

impl Waited {
    fn of(reply: &WaitReply) -> Self {
        Self {
            waited_ms: Some(reply.waited_ms),
            returned_because: Some(reply.returned_because.as_str().to_owned()),
            hold_max: reply.hold_max.map(|hold| hold.as_secs()),
        }
    }
}

impl Tool for GetTaskStatus {
    const NAME: &'static str = "get_task_status";
    const TITLE: &'static str = "Status and result of any task";
    const DESCRIPTION: &'static str = "Task: status and result of any task, agent or research id. Do not poll: do \
        other work, then make one call with a long timeout; it returns at the first result, failure or question. Takes \
        one id, several or none: without ids it lists your unfinished tasks, unread results and recent tasks, so you \
        can find a lost id. Answer a question with answer_question.";
    const TOOLSET: Toolset = Toolset::Agents;
    const CORE: bool = true;
    const ANNOTATIONS: Annotations = Annotations::READS;
    const RULES: Rules = Rules { moved: Some(("answer", "answer_question")), ..Rules::ORDINARY };
    const REPEAT: Repeat = Repeat::Harmless;
    const WAIT_ARGUMENT: Option<&'static str> = Some("timeout");
    type Input = Input;
    type Output = Output;

    async fn call(cx: &ToolContext, input: Input) -> Result<ToolReply<Output>, ToolError> {
        if input.diff.is_some() && input.task_id.is_none() {
            return Err(ToolError::param(
                "diff",
                "diff together with task_id",
                "no task_id",
                "name the task as task_id",
            ));
        }
        match (&input.task_id, &input.task_ids) {
            (Some(_), Some(_)) => {
                Err(ToolError::param("task_ids", "task_id or task_ids", "both", "give task_id or task_ids, not both"))
            }
            (Some(id), None) => one(cx, TaskId::from_text(id.clone()), &input).await,
            (None, Some(ids)) => many(cx, ids.iter().cloned().map(TaskId::from_text).collect(), &input).await,
            (None, None) => open(cx, &input).await,
        }
    }
}

impl Input {
    fn wish(&self) -> OutputWish {
        OutputWish { offset: self.output_offset.unwrap_or(0), tail_lines: self.tail }
    }

    fn wait_for(&self) -> WaitFor {
        match self.wait_for {
            Some(Wanted::All) => WaitFor::All,
            Some(Wanted::Any) => WaitFor::Any,
            Some(Wanted::Finished) | None => WaitFor::Finished,
        }
    }

    fn since(&self, ids: &[TaskId]) -> Result<Option<BTreeMap<TaskId, i64>>, ToolError> {
        match (&self.since, ids) {
            (None, _) => Ok(None),
            (Some(Since::Each(each)), _) => {
                Ok(Some(each.iter().map(|(id, since)| (TaskId::from_text(id.clone()), *since)).collect()))
            }
            (Some(Since::One(since)), [only]) => Ok(Some(BTreeMap::from([(only.clone(), *since)]))),
            (Some(Since::One(since)), _) => Err(ToolError::param(
                "since",
                "object of task_id to revision",
                &since.to_string(),
                "with several tasks since is an object: {task_id: revision}; pass next.since back unchanged",
            )),
        }
    }
}

/// Waits as wished. A caller that can follow native tasks is answered with one if the wait is long.
async fn wait(cx: &ToolContext, ids: Vec<TaskId>, input: &Input) -> Result<ToolReply<WaitReply>, ToolError> {
    let wished = Duration::from_secs(input.timeout.unwrap_or(0));
    let follows = cx.tasks == NativeTasks::Understood && wished > INLINE_WAIT;
    let request = WaitRequest {
        owner: cx.principal.clone(),
        since: input.since(&ids)?,
        ids,
        wait_for: input.wait_for(),
        hold: if follows { INLINE_WAIT } else { wished },
        hold_max: Some(cx.hold_max()),
        instance: cx.instance.clone(),
        interrupt: None,
    };
    cx.watched.set(&request.ids);
    let reply = lending(cx, Waits::of(&cx.runtime).wait_for_tasks(request.clone(), &cx.caller)).await?;
    if follows && reply.returned_because == ReturnedBecause::Timeout {
        let known = reply.tasks.iter().map(|view| (view.task.id.clone(), view.waits_from)).collect();
        return Ok(ToolReply::Deferred(
            DeferredWaits::of(&cx.runtime).defer_wait(GetTaskStatus::NAME, &request, known).await?,
        ));
    }
    Ok(ToolReply::Done(reply))
}

/// Every reply has the position up to which the caller's instance has read.
fn stage(cx: &ToolContext, tasks: &[&Task]) {
    if let Some(instance) = &cx.instance {
        for task in tasks {
            cx.runtime.cursors().stage(instance, &task.id, task.revision);
        }
    }
}

async fn one(cx: &ToolContext, id: TaskId, input: &Input) -> Result<ToolReply<Output>, ToolError> {
    let reply = match wait(cx, vec![id.clone()], input).await {
        Ok(ToolReply::Done(reply)) => reply,
        Ok(ToolReply::Deferred(task)) => return Ok(ToolReply::Deferred(task)),
        // A task that is gone is a successful read of that fact.
        Err(error) if error.code == ErrorCode::TaskNotFound => {
            let report = TaskReport::not_found(&id);
            return Ok(ToolReply::Done(Output::One(Box::new(OneTask {
                report,
                diff: None,
                next: None,
                waited: Waited::default(),
            }))));
        }
        Err(error) => return Err(error),
    };
    let Some(view) = reply.tasks.first() else { return Err(TaskError::NotFound(id).into()) };
    let detail = detail(&view.task, reply.returned_because, input);
    let report = TaskReport::of(cx, &view.task, detail, input.wish()).await?;
    let diff = match &input.diff {
        Some(wish) => Some(diff::read(cx, &id, wish).await?),
        None => None,
    };
    stage(cx, &[&view.task]);
    if detail == Detail::Full {
        cx.shows(&[&view.task]).await;
    }
    let next = Some(NextOne { since: view.task.revision });
    Ok(ToolReply::Done(Output::One(Box::new(OneTask { report, diff, next, waited: Waited::of(&reply) }))))
}

/// A reply that only says "not yet" stays small.
fn detail(task: &Task, because: ReturnedBecause, input: &Input) -> Detail {
    let nothing_new = because == ReturnedBecause::Timeout && input.output_offset.is_none();
    if nothing_new && !task.status.is_terminal() && input.timeout.unwrap_or(0) > 0 {
        Detail::Brief
    } else {
        Detail::Full
    }
}

async fn many(cx: &ToolContext, ids: Vec<TaskId>, input: &Input) -> Result<ToolReply<Output>, ToolError> {
    let Sorted { known, unknown, is_any_unread } = sort_out(cx, ids).await?;
    if unknown.is_empty() {
        // What ended and was not read is there to be read, also if a list has shown that it ended.
        let at_once = is_any_unread && input.since.is_none() && input.wait_for() != WaitFor::All;
        let input = if at_once { &Input { timeout: None, ..input.clone() } } else { input };
        return report_many(cx, known, input, Vec::new()).await;
    }
    let gone: Vec<Line> = unknown.iter().map(|id| Line::plain(TaskReport::not_found(id))).collect();
    if known.is_empty() {
        let changed = Some(unknown.iter().map(ToString::to_string).collect());
        let (next, waited) = (NextMany { since: BTreeMap::new(), after: None }, Waited::default());
        return Ok(ToolReply::Done(Output::Many(ManyTasks { changed, tasks: gone, total: None, next, waited })));
    }
    // That one is gone is news: it is said at once, whatever the wish.
    report_many(cx, known, &Input { timeout: None, ..input.clone() }, gone).await
}

async fn report_many(
    cx: &ToolContext,
    ids: Vec<TaskId>,
    input: &Input,
    gone: Vec<Line>,
) -> Result<ToolReply<Output>, ToolError> {
    let reply = match wait(cx, ids, input).await? {
        ToolReply::Done(reply) => reply,
        ToolReply::Deferred(task) => return Ok(ToolReply::Deferred(task)),
    };
    // News first, each with its result; the others in brief. A list has shown the end of a task and not its result.
    let is_unread = |task: &Task| !Tasks::unread(&cx.principal, &[task]).is_empty();
    let (news, rest): (Vec<_>, Vec<_>) =
        reply.tasks.iter().partition(|view| reply.changed.contains(&view.task.id) || is_unread(&view.task));
    let mut changed: Vec<String> = news.iter().map(|view| view.task.id.to_string()).collect();
    changed.extend(gone.iter().map(|line| line.report.task_id.clone()));
    let mut lines = gone;
    for (views, detail) in [(&news, Detail::Full), (&rest, Detail::Brief)] {
        for view in views {
            lines.push(Line::plain(TaskReport::of(cx, &view.task, detail, input.wish()).await?));
        }
    }
    let seen: Vec<&Task> = reply.tasks.iter().map(|view| view.task.as_ref()).collect();
    stage(cx, &seen);
    let read: Vec<&Task> = news.iter().map(|view| view.task.as_ref()).collect();
    cx.shows(&read).await;
    let since = reply.next_since.iter().map(|(id, since)| (id.to_string(), *since)).collect();
    let next = NextMany { since, after: None };
    let is_news_unseen = reply.returned_because == ReturnedBecause::Timeout && !news.is_empty();
    let because = if is_news_unseen { ReturnedBecause::Changed } else { reply.returned_because };
    let waited = Waited { returned_because: Some(because.as_str().to_owned()), ..Waited::of(&reply) };
    Ok(ToolReply::Done(Output::Many(ManyTasks { changed: Some(changed), tasks: lines, total: None, next, waited })))
}

impl Line {
    fn plain(report: TaskReport) -> Self {
        Self { kind: None, title: None, unread: None, report }
    }
}

struct Sorted {
    known: Vec<TaskId>,
    unknown: Vec<TaskId>,
    /// One of the known ones has ended and was not read.
    is_any_unread: bool,
}

/// Which of these exist for the caller.
async fn sort_out(cx: &ToolContext, ids: Vec<TaskId>) -> Result<Sorted, ToolError> {
    let found = cx.runtime.store().run(ReadTasks(ids.clone())).await?;
    let is_own = |id: &TaskId| found.iter().any(|task| task.id == *id && task.owner == cx.principal);
    let is_any_unread = !Tasks::unread(&cx.principal, &found.iter().collect::<Vec<_>>()).is_empty();
    let (known, unknown) = ids.into_iter().partition(is_own);
    Ok(Sorted { known, unknown, is_any_unread })
}

/// The caller's unfinished tasks, then unread results, then what was read lately; each newest first. With a timeout,
/// when one of the first two kinds changes.
async fn open(cx: &ToolContext, input: &Input) -> Result<ToolReply<Output>, ToolError> {
    let list::Listed { mut tasks, mut news, total, next_after } = list::read(cx, input.after.unwrap_or(0)).await?;
    let mut waited = Waited::default();
    news.truncate(TASKS_PER_WAIT_MAX);
    if input.timeout.unwrap_or(0) > 0 && !news.is_empty() {
        let reply = match wait(cx, news, input).await? {
            ToolReply::Done(reply) => reply,
            ToolReply::Deferred(task) => return Ok(ToolReply::Deferred(task)),
        };
        waited = Waited::of(&reply);
        for view in &reply.tasks {
            match tasks.iter_mut().find(|task| task.id == view.task.id) {
                Some(task) => *task = (*view.task).clone(),
                // It stands on another page, and is what the wait was for.
                None if view.task.revision > view.waits_from => tasks.insert(0, (*view.task).clone()),
                None => {}
            }
        }
    }
    stage(cx, &tasks.iter().collect::<Vec<_>>());
    let since = tasks.iter().map(|task| (task.id.to_string(), task.revision)).collect();
    let next = NextMany { since, after: next_after };
    let mut lines = Vec::with_capacity(tasks.len());
    for task in &tasks {
        lines.push(overview(cx, task).await?);
    }
    Ok(ToolReply::Done(Output::Many(ManyTasks { changed: None, tasks: lines, total: Some(total), next, waited })))
}

/// One line. A question is in it: what the list has shown counts as read, so a wait after it would not return with it.
async fn overview(cx: &ToolContext, task: &Task) -> Result<Line, ToolError> {
    let report = if task.status == TaskStatus::InputRequired {
        TaskReport::of(cx, task, Detail::Brief, OutputWish::default()).await?
    } else {
        TaskReport {
            task_id: task.id.to_string(),
            status: TaskReport::status_of(task),
            revision: Some(task.revision),
            review: task.last_review().map(|review| review.state.to_string()),
            ..TaskReport::default()
        }
    };
    Ok(Line {
        kind: Some(task.kind.to_string()),
        title: Some(task.title.clone()),
        unread: Some(task.finished_at.is_some() && task.first_read_at.is_none()),
        report,
    })
}
