//! A store that is away for a while, and one that loses its answers: nothing is lost, nothing is done twice.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use matsu_core::error_code::ErrorCode;
use matsu_core::job::{JobKind, JobState};
use matsu_core::ports::store::{ReadNodes, Store};
use matsu_core::slot::SlotLimits;
use matsu_core::task::{TaskKind, TaskStatus};
use matsu_runtime::WaitError;
use matsu_runtime::tasks::status::{ReturnedBecause, WaitFor, Waits};
use matsu_runtime::worker::Service;

use crate::faulty_store::{FaultyStore, Plan};
use crate::fixtures::*;

#[tokio::test(start_paused = true)]
async fn ends_are_kept_while_the_store_is_away() {
    let (inner, clock) = memory().await;
    let faulty = FaultyStore::new(inner);
    let store: Arc<dyn Store> = faulty.clone();
    let runtime = runtime(&store, clock);
    let service = Service::start(&runtime);
    let jobs = (0..6).map(|_| sleep_job(&clock, 2_000)).collect();
    let id = submit(&runtime, TaskKind::Agent, jobs).await.id;
    clock.sleep(Duration::from_secs(1)).await;
    faulty.set(Plan::Down);
    clock.sleep(Duration::from_secs(300)).await;
    let before = faulty.calls();
    clock.sleep(Duration::from_secs(60)).await;
    assert!(faulty.calls() - before < 300, "it is asked now and then, not all the time");
    faulty.set(Plan::Nothing);
    let task = finished(&runtime, &id).await;
    assert_eq!(task.status, TaskStatus::Completed);
    let jobs = jobs_of(&store, &id).await;
    assert!(jobs.iter().all(|job| (job.state, job.attempt, job.failures) == (JobState::Completed, 1, 0)), "{jobs:?}");
    service.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_claim_whose_answer_was_lost_is_run_all_the_same_and_once() {
    let (inner, clock) = memory().await;
    let faulty = FaultyStore::new(inner);
    let store: Arc<dyn Store> = faulty.clone();
    let runs = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&runs);
    let body = scripted(JobKind::Search, move |cx| {
        counter.fetch_add(1, Ordering::SeqCst);
        async move {
            cx.runtime().clock().sleep(Duration::from_secs(1)).await;
            done()
        }
    });
    let runtime = runtime_with(&store, clock, SlotLimits::for_cores(1), bodies().with(body));
    let service = Service::start(&runtime);
    clock.sleep(Duration::from_secs(1)).await;
    faulty.set(Plan::AnswerLost("FinishAndClaim", 1));
    let jobs = (0..5).map(|_| job(&clock, JobKind::Search, "{}")).collect();
    let id = submit(&runtime, TaskKind::Agent, jobs).await.id;
    clock.sleep(Duration::from_millis(1_200)).await;
    // Now the answer to ends and claims together.
    faulty.set(Plan::AnswerLost("FinishAndClaim", 1));
    let task = finished(&runtime, &id).await;
    assert_eq!(task.counts.completed, 5);
    assert_eq!(runs.load(Ordering::SeqCst), 5);
    assert!(jobs_of(&store, &id).await.iter().all(|job| job.attempt == 1));
    service.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_wait_holds_on_through_an_outage_and_reports_one_that_lasts() {
    let (inner, clock) = memory().await;
    let faulty = FaultyStore::new(inner);
    let store: Arc<dyn Store> = faulty.clone();
    let runtime = runtime(&store, clock);
    let service = Service::start(&runtime);
    let id = submit(&runtime, TaskKind::Agent, vec![sleep_job(&clock, 20_000)]).await.id;
    let caller = CancellationToken::new();
    faulty.set(Plan::Down);
    let request = || wait_request(std::slice::from_ref(&id), WaitFor::All, Duration::from_secs(10));
    match Waits::of(&runtime).wait_for_tasks(request(), &caller).await {
        Err(WaitError::Task(error)) => assert_eq!(error.code(), ErrorCode::StoreUnavailable),
        other => panic!("{other:?}"),
    }
    let back = async {
        clock.sleep(Duration::from_secs(5)).await;
        faulty.set(Plan::Nothing);
    };
    let (reply, ()) = tokio::join!(Waits::of(&runtime).wait_for_tasks(request(), &caller), back);
    assert_eq!(reply.expect("a reply").returned_because, ReturnedBecause::Timeout);
    assert_eq!(finished(&runtime, &id).await.status, TaskStatus::Completed);
    service.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_node_registers_as_soon_as_the_store_is_there() {
    let (inner, clock) = memory().await;
    let faulty = FaultyStore::new(inner);
    let store: Arc<dyn Store> = faulty.clone();
    faulty.set(Plan::Down);
    let runtime = runtime(&store, clock);
    let service = Service::start(&runtime);
    clock.sleep(Duration::from_secs(60)).await;
    faulty.set(Plan::AnswerLost("register_node", 1));
    clock.sleep(Duration::from_secs(20)).await;
    let id = submit(&runtime, TaskKind::Agent, vec![sleep_job(&clock, 10)]).await.id;
    assert_eq!(finished(&runtime, &id).await.status, TaskStatus::Completed);
    assert_eq!(store.run(ReadNodes).await.expect("nodes").len(), 1);
    service.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_during_an_outage_ends_in_time() {
    let (inner, clock) = memory().await;
    let faulty = FaultyStore::new(Arc::clone(&inner));
    let store: Arc<dyn Store> = faulty.clone();
    let runtime = runtime(&store, clock);
    let service = Service::start(&runtime);
    let id = submit(&runtime, TaskKind::Research, vec![sleep_job(&clock, 60_000)]).await.id;
    clock.sleep(Duration::from_secs(1)).await;
    faulty.set(Plan::Down);
    let began = clock.now();
    service.stop().await;
    assert!(clock.now().since(began) <= Duration::from_secs(11));
    let left = only_job(&inner, &id).await;
    assert_eq!(left.state, JobState::Running, "the node that finds it dead settles it");
    inner.reap_node(&runtime.node(), clock.now()).await.expect("reaped");
    assert_eq!(only_job(&inner, &id).await.state, JobState::Queued);
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_ends_in_time_while_the_store_hangs() {
    for ignore_stop in [false, true] {
        let (inner, clock) = memory().await;
        let faulty = FaultyStore::new(inner);
        let store: Arc<dyn Store> = faulty.clone();
        let runtime = runtime(&store, clock);
        let service = Service::start(&runtime);
        let input = format!(r#"{{"ms":3600000,"ignore_stop":{ignore_stop}}}"#);
        let jobs = (0..2).map(|_| job(&clock, JobKind::Sleep, &input)).collect();
        let id = submit(&runtime, TaskKind::Agent, jobs).await.id;
        until(&store, &clock, &id, JobState::Running).await;
        faulty.set(Plan::Hangs);
        // Long enough that every part of the runtime hangs in a call.
        clock.sleep(Duration::from_secs(20)).await;
        let began = clock.instant();
        service.stop().await;
        let took = clock.instant() - began;
        assert!(took <= matsu_core::limits::SHUTDOWN_GRACE - matsu_core::limits::LINGER, "{took:?}");
    }
}
