//! Everything at once over the same few tasks: no error surfaces, and nothing is lost.

use std::time::Duration;

use matsu_core::error_code::ErrorCode;
use matsu_core::id::TaskId;
use matsu_core::job::end::Retry;
use matsu_core::job::{JobEnd, JobKind};
use matsu_core::page::PageRequest;
use matsu_core::ports::store::{Finish, JobFilter, ListJobs, MarkRead, SetStatus, Steer, StopTask, StoreError};
use matsu_core::principal::Principal;
use matsu_core::task::{JobCounts, StopMode, StopReason};

use crate::harness::{Backend, TestStore, completed, lease};

const ROUNDS: usize = 25;
const TASKS: usize = 6;

/// Refusals are part of the game; failures are not.
#[track_caller]
fn no_failure<T>(answer: Result<T, StoreError>) -> Option<T> {
    match answer {
        Ok(value) => Some(value),
        Err(error) => {
            let failed = matches!(error.code(), ErrorCode::StoreUnavailable | ErrorCode::InternalError);
            assert!(!failed, "{error}");
            None
        }
    }
}

async fn enqueue(t: &TestStore, tasks: &[TaskId], seed: usize) {
    for round in 0..ROUNDS {
        let mut jobs = vec![t.new_job(JobKind::Search), t.new_job(JobKind::Search)];
        jobs[1].run_at = t.now().plus(Duration::from_millis(3));
        no_failure(t.try_enqueue(&tasks[(round + seed) % tasks.len()], jobs).await);
        t.pass(Duration::from_millis(1));
    }
}

/// Claims over all tasks, and ends in every way, in an order that is not the order of the claim.
async fn work(t: &TestStore) {
    let mut finishes: Vec<Finish> = Vec::new();
    for round in 0..ROUNDS {
        let mut request = t.claim_request(&t.node, 4, 12);
        finishes.reverse();
        request.finishes = std::mem::take(&mut finishes);
        let Some(outcome) = no_failure(t.store.run(request).await) else { continue };
        for (n, job) in outcome.claimed.iter().enumerate() {
            let end = match (round + n) % 4 {
                0 => JobEnd::Requeue { run_at: Some(t.now().plus(Duration::from_millis(2))) },
                1 => {
                    let (code, message) = ("PIPELINE_ERROR".to_owned(), "no luck".to_owned());
                    JobEnd::Failed { code, message, retry: Retry::Never, output_json: None }
                }
                _ => completed(),
            };
            finishes.push(Finish { lease: lease(job), end });
        }
    }
    let mut request = t.claim_request(&t.node, 0, 12);
    request.finishes = finishes;
    no_failure(t.store.run(request).await);
}

async fn steer(t: &TestStore, tasks: &[TaskId]) {
    for round in 0..ROUNDS {
        let to = if round % 2 == 0 { Steer::Pause } else { Steer::Resume };
        let task_id = tasks[round / 2 % tasks.len()].clone();
        let by = Principal::local_user();
        no_failure(t.store.run(SetStatus { task_id, to, by, message: None, now: t.now() }).await);
        let backwards: Vec<TaskId> = tasks.iter().rev().cloned().collect();
        no_failure(t.store.run(MarkRead { ids: backwards.clone(), now: t.now() }).await);
    }
}

async fn stop(t: &TestStore, tasks: &[TaskId]) {
    for (n, task_id) in tasks.iter().enumerate() {
        for mode in [StopMode::Graceful, StopMode::Immediate] {
            let (task_id, reason) = (task_id.clone(), StopReason::Completed);
            no_failure(t.store.run(StopTask { task_id, mode, reason, now: t.now() }).await);
            for _ in 0..n {
                no_failure(t.store.check().await);
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_transitions_over_the_same_tasks_never_fail_and_keep_the_counts() {
    let t = TestStore::open(Backend::postgres).await;
    let mut tasks = Vec::new();
    for _ in 0..TASKS {
        tasks.push(t.research().await.id);
    }
    // The last two are never stopped.
    tokio::join!(
        enqueue(&t, &tasks, 0),
        enqueue(&t, &tasks, 3),
        work(&t),
        work(&t),
        work(&t),
        work(&t),
        steer(&t, &tasks),
        stop(&t, &tasks[..TASKS - 2]),
        stop(&t, &tasks[..TASKS - 2]),
    );
    for id in &tasks {
        let filter = JobFilter { task_id: Some(id.clone()), ..JobFilter::default() };
        let page =
            t.store.run(ListJobs { filter: filter.clone(), page: PageRequest::new(None, Some(200)) }).await.unwrap();
        assert_eq!(page.next, None);
        let mut counts = JobCounts::default();
        for job in &page.items {
            counts.add(job.state, 1);
        }
        assert_eq!(t.task(id).await.counts, counts, "counts and rows agree");
    }
}
