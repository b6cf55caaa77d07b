//! Seconds that a task may run: set aside before they are spent, over all its workers.

use std::sync::Arc;
use std::time::Duration;

use matsu_core::budget::{BudgetLine, BudgetUnit};
use matsu_core::id::TaskId;
use matsu_core::job::{Job, JobKind, JobState};
use matsu_core::ports::store::{ReadBudget, Store};
use matsu_core::slot::SlotLimits;
use matsu_core::task::TaskKind;
use matsu_runtime::Runtime;
use matsu_runtime::tasks::Tasks;
use matsu_runtime::worker::Service;

use crate::faulty_store::{FaultyStore, Plan};
use crate::fixtures::*;

async fn submit_with_seconds(runtime: &Runtime, limit: i64, inputs: &[&str]) -> TaskId {
    let clock = runtime.clock();
    let jobs = inputs.iter().map(|input| job(clock, JobKind::Sleep, input)).collect();
    let mut new = task(clock, TaskKind::Agent, jobs);
    new.budget = vec![BudgetLine { unit: BudgetUnit::Seconds, limit, used: 0 }];
    Tasks::of(runtime).submit(new).await.expect("submitted").task.id
}

async fn used(store: &Arc<dyn Store>, id: &TaskId) -> i64 {
    store.run(ReadBudget(id.clone())).await.expect("a budget")[0].used
}

fn ran(job: &Job) -> Duration {
    job.finished_at.expect("ended").since(job.started_at.expect("started"))
}

#[tokio::test(start_paused = true)]
async fn all_workers_of_a_task_together_never_run_longer_than_it_may() {
    for input in [r#"{"ms":3600000}"#, r#"{"ms":3600000,"ignore_stop":true}"#] {
        let (store, clock) = memory().await;
        let limits = SlotLimits { network_client: 3, ..SlotLimits::for_cores(1) };
        let runtime = runtime_with(&store, clock, limits, bodies());
        let service = Service::start(&runtime);
        let id = submit_with_seconds(&runtime, 20, &[input; 5]).await;
        finished(&runtime, &id).await;
        let jobs = jobs_of(&store, &id).await;
        for job in &jobs {
            assert_eq!((job.state, job.error_code.as_deref()), (JobState::Failed, Some("BUDGET_EXHAUSTED")));
        }
        let spent = used(&store, &id).await;
        assert!((12..=20).contains(&spent), "{spent} of 20 were counted");
        let longest = jobs.iter().map(ran).max().expect("a job");
        assert!(longest <= Duration::from_secs(16), "with five for what does not listen: {longest:?}");
        assert!(ran(&jobs[4]) < Duration::from_secs(3), "nothing was left for the last: {:?}", ran(&jobs[4]));
        service.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_job_did_not_spend_is_there_for_the_next() {
    let (store, clock) = memory().await;
    let runtime = runtime(&store, clock);
    let service = Service::start(&runtime);
    let id = submit_with_seconds(&runtime, 30, &[r#"{"ms":12500}"#, r#"{"ms":2500}"#]).await;
    finished(&runtime, &id).await;
    assert!(jobs_of(&store, &id).await.iter().all(|job| job.state == JobState::Completed));
    assert!((14..=16).contains(&used(&store, &id).await), "{}", used(&store, &id).await);
    service.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_away_ends_nothing_for_want_of_seconds() {
    let (inner, clock) = memory().await;
    let faulty = FaultyStore::new(inner);
    let store: Arc<dyn Store> = faulty.clone();
    let runtime = runtime(&store, clock);
    let service = Service::start(&runtime);
    let id = submit_with_seconds(&runtime, 600, &[r#"{"ms":60000}"#]).await;
    until(&store, &clock, &id, JobState::Running).await;
    faulty.set(Plan::Down);
    clock.sleep(Duration::from_secs(30)).await;
    faulty.set(Plan::Nothing);
    finished(&runtime, &id).await;
    let job = only_job(&store, &id).await;
    assert_eq!((job.state, job.attempt), (JobState::Completed, 1));
    service.stop().await;
}
