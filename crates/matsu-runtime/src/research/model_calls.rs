//! What the model calls of a research job cost, and what a used up quota makes of the job.

use matsu_core::budget::BudgetUnit;
use matsu_core::clock::Timestamp;
use matsu_core::error_code::ErrorCode;
use matsu_core::id::RunId;
use matsu_core::job::{JobState, JobSummary, Retry};
use matsu_core::limits::{QUOTA_PAUSE, QUOTA_PAUSE_MAX, QUOTA_WAITS_MAX, SEARCHES_LISTED_MAX};
use matsu_core::page::PageRequest;
use matsu_core::ports::claim_maker::ModelError;
use matsu_core::ports::model_account::{ModelAccount, ModelCall};
use matsu_core::ports::store::{JobFilter, ListJobSummaries, NoteSpent, ReadTasks, StoreError};
use matsu_core::principal::Principal;
use matsu_core::task::Task;
use matsu_core::usage::Spent;

use crate::runtime::Runtime;
use crate::runtime::context::JobContext;

use super::stop_cause::StopCause;

/// Counts the calls for the task; those of agents also go into the sums of `matsu usage`, as every run of one.
pub(super) async fn count(cx: &JobContext, account: &ModelAccount) -> Result<(), StopCause> {
    let calls = account.take();
    if calls.is_empty() {
        return Ok(());
    }
    let tokens = calls.iter().map(|call| call.usage.input_tokens.saturating_add(call.usage.output_tokens));
    add(cx, BudgetUnit::Tokens, tokens.sum()).await?;
    add(cx, BudgetUnit::MicroCost, calls.iter().filter_map(|call| call.usage.cost_usd).map(micros).sum()).await?;
    let of_agents: Vec<ModelCall> = calls.into_iter().filter(|call| call.agent.is_some()).collect();
    if !of_agents.is_empty() {
        let owner = owner(cx).await?;
        for call in of_agents {
            note(cx, owner.clone(), call).await?;
        }
    }
    Ok(())
}

/// Tokens and money are known afterwards, and have no limit here.
async fn add(cx: &JobContext, unit: BudgetUnit, amount: u64) -> Result<(), StoreError> {
    if amount == 0 {
        return Ok(());
    }
    let reserved = cx.set_aside(unit, 1).await?;
    cx.settle(&reserved, i64::try_from(amount).unwrap_or(i64::MAX)).await
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cost is small, and not negative")]
fn micros(dollars: f64) -> u64 {
    (dollars.max(0.0) * 1e6).round() as u64
}

async fn owner(cx: &JobContext) -> Result<Principal, StoreError> {
    let Some(task_id) = &cx.job.task_id else { return Ok(Principal::local_user()) };
    let tasks = cx.runtime().store().run(ReadTasks(vec![task_id.clone()])).await?;
    Ok(tasks.into_iter().next().map_or_else(Principal::local_user, |task| task.owner))
}

async fn note(cx: &JobContext, owner: Principal, call: ModelCall) -> Result<(), StoreError> {
    let now = cx.runtime().clock().now();
    let spent = Spent {
        run_id: RunId::mint(now),
        owner,
        at: now,
        agent: call.agent.unwrap_or_default(),
        model: Some(call.model),
        project: None,
        usage: Some(call.usage),
    };
    cx.runtime().store().run(NoteSpent(spent)).await
}

/// A model that is away costs the job, unless it can do without. One whose quota is used up lets the job wait for it.
pub(super) async fn stop_cause(cx: &JobContext, error: ModelError) -> StopCause {
    let ModelError::OutOfQuota { why, after } = &error else {
        return StopCause::ModelUnavailable {
            code: ErrorCode::PipelineError,
            why: error.to_string(),
            retry: Retry::IfAllowed,
        };
    };
    // The number of a claim grows with every wait, so each pause is longer than the one before.
    let waits = u32::try_from(cx.lease.attempt.saturating_sub(1)).unwrap_or(u32::MAX);
    if after.is_none() && waits >= QUOTA_WAITS_MAX {
        let why = format!("{error} (tried again {QUOTA_WAITS_MAX} times)");
        return StopCause::ModelUnavailable { code: ErrorCode::AgentQuota, why, retry: Retry::Never };
    }
    let pause = after.unwrap_or_else(|| QUOTA_PAUSE.saturating_mul(1 << waits.min(10)).min(QUOTA_PAUSE_MAX));
    let until: Timestamp = cx.runtime().clock().now().plus(pause.max(std::time::Duration::from_secs(1)));
    cx.last_progress(&format!("{OUT_OF_QUOTA} until {until}: {why}")).await;
    StopCause::NotBefore(until)
}

/// How the progress of such a job begins.
const OUT_OF_QUOTA: &str = "the model is out of quota";

/// What jobs of a task wait for a model's quota, each cause once.
pub(super) async fn quota_waits(runtime: &Runtime, task: &Task) -> Result<Vec<String>, StoreError> {
    if task.counts.queued == 0 {
        return Ok(Vec::new());
    }
    let filter = JobFilter { task_id: Some(task.id.clone()), state: Some(JobState::Queued), ..JobFilter::default() };
    let page = PageRequest::new(None, Some(SEARCHES_LISTED_MAX));
    let queued = runtime.store().run(ListJobSummaries { filter, page }).await?.items;
    let mut waits: Vec<String> = queued.iter().filter_map(JobSummary::progress_line).collect();
    waits.retain(|line| line.starts_with(OUT_OF_QUOTA));
    waits.sort();
    waits.dedup();
    Ok(waits)
}
