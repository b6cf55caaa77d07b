//! A process that dies: another one takes over what it ran, and the dead one cannot write any more.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use matsu_core::job::{JobKind, JobState};
use matsu_core::ports::store::{ReadLeftRuns, ReadNodes, Store};
use matsu_core::slot::SlotLimits;
use matsu_core::task::{TaskKind, TaskStatus};
use matsu_runtime::runtime::Taken;
use matsu_runtime::tasks::Tasks;
use matsu_runtime::worker::Service;

use crate::faulty_store::{FaultyStore, Plan};
use crate::fixtures::*;

#[tokio::test(start_paused = true)]
async fn a_second_runtime_takes_over_from_one_that_died() {
    let (store, clock) = memory().await;
    let first = runtime(&store, clock);
    let service = Service::start(&first);
    let jobs = (0..4).map(|_| sleep_job(&clock, 30_000)).collect();
    let id = submit(&first, TaskKind::Research, jobs).await.id;
    clock.sleep(Duration::from_secs(5)).await;
    drop(service);
    clock.sleep(Duration::from_secs(60)).await;
    assert_eq!(Tasks::of(&first).read(&me(), &id).await.expect("a task").counts.running, 2, "no node has noticed yet");

    let second = runtime(&store, clock);
    let service = Service::start(&second);
    clock.sleep(Duration::from_secs(1)).await;
    let reaped = store.reap_node(&first.node(), clock.now()).await.expect("reaped");
    assert_eq!(reaped.len(), 2);
    let task = finished(&second, &id).await;
    assert_eq!(task.counts.completed, 4);
    let jobs = jobs_of(&store, &id).await;
    assert!(jobs.iter().all(|job| job.failures == 0), "a lost owner is no failure");
    service.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_agent_run_of_a_dead_process_waits_to_be_taken_over_and_keeps_its_output() {
    let (store, clock) = memory().await;
    let body = scripted(JobKind::AgentRun, |cx| async move {
        if cx.taken == Taken::TakenOver {
            return done();
        }
        cx.partial_output(&serde_json::json!({ "session": "abc" })).await.expect("written");
        std::future::pending().await
    });
    let runtime = runtime_with(&store, clock, SlotLimits::for_cores(1), bodies().with(body));
    let service = Service::start(&runtime);
    let id = submit(&runtime, TaskKind::Agent, vec![job(&clock, JobKind::AgentRun, "{}")]).await.id;
    until(&store, &clock, &id, JobState::Running).await;
    clock.sleep(Duration::from_secs(1)).await;
    drop(service);
    let dead = runtime.node();
    assert_eq!(store.reap_node(&dead, clock.now()).await.expect("reaped"), []);
    let job = only_job(&store, &id).await;
    assert_eq!((job.state, job.attempt, job.owner_node.as_ref()), (JobState::Running, 1, Some(&dead)));
    assert_eq!(job.output_json.as_deref(), Some(r#"{"session":"abc"}"#));
    let left = store.run(ReadLeftRuns).await.expect("runs");
    assert_eq!(left.iter().map(|run| &run.lease.job_id).collect::<Vec<_>>(), [&job.id]);
    assert!(store.run(ReadNodes).await.expect("nodes").is_empty(), "a node that has left takes part in nothing");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_was_taken_for_dead_starts_again_as_another() {
    let (inner, clock) = memory().await;
    let store: Arc<dyn Store> = FaultyStore::new(inner);
    let runtime = runtime(&store, clock);
    let service = Service::start(&runtime);
    let id = submit(&runtime, TaskKind::Research, vec![sleep_job(&clock, 30_000)]).await.id;
    clock.sleep(Duration::from_secs(5)).await;
    let lost = runtime.node();
    store.reap_node(&lost, clock.now()).await.expect("reaped");
    clock.sleep(Duration::from_secs(15)).await;
    assert_ne!(runtime.node(), lost);
    assert_eq!(store.run(ReadNodes).await.expect("nodes").len(), 1);
    let task = finished(&runtime, &id).await;
    assert_eq!(task.counts.completed, 1);
    service.stop().await;
    assert!(store.run(ReadNodes).await.expect("nodes").is_empty());
}

#[tokio::test(start_paused = true)]
async fn two_runtimes_share_the_limits_of_one_store() {
    let (store, clock) = memory().await;
    let (first, second) = (runtime(&store, clock), runtime(&store, clock));
    let services = [Service::start(&first), Service::start(&second)];
    let jobs = (0..10).map(|_| sleep_job(&clock, 10_000)).collect();
    let id = submit(&first, TaskKind::Research, jobs).await.id;
    let began = clock.now();
    for _ in 0..100 {
        clock.sleep(Duration::from_millis(500)).await;
        assert!(first.running_jobs() + second.running_jobs() <= 2);
    }
    finished(&first, &id).await;
    let took = clock.now().since(began);
    assert!(took >= Duration::from_secs(50) && took < Duration::from_secs(80), "{took:?}");
    for service in services {
        service.stop().await;
    }
}

/// A body that counts how often it was begun, and either asks a person or never ends.
fn counted(kind: JobKind, begun: &Arc<AtomicUsize>) -> Scripted {
    let begun = Arc::clone(begun);
    scripted(kind, move |cx| {
        begun.fetch_add(1, Ordering::SeqCst);
        async move {
            if cx.job.input_json.contains("ask") && cx.taken == Taken::Claimed {
                let _ = cx.ask("{}", std::future::pending::<()>()).await;
            }
            let is_again = cx.job.attempt > 1 || cx.taken == Taken::TakenOver;
            if is_again { done() } else { std::future::pending().await }
        }
    })
}

#[tokio::test(start_paused = true)]
async fn a_dispatcher_that_breaks_runs_no_attempt_twice() {
    let (inner, clock) = memory().await;
    let faulty = FaultyStore::new(inner);
    let store: Arc<dyn Store> = faulty.clone();
    let (runs, searches) = (Arc::default(), Arc::default());
    let bodies = bodies().with(counted(JobKind::AgentRun, &runs)).with(counted(JobKind::Search, &searches));
    let limits = SlotLimits { network_client: 9, ..SlotLimits::for_cores(1) };
    let runtime = runtime_with(&store, clock, limits, bodies);
    let service = Service::start(&runtime);
    let begin = async |kind, input: &str, state| {
        let id = submit(&runtime, TaskKind::Agent, vec![job(&clock, kind, input)]).await.id;
        until(&store, &clock, &id, state).await;
        id
    };
    let run = begin(JobKind::AgentRun, "{}", JobState::Running).await;
    let asking = begin(JobKind::AgentRun, r#"{"ask":1}"#, JobState::AwaitingInput).await;
    let search = begin(JobKind::Search, "{}", JobState::Running).await;
    faulty.set(Plan::Panics("FinishAndClaim", 1));
    let next = submit(&runtime, TaskKind::Agent, vec![sleep_job(&clock, 5)]).await.id;

    assert_eq!(finished(&runtime, &next).await.status, TaskStatus::Completed, "another dispatcher took its place");
    for id in [&run, &asking] {
        let job = until(&store, &clock, id, JobState::Completed).await;
        assert_eq!(job.attempt, 1, "the same attempt is taken over");
    }
    assert_eq!(runs.load(Ordering::SeqCst), 4, "each run was claimed once and taken over once");
    let job = until(&store, &clock, &search, JobState::Completed).await;
    assert_eq!((job.attempt, job.failures, searches.load(Ordering::SeqCst)), (2, 0, 2));
    service.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_end_that_was_lost_with_its_dispatcher_is_found_again() {
    let (inner, clock) = memory().await;
    let faulty = FaultyStore::new(inner);
    let store: Arc<dyn Store> = faulty.clone();
    let begun = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&begun);
    let body = scripted(JobKind::AgentRun, move |cx| {
        count.fetch_add(1, Ordering::SeqCst);
        async move {
            if cx.taken == Taken::Claimed {
                cx.runtime().clock().sleep(Duration::from_secs(2)).await;
            }
            done()
        }
    });
    let runtime = runtime_with(&store, clock, SlotLimits::for_cores(1), bodies().with(body));
    let service = Service::start(&runtime);
    let id = submit(&runtime, TaskKind::Agent, vec![job(&clock, JobKind::AgentRun, "{}")]).await.id;
    until(&store, &clock, &id, JobState::Running).await;
    faulty.set(Plan::Panics("FinishAndClaim", 1));
    let job = until(&store, &clock, &id, JobState::Completed).await;
    assert_eq!(job.attempt, 1);
    assert_eq!(begun.load(Ordering::SeqCst), 2, "claimed, then taken over");
    service.stop().await;
}
