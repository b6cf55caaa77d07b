//! Stop, pause, block, resume, shut down.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use matsu_core::job::{JobEnd, JobKind, JobState};
use matsu_core::ports::store::{ReadNodes, Steer};
use matsu_core::slot::SlotLimits;
use matsu_core::task::{StopMode, StopReason, TaskKind, TaskStatus};
use matsu_runtime::tasks::Tasks;
use matsu_runtime::worker::Service;
use matsu_runtime::{Runtime, RuntimeOptions, Workers};

use crate::fixtures::*;

#[tokio::test(start_paused = true)]
async fn a_graceful_stop_keeps_the_result_of_what_ends_in_time() {
    let (store, clock) = memory().await;
    let body = scripted(JobKind::Search, |cx| async move {
        cx.stop.stop_requested().await;
        cx.runtime().clock().sleep(Duration::from_secs(3)).await;
        JobEnd::Completed { output_json: r#"{"found":1}"#.to_owned() }
    });
    let runtime = runtime_with(&store, clock, SlotLimits::for_cores(1), bodies().with(body));
    let service = Service::start(&runtime);
    let jobs = (0..4).map(|_| job(&clock, JobKind::Search, "{}")).collect();
    let id = submit(&runtime, TaskKind::Research, jobs).await.id;
    clock.sleep(Duration::from_secs(1)).await;
    let report = stop(&runtime, &id, StopMode::Graceful, StopReason::Completed).await;
    assert_eq!((report.cancelled_queued, report.task.status), (2, TaskStatus::Completed));
    assert!((3_000..4_500).contains(&report.waited_ms), "{}", report.waited_ms);
    let jobs = jobs_of(&store, &id).await;
    let completed: Vec<_> = jobs.iter().filter(|job| job.state == JobState::Completed).collect();
    assert_eq!(completed.len(), 2);
    assert!(completed.iter().all(|job| job.output_json.as_deref() == Some(r#"{"found":1}"#)));
    let again = stop(&runtime, &id, StopMode::Immediate, StopReason::UserCancelled).await;
    assert!(again.was_terminal);
    service.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_graceful_stop_outlives_the_caller_that_asked_for_it() {
    let (store, clock) = memory().await;
    let runtime = runtime(&store, clock);
    let service = Service::start(&runtime);
    let input = r#"{"ms":3600000,"ignore_stop":true,"progress_every_ms":1000}"#;
    let id = submit(&runtime, TaskKind::Agent, vec![job(&clock, JobKind::Sleep, input)]).await.id;
    until(&store, &clock, &id, JobState::Running).await;
    let caller = CancellationToken::new();
    caller.cancel();
    let report = Tasks::of(&runtime).stop(&me(), &id, StopMode::Graceful, StopReason::UserCancelled, &caller).await;
    assert_eq!(report.expect("a report").task.status, TaskStatus::Running);
    let task = finished(&runtime, &id).await;
    assert_eq!(task.status, TaskStatus::Cancelled);
    let output = only_job(&store, &id).await.output_json;
    assert!(output.is_some_and(|output| output.contains("slept_ms")), "what it had is kept");
    service.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_immediate_stop_ends_the_task_at_once_and_the_bodies_soon() {
    let (store, clock) = memory().await;
    let runtime = runtime(&store, clock);
    let service = Service::start(&runtime);
    let jobs = (0..5).map(|_| sleep_job(&clock, 3_600_000)).collect();
    let id = submit(&runtime, TaskKind::Agent, jobs).await.id;
    clock.sleep(Duration::from_secs(1)).await;
    assert_eq!(runtime.running_jobs(), 2);
    let began = clock.now();
    let report = stop(&runtime, &id, StopMode::Immediate, StopReason::UserCancelled).await;
    assert_eq!((report.cancelled_queued, report.cancelled_running, clock.now()), (3, 2, began));
    assert_eq!(report.task.status, TaskStatus::Cancelled);
    clock.sleep(Duration::from_millis(200)).await;
    assert_eq!(runtime.running_jobs(), 0, "the bodies got the signal");
    assert!(jobs_of(&store, &id).await.iter().all(|job| job.output_json.is_none()));
    service.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_paused_task_is_not_claimed_and_goes_on_when_resumed() {
    let (store, clock) = memory().await;
    let runtime = runtime(&store, clock);
    let service = Service::start(&runtime);
    let jobs = (0..4).map(|_| sleep_job(&clock, 20_000)).collect();
    let id = submit(&runtime, TaskKind::Research, jobs).await.id;
    clock.sleep(Duration::from_secs(1)).await;
    Tasks::of(&runtime).steer(&me(), &id, Steer::Pause, Some("wait".to_owned())).await.expect("paused");
    clock.sleep(Duration::from_secs(600)).await;
    let paused = Tasks::of(&runtime).read(&me(), &id).await.expect("a task");
    assert_eq!((paused.status, paused.counts.queued), (TaskStatus::Paused, 4), "all are back in the queue");
    assert!(jobs_of(&store, &id).await.iter().all(|job| job.failures == 0));
    Tasks::of(&runtime).steer(&me(), &id, Steer::Resume, None).await.expect("resumed");
    let task = finished(&runtime, &id).await;
    assert_eq!(task.counts.completed, 4);
    service.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_paused_agent_run_is_cancelled_and_says_why() {
    let (store, clock) = memory().await;
    let body = scripted(JobKind::AgentRun, |cx| async move {
        cx.stop.stop_requested().await;
        JobEnd::Requeue { run_at: None }
    });
    let runtime = runtime_with(&store, clock, SlotLimits::for_cores(1), bodies().with(body));
    let service = Service::start(&runtime);
    let id = submit(&runtime, TaskKind::Agent, vec![job(&clock, JobKind::AgentRun, "{}")]).await.id;
    until(&store, &clock, &id, JobState::Running).await;
    Tasks::of(&runtime).steer(&me(), &id, Steer::Block, None).await.expect("blocked");
    let job = until(&store, &clock, &id, JobState::Cancelled).await;
    assert_eq!(job.error_code.as_deref(), Some("TASK_PAUSED"));
    service.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_clean_shutdown_gives_jobs_back_without_counting_a_failure() {
    let (store, clock) = memory().await;
    let (first, inputs) = (runtime(&store, clock), [r#"{"ms":60000}"#, r#"{"ms":60000,"ignore_stop":true}"#]);
    let service = Service::start(&first);
    let jobs = inputs.iter().map(|input| job(&clock, JobKind::Sleep, input)).collect();
    let id = submit(&first, TaskKind::Research, jobs).await.id;
    clock.sleep(Duration::from_secs(1)).await;
    let began = clock.now();
    service.stop().await;
    assert!(clock.now().since(began) <= matsu_core::limits::SHUTDOWN_GRACE);
    assert!(store.run(ReadNodes).await.expect("nodes").is_empty(), "it took leave");
    for job in jobs_of(&store, &id).await {
        assert_eq!((job.state, job.failures, job.attempt), (JobState::Queued, 0, 1));
    }
    let second = runtime(&store, clock);
    let service = Service::start(&second);
    assert_eq!(finished(&second, &id).await.counts.completed, 2);
    service.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_node_without_workers_serves_and_leaves_the_jobs_to_others() {
    let (store, clock) = memory().await;
    let options = RuntimeOptions::new(store.clone(), clock, SlotLimits::for_cores(1), bodies());
    let serving = Runtime::new(RuntimeOptions { workers: Workers::None, ..options });
    let service = Service::start(&serving);
    let id = submit(&serving, TaskKind::Agent, vec![sleep_job(&clock, 10)]).await.id;
    clock.sleep(Duration::from_secs(60)).await;
    assert_eq!(only_job(&store, &id).await.state, JobState::Queued);
    let working = runtime(&store, clock);
    let worker = Service::start(&working);
    assert_eq!(finished(&serving, &id).await.status, TaskStatus::Completed);
    worker.stop().await;
    service.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_node_that_does_not_claim_leaves_the_queue_alone() {
    let (store, clock) = memory().await;
    let runtime = runtime(&store, clock);
    runtime.pause_claiming();
    let service = Service::start(&runtime);
    let id = submit(&runtime, TaskKind::Agent, vec![sleep_job(&clock, 10)]).await.id;
    clock.sleep(Duration::from_secs(60)).await;
    assert_eq!(only_job(&store, &id).await.state, JobState::Queued);
    runtime.resume_claiming();
    assert_eq!(finished(&runtime, &id).await.status, TaskStatus::Completed);
    service.stop().await;
}
