//! Idempotency keys: a repeated call returns the first task.

use std::sync::Arc;
use std::time::Duration;

use matsu_core::error_code::ErrorCode;
use matsu_core::job::JobKind;
use matsu_core::page::PageRequest;
use matsu_core::ports::store::{ExpireTasks, ExpiryRule, ListTasks, PruneRule, StoreError, TaskFilter};
use matsu_core::principal::Principal;
use matsu_core::task::{IdempotencyKey, TaskKind, TaskStatus};

use super::tasks::rule;
use crate::harness::TestStore;

fn key(body: &str) -> Option<IdempotencyKey> {
    Some(IdempotencyKey {
        principal: Principal::local_user(),
        tool: "use_agent".to_owned(),
        key: "k1".to_owned(),
        body_hash: body.to_owned(),
    })
}

pub async fn an_idempotency_key_returns_the_first_task(t: TestStore) {
    let mut first = t.new_task(TaskKind::Agent);
    first.idempotency = key("body");
    first.jobs = vec![t.new_job(JobKind::Noop)];
    let made = t.store.run(first).await.unwrap();
    let mut again = t.new_task(TaskKind::Agent);
    again.idempotency = key("body");
    again.jobs = vec![t.new_job(JobKind::Noop)];
    let repeated = t.store.run(again).await.unwrap();
    assert!(repeated.existed && !made.existed);
    assert_eq!((repeated.task.id, repeated.job_ids), (made.task.id.clone(), made.job_ids));
    let mut other = t.new_task(TaskKind::Agent);
    other.idempotency = key("another body");
    assert_eq!(t.store.run(other).await.unwrap_err().code(), ErrorCode::IdempotencyConflict);
    let page = t.store.run(ListTasks { filter: TaskFilter::default(), page: PageRequest::default() }).await.unwrap();
    assert_eq!(page.items.len(), 1);
}

pub async fn a_repeated_key_names_the_first_jobs_only(t: TestStore) {
    let with_key = || {
        let mut task = t.new_task(TaskKind::Research);
        task.idempotency = key("body");
        task.jobs = vec![t.new_job(JobKind::Search), t.new_job(JobKind::Search)];
        task
    };
    let made = t.store.run(with_key()).await.unwrap();
    t.pass(Duration::from_millis(1));
    t.enqueue(&made.task.id, JobKind::Search).await;
    let repeated = t.store.run(with_key()).await.unwrap();
    assert_eq!(repeated.job_ids, made.job_ids, "a later search is not what this call asked for");
}

pub async fn a_key_outlives_its_task_for_its_day(t: TestStore) {
    let t = Arc::new(t);
    let with_key = |body: &str| {
        let mut task = t.new_task(TaskKind::Agent);
        task.idempotency = key(body);
        task.jobs = vec![t.new_job(JobKind::Noop)];
        task
    };
    let first = t.store.run(with_key("body")).await.unwrap().task;
    let job = t.claim_one().await;
    t.complete(&job).await.unwrap();
    let rule = ExpiryRule { finished_before: t.pass(Duration::from_secs(3_601)), ..rule(&t) };
    assert_eq!(t.store.run(ExpireTasks { rule, rows_max: 10 }).await.unwrap().tasks, std::slice::from_ref(&first.id));
    let calls = (0..8).map(|_| {
        let (t, task) = (Arc::clone(&t), with_key("body"));
        async move { t.store.run(task).await.unwrap() }
    });
    for again in futures_util::future::join_all(calls).await {
        assert!(again.existed && again.job_ids.is_empty(), "{again:?}");
        assert_eq!((&again.task.id, again.task.status), (&first.id, TaskStatus::Completed));
        assert_eq!((again.task.created_at, again.task.finished_at), (first.created_at, Some(t.now())));
    }
    let other = t.store.run(with_key("another body")).await;
    assert!(matches!(other, Err(StoreError::Conflict(_))), "{other:?}");
    assert!(t.claim(5).await.is_empty(), "nothing was started");

    t.pass(Duration::from_secs(24 * 3_600));
    let old = PruneRule {
        changes_before: t.now(),
        keys_before: t.now().minus(Duration::from_secs(24 * 3_600)),
        system_jobs_before: t.now(),
        revoked_before: t.now(),
    };
    t.store.prune(old, 10).await.unwrap();
    let fresh = t.store.run(with_key("body")).await.unwrap();
    assert!(!fresh.existed && fresh.task.id != first.id, "its day is over");
}

pub async fn two_calls_with_one_key_at_once_make_one_task(t: TestStore) {
    let t = Arc::new(t);
    let calls = (0..8).map(|_| {
        let t = Arc::clone(&t);
        async move {
            let mut task = t.new_task(TaskKind::Agent);
            task.idempotency = key("body");
            t.store.run(task).await.unwrap().task.id
        }
    });
    let made = futures_util::future::join_all(calls).await;
    assert!(made.iter().all(|id| *id == made[0]), "{made:?}");
}
