//! What a task of agents may cost, with its retries, other agents and the tasks that it starts, and what all runs of a
//! person may cost in a day. What is spent is known from the reports of the programs, so a run ends at the first report
//! that reaches a limit.

use jiff::tz::TimeZone;

use matsu_core::clock::Timestamp;
use matsu_core::error_code::ErrorCode;
use matsu_core::id::TaskId;
use matsu_core::job::{Job, JobEnd, Retry};
use matsu_core::limits::SPENT_RUNS_MAX;
use matsu_core::page::PageRequest;
use matsu_core::ports::store::{JobFilter, ListJobs, ListTasks, ReadSpent, ReadTasks, StoreError, TaskFilter};
use matsu_core::principal::Principal;
use matsu_core::run::{RunCheckpoint, RunInput, RunOutput};
use matsu_core::usage::{Usage, UsageLimit};

use crate::runtime::Runtime;
use crate::runtime::context::JobContext;

use super::live_runs::LiveRuns;
use super::run::go_on_command;
use super::run_body::store_unavailable;
use super::usage::priced;

use super::Agents;

/// The limits that one run is under.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    /// Its own task's, and those of the tasks that it was started by.
    tasks: Vec<(TaskId, UsageLimit)>,
    /// Of a day, and whose.
    day: Option<(Principal, UsageLimit)>,
}

/// A limit that is reached.
#[derive(Debug)]
pub enum UsedUp {
    Task { id: TaskId, words: String },
    Day { words: String, until: Timestamp },
}

impl Limits {
    /// # Errors
    /// As the store's.
    pub async fn of(cx: &JobContext) -> Result<Self, StoreError> {
        let runtime = cx.runtime();
        let (mut tasks, mut owner) = (Vec::new(), None);
        let mut next = cx.job.task_id.clone();
        while let Some(id) = next.take() {
            let Some(task) = runtime.store().run(ReadTasks(vec![id.clone()])).await?.pop() else { break };
            let of_job = |job: &Job| serde_json::from_str::<RunInput>(&job.input_json).ok()?.budget;
            tasks.extend(jobs(runtime, &id).await?.iter().find_map(of_job).map(|limit| (id, limit)));
            next = task.parent_id;
            // The task that no run has started belongs to a person.
            owner = Some(task.owner);
        }
        Ok(Self { tasks, day: owner.zip(runtime.day_limit()) })
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty() && self.day.is_none()
    }

    /// The first of them that is used up.
    ///
    /// # Errors
    /// As the store's.
    pub async fn used_up(&self, runtime: &Runtime) -> Result<Option<UsedUp>, StoreError> {
        for (id, limit) in &self.tasks {
            if let Some(words) = limit.used_up_by(Agents::of(runtime).spent_below(id).await?) {
                return Ok(Some(UsedUp::Task { id: id.clone(), words }));
            }
        }
        let Some((owner, limit)) = &self.day else { return Ok(None) };
        let (from, until) = day_around(runtime.clock().now());
        let spent =
            runtime.store().run(ReadSpent { owner: owner.clone(), from, until, rows_max: SPENT_RUNS_MAX }).await?;
        let prices = runtime.prices();
        let spent = spent.iter().filter_map(|run| priced(run, &prices).0).fold(Usage::default(), Usage::plus);
        let used = spent.plus(runtime.part::<LiveRuns>().used_by(owner));
        Ok(limit.used_up_by(used).map(|words| UsedUp::Day { words, until }))
    }
}

impl UsedUp {
    /// Why a run was ended.
    #[must_use]
    pub fn ended(&self, task: Option<&TaskId>) -> String {
        self.message("the run was ended, and its output and branch are kept", task)
    }

    /// Why a program is not started.
    #[must_use]
    pub fn not_started(&self, task: Option<&TaskId>) -> String {
        self.message("no further round and no other agent is started; the work so far is kept", task)
    }

    fn message(&self, what: &str, task: Option<&TaskId>) -> String {
        let go_on = task.map(|task| format!(". To go on from there: {}", go_on_command(task))).unwrap_or_default();
        format!("{}; {what}{go_on}", self.which(task))
    }

    /// Which limit it is, and how far it is used up.
    #[must_use]
    pub fn which(&self, task: Option<&TaskId>) -> String {
        match self {
            Self::Task { id, words } if task == Some(id) => format!("the budget of the task is used up: {words}"),
            Self::Task { id, words } => {
                format!("the budget of task {id}, which started this one, is used up: {words}")
            }
            Self::Day { words, .. } => {
                format!("the limit of the day (agents.day_tokens, agents.day_cost) is used up: {words}")
            }
        }
    }
}

/// Whether a program may be started now.
///
/// # Errors
/// What becomes of the job instead: it fails, or waits for the next day.
pub(super) async fn may_spend(cx: &JobContext) -> Result<Limits, JobEnd> {
    let limits = Limits::of(cx).await.map_err(|error| store_unavailable(&error))?;
    let used_up = limits.used_up(cx.runtime()).await.map_err(|error| store_unavailable(&error))?;
    match used_up {
        None => Ok(limits),
        Some(UsedUp::Day { words, until }) => {
            cx.progress(&format!(
                "waits until {until}: the limit of the day (agents.day_tokens, agents.day_cost) is used up: {words}"
            ))
            .await;
            Err(JobEnd::Requeue { run_at: Some(until) })
        }
        Some(task) => Err(JobEnd::Failed {
            code: ErrorCode::BudgetExhausted.to_string(),
            message: task.not_started(cx.job.task_id.as_ref()),
            retry: Retry::Never,
            output_json: cx.job.output_json.clone(),
        }),
    }
}

impl Agents<'_> {
    /// What a task and everything that it started has cost so far.
    async fn spent_below(self, id: &TaskId) -> Result<Usage, StoreError> {
        let (mut family, mut level, mut sum) = (vec![id.clone()], 0, Usage::default());
        while let Some(task) = family.get(level).cloned() {
            level += 1;
            for job in jobs(self.runtime, &task).await? {
                sum = sum.plus(self.runtime.part::<LiveRuns>().used(&job.id).unwrap_or_else(|| stored(&job)));
            }
            let filter = TaskFilter { parent: Some(task), ..TaskFilter::default() };
            let children = self
                .runtime
                .store()
                .run(ListTasks { filter: filter.clone(), page: PageRequest::new(None, Some(u32::MAX)) })
                .await?;
            family.extend(children.items.into_iter().map(|task| task.id));
        }
        Ok(sum)
    }
}

async fn jobs(runtime: &Runtime, task: &TaskId) -> Result<Vec<Job>, StoreError> {
    let filter = JobFilter { task_id: Some(task.clone()), ..JobFilter::default() };
    Ok(runtime
        .store()
        .run(ListJobs { filter: filter.clone(), page: PageRequest::new(None, Some(u32::MAX)) })
        .await?
        .items)
}

/// What a job has cost that does not run here. A check of an earlier run has cost nothing.
fn stored(job: &Job) -> Usage {
    let is_check = serde_json::from_str::<RunInput>(&job.input_json).is_ok_and(|input| input.verifies.is_some());
    if is_check {
        return Usage::default();
    }
    let output: RunOutput =
        job.output_json.as_deref().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    let checkpoint: RunCheckpoint =
        job.checkpoint_json.as_deref().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    let tokens = |usage: &Usage| usage.input_tokens.saturating_add(usage.output_tokens);
    let of_output = with_estimate(output.usage.unwrap_or_default(), output.estimated_usd);
    let of_checkpoint = with_estimate(checkpoint.spent.unwrap_or_default(), checkpoint.estimated_usd);
    // Each is written at its own moments; the later one has more.
    if tokens(&of_checkpoint) > tokens(&of_output) { of_checkpoint } else { of_output }
}

/// With the part of the cost that follows from prices.
#[must_use]
pub fn with_estimate(usage: Usage, estimated_usd: f64) -> Usage {
    match estimated_usd {
        none if none <= 0.0 => usage,
        more => Usage { cost_usd: Some(usage.cost_usd.unwrap_or(0.0) + more), ..usage },
    }
}

/// When the day began, and when the next one begins, where this machine is.
fn day_around(now: Timestamp) -> (Timestamp, Timestamp) {
    let at = jiff::Timestamp::from_millisecond(now.as_millis()).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    let at = at.to_zoned(TimeZone::system());
    let millis = |at: &jiff::Zoned| Timestamp::from_millis(at.timestamp().as_millisecond());
    let began = at.start_of_day().unwrap_or_else(|_| at.clone());
    let next = at.tomorrow().and_then(|next| next.start_of_day()).unwrap_or(at);
    (millis(&began), millis(&next))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_has_its_begin_behind_it_and_its_end_ahead() {
        let now = Timestamp::parse("2026-03-04T05:06:07Z").unwrap();
        let (from, until) = day_around(now);
        assert!(from <= now && now < until);
        let hours = until.since(from).as_secs() / 3600;
        assert!((23..=25).contains(&hours), "{hours}");
    }
}
