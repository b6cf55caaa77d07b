//! The verbs: limits where data enters, ownership, retry, expiry.

use std::time::Duration;

use matsu_core::budget::{BudgetLine, BudgetUnit};
use matsu_core::error_code::ErrorCode;
use matsu_core::job::JobKind;
use matsu_core::limits::{JOB_INPUT_BYTES_MAX, JOBS_PER_CALL_MAX, TITLE_CHARS_MAX};
use matsu_core::page::PageRequest;
use matsu_core::ports::store::{ReadBudget, Steer, TaskFilter, TaskLookup};
use matsu_core::principal::Principal;
use matsu_core::task::{TaskKind, TaskStatus};
use matsu_runtime::tasks::Tasks;
use matsu_runtime::worker::Service;
use matsu_runtime::{Expiry, Runtime, RuntimeOptions};

use crate::fixtures::*;

#[tokio::test(start_paused = true)]
async fn too_much_is_refused_and_long_titles_are_cut() {
    let (store, clock) = memory().await;
    let runtime = runtime(&store, clock);
    let many = (0..=JOBS_PER_CALL_MAX).map(|_| sleep_job(&clock, 1)).collect();
    let large = vec![job(&clock, JobKind::Noop, &"x".repeat(JOB_INPUT_BYTES_MAX + 1))];
    for jobs in [many, large] {
        let refused = Tasks::of(&runtime).submit(task(&clock, TaskKind::Research, jobs)).await.expect_err("too much");
        assert_eq!(refused.code(), ErrorCode::LimitExceeded);
    }
    let mut titled = task(&clock, TaskKind::Research, vec![]);
    titled.title = "待".repeat(500);
    let stored = Tasks::of(&runtime).submit(titled).await.expect("stored").task;
    assert_eq!(stored.title.chars().count(), TITLE_CHARS_MAX);
    let empty = Tasks::of(&runtime).enqueue(&me(), &stored.id, vec![]).await.expect_err("nothing to do");
    assert_eq!(empty.code(), ErrorCode::InvalidParams);
}

#[tokio::test(start_paused = true)]
async fn another_principals_task_does_not_exist() {
    let (store, clock) = memory().await;
    let runtime = runtime(&store, clock);
    let id = submit(&runtime, TaskKind::Research, vec![sleep_job(&clock, 1)]).await.id;
    let other = Principal::user("other");
    let refusals = [
        Tasks::of(&runtime).read(&other, &id).await.expect_err("foreign"),
        Tasks::of(&runtime).retry(&other, &id).await.expect_err("foreign"),
        Tasks::of(&runtime).steer(&other, &id, Steer::Pause, None).await.expect_err("foreign"),
        Tasks::of(&runtime).enqueue(&other, &id, vec![sleep_job(&clock, 1)]).await.expect_err("foreign"),
    ];
    for refusal in refusals {
        assert_eq!(
            (refusal.code(), refusal.to_string().as_str()),
            (ErrorCode::TaskNotFound, "Task ID not found or expired.")
        );
    }
    let list = |owner| {
        let runtime = runtime.clone();
        async move {
            Tasks::of(&runtime)
                .list(&owner, TaskFilter::default(), &PageRequest::default())
                .await
                .expect("a page")
                .items
        }
    };
    assert_eq!((list(me()).await.len(), list(other).await.len()), (1, 0));
    assert_eq!(Tasks::of(&runtime).read(&me(), &id).await.expect("mine").status, TaskStatus::Queued);
}

#[tokio::test(start_paused = true)]
async fn a_retry_is_the_same_work_under_new_names() {
    let (store, clock) = memory().await;
    let runtime = runtime(&store, clock);
    let service = Service::start(&runtime);
    let jobs = vec![job(&clock, JobKind::Sleep, r#"{"ms":1}"#), job(&clock, JobKind::Noop, "{}")];
    let mut new = task(&clock, TaskKind::Agent, jobs);
    new.budget = vec![BudgetLine { unit: BudgetUnit::Pages, limit: 7, used: 0 }];
    let first = Tasks::of(&runtime).submit(new).await.expect("stored").task.id;
    assert!(Tasks::of(&runtime).retry(&me(), &first).await.is_err(), "it has not ended");
    finished(&runtime, &first).await;
    let again = Tasks::of(&runtime).retry(&me(), &first).await.expect("retried").task;
    assert_ne!(again.id, first);
    assert_eq!(finished(&runtime, &again.id).await.status, TaskStatus::Completed);
    let inputs = |jobs: Vec<matsu_core::job::Job>| -> Vec<_> {
        jobs.into_iter().map(|job| (job.kind, job.input_json)).collect()
    };
    assert_eq!(inputs(jobs_of(&store, &again.id).await), inputs(jobs_of(&store, &first).await));
    assert_eq!(store.run(ReadBudget(again.id.clone())).await.expect("a budget")[0].limit, 7);
    service.stop().await;
}

#[tokio::test(start_paused = true)]
async fn finished_tasks_expire_as_the_rule_says() {
    let hour = Duration::from_secs(3_600);
    for (expiry, is_read, kept) in
        [(Expiry::InMemory, false, hour), (Expiry::Durable, true, 3 * hour), (Expiry::Durable, false, 3 * hour)]
    {
        let (store, clock) = memory().await;
        let mut options =
            RuntimeOptions::new(store.clone(), clock, matsu_core::slot::SlotLimits::for_cores(1), bodies());
        options.settings.results_kept = 3 * hour;
        let runtime = Runtime::new(RuntimeOptions { expiry, ..options });
        let service = Service::start(&runtime);
        let id = submit(&runtime, TaskKind::Agent, vec![job(&clock, JobKind::Noop, "{}")]).await.id;
        let research = submit(&runtime, TaskKind::Research, vec![]).await.id;
        finished(&runtime, &id).await;
        service.stop().await;
        if is_read {
            let seen = Tasks::of(&runtime).read(&me(), &id).await.expect("there");
            Tasks::of(&runtime).mark_read(&me(), std::slice::from_ref(&seen.id)).await.expect("noted");
        }
        // A week with a process that ticks every second is long even if it costs no real time.
        clock.sleep(kept - Duration::from_secs(120)).await;
        let service = Service::start(&runtime);
        clock.sleep(Duration::from_secs(70)).await;
        assert!(Tasks::of(&runtime).read(&me(), &id).await.is_ok(), "{expiry:?}: too early");
        clock.sleep(Duration::from_secs(180)).await;
        assert!(Tasks::of(&runtime).read(&me(), &id).await.is_err(), "{expiry:?}: too late");
        let left = Tasks::of(&runtime).lookup(&me(), &id).await.expect("a tombstone");
        assert!(matches!(left, TaskLookup::Expired { status: TaskStatus::Completed, .. }), "{left:?}");
        assert!(Tasks::of(&runtime).read(&me(), &research).await.is_ok(), "research stays");
        service.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn settings_beyond_the_bound_are_refused() {
    let (store, clock) = memory().await;
    let runtime = runtime(&store, clock);
    let mut large = task(&clock, TaskKind::Agent, Vec::new());
    large.config_json = format!(r#"{{"text":"{}"}}"#, "x".repeat(matsu_core::limits::TASK_CONFIG_BYTES_MAX));
    let refused = Tasks::of(&runtime).submit(large).await;
    assert!(matches!(refused, Err(matsu_runtime::TaskError::LimitExceeded(_))), "{refused:?}");
}
