//! Bodies that panic, fail, hang, ignore their orders, or are not there at all.

use std::time::Duration;

use matsu_core::job::{JobKind, JobState};
use matsu_core::task::{StopMode, StopReason, TaskKind, TaskStatus};

use crate::fixtures::*;
use matsu_runtime::tasks::Tasks;
use matsu_runtime::worker::Service;

async fn run_one(input: &str) -> (matsu_core::job::Job, Duration) {
    let (store, clock) = memory().await;
    let runtime = runtime(&store, clock);
    let service = Service::start(&runtime);
    let began = clock.now();
    let id = submit(&runtime, TaskKind::Agent, vec![job(&clock, JobKind::Sleep, input)]).await.id;
    finished(&runtime, &id).await;
    let took = clock.now().since(began);
    // The worker is none the worse for it.
    let next = submit(&runtime, TaskKind::Agent, vec![sleep_job(&clock, 5)]).await.id;
    assert_eq!(finished(&runtime, &next).await.status, TaskStatus::Completed);
    service.stop().await;
    (only_job(&store, &id).await, took)
}

#[tokio::test(start_paused = true)]
async fn a_panic_ends_the_attempt_and_never_the_worker() {
    let (job, took) = run_one(r#"{"ms":10,"panic":true}"#).await;
    assert_eq!((job.state, job.failures), (JobState::Failed, 4));
    assert_eq!(job.error_code.as_deref(), Some("JOB_PANICKED"));
    assert_eq!(job.error_message.as_deref(), Some("the input asked for a panic"));
    assert!(took >= Duration::from_secs(7), "one, two and four seconds between the attempts: {took:?}");
}

#[tokio::test(start_paused = true)]
async fn an_error_is_retried_with_pauses_that_double() {
    let (job, took) = run_one(r#"{"ms":10,"fail":"broke","fail_attempts":2}"#).await;
    assert_eq!((job.state, job.failures, job.attempt), (JobState::Completed, 2, 3));
    assert!(took >= Duration::from_millis(3_030) && took < Duration::from_millis(3_200), "{took:?}");
    let (job, _) = run_one(r#"{"ms":10,"fail":"broke"}"#).await;
    assert_eq!((job.state, job.failures), (JobState::Failed, 4));
    assert_eq!(job.error_message.as_deref(), Some("broke"));
}

#[tokio::test(start_paused = true)]
async fn a_retry_is_not_late_because_other_work_arrives() {
    let (store, clock) = memory().await;
    let runtime = runtime(&store, clock);
    let service = Service::start(&runtime);
    let input = r#"{"ms":10,"fail":"broke","fail_attempts":1}"#;
    let id = submit(&runtime, TaskKind::Agent, vec![job(&clock, JobKind::Sleep, input)]).await.id;
    clock.sleep(Duration::from_millis(500)).await;
    submit(&runtime, TaskKind::Agent, vec![sleep_job(&clock, 60_000)]).await;
    finished(&runtime, &id).await;
    let job = only_job(&store, &id).await;
    assert_eq!(job.state, JobState::Completed);
    let late = job.started_at.expect("started").since(job.run_at);
    assert!(late <= Duration::from_secs(1), "{late:?}");
    service.stop().await;
}

#[tokio::test(start_paused = true)]
async fn input_that_makes_no_sense_is_not_retried() {
    let (job, _) = run_one(r#"{"mss":10}"#).await;
    assert_eq!((job.state, job.failures), (JobState::Failed, 1));
    assert_eq!(job.error_code.as_deref(), Some("INVALID_PARAMS"));
}

#[tokio::test(start_paused = true)]
async fn a_body_over_its_time_is_failed_and_keeps_what_it_had() {
    let (job, took) = run_one(r#"{"ms":3600000,"run_seconds_max":10,"progress_every_ms":1000}"#).await;
    assert_eq!((job.state, job.error_code.as_deref()), (JobState::Failed, Some("JOB_TIMEOUT")));
    assert!(job.output_json.is_some_and(|output| output.contains("slept_ms")));
    assert!(took >= Duration::from_secs(10) && took <= Duration::from_secs(12), "{took:?}");
    let (job, took) = run_one(r#"{"ms":3600000,"run_seconds_max":10,"ignore_stop":true}"#).await;
    assert_eq!(job.error_code.as_deref(), Some("JOB_TIMEOUT"));
    assert!(took >= Duration::from_secs(15) && took <= Duration::from_secs(18), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_kind_without_a_body_is_left_to_a_node_that_has_one() {
    let (store, clock) = memory().await;
    let old = runtime(&store, clock);
    let service = Service::start(&old);
    let unknown = submit(&old, TaskKind::Agent, vec![job(&clock, JobKind::Verify, "{}")]).await.id;
    let known = submit(&old, TaskKind::Agent, vec![sleep_job(&clock, 5)]).await.id;
    assert_eq!(finished(&old, &known).await.status, TaskStatus::Completed, "what stands behind it is not held up");
    clock.sleep(Duration::from_secs(60)).await;
    let left = only_job(&store, &unknown).await;
    assert_eq!((left.state, left.attempt), (JobState::Queued, 0));

    let body = scripted(JobKind::Verify, |_| async { done() });
    let new = runtime_with(&store, clock, matsu_core::slot::SlotLimits::for_cores(1), bodies().with(body));
    let upgraded = Service::start(&new);
    assert_eq!(finished(&new, &unknown).await.status, TaskStatus::Completed);
    upgraded.stop().await;
    service.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_body_that_ignores_a_graceful_stop_is_taken_off_after_its_grace() {
    let (store, clock) = memory().await;
    let runtime = runtime(&store, clock);
    let service = Service::start(&runtime);
    let input = r#"{"ms":3600000,"ignore_stop":true}"#;
    let id = submit(&runtime, TaskKind::Agent, vec![job(&clock, JobKind::Sleep, input)]).await.id;
    until(&store, &clock, &id, JobState::Running).await;
    let report = stop(&runtime, &id, StopMode::Graceful, StopReason::UserCancelled).await;
    assert_eq!(report.task.status, TaskStatus::Cancelled);
    assert!(!report.escalated, "the node's own clock was enough");
    assert!((35_000..39_000).contains(&report.waited_ms), "{}", report.waited_ms);
    assert_eq!(only_job(&store, &id).await.state, JobState::Cancelled);
    assert_eq!(runtime.running_jobs(), 0);
    service.stop().await;
}

#[tokio::test(start_paused = true)]
async fn progress_is_written_once_a_second_and_the_last_word_counts() {
    let (store, clock) = memory().await;
    let runtime = runtime(&store, clock);
    let service = Service::start(&runtime);
    let input = r#"{"ms":10000,"progress_every_ms":10}"#;
    let id = submit(&runtime, TaskKind::Agent, vec![job(&clock, JobKind::Sleep, input)]).await.id;
    let task = finished(&runtime, &id).await;
    assert!((10..=16).contains(&task.revision), "a thousand notes became {} revisions", task.revision);
    assert_eq!(only_job(&store, &id).await.progress_json.as_deref(), Some(r#"{"slept_ms":10000}"#));
    service.stop().await;
}

#[tokio::test(start_paused = true)]
async fn progress_of_a_body_that_falls_silent_is_shown_all_the_same() {
    let (store, clock) = memory().await;
    let body = scripted(JobKind::Search, |cx| async move {
        cx.progress("first").await;
        cx.progress("second").await;
        cx.runtime().clock().sleep(Duration::from_secs(600)).await;
        done()
    });
    let runtime = runtime_with(&store, clock, matsu_core::slot::SlotLimits::for_cores(1), bodies().with(body));
    let service = Service::start(&runtime);
    let id = submit(&runtime, TaskKind::Agent, vec![job(&clock, JobKind::Search, "{}")]).await.id;
    clock.sleep(Duration::from_secs(3)).await;
    assert_eq!(only_job(&store, &id).await.progress_json.as_deref(), Some(r#"{"message":"second"}"#));
    service.stop().await;
}

#[tokio::test(start_paused = true)]
async fn progress_of_all_jobs_of_a_task_is_shown_once_a_second() {
    let (store, clock) = memory().await;
    let limits = matsu_core::slot::SlotLimits { network_client: 20, ..matsu_core::slot::SlotLimits::for_cores(1) };
    let runtime = runtime_with(&store, clock, limits, bodies());
    let service = Service::start(&runtime);
    let input = r#"{"ms":10000,"progress_every_ms":10}"#;
    let jobs = (0..20).map(|_| job(&clock, JobKind::Sleep, input)).collect();
    let id = submit(&runtime, TaskKind::Research, jobs).await.id;
    clock.sleep(Duration::from_secs(5)).await;
    let revision = Tasks::of(&runtime).read(&me(), &id).await.expect("a task").revision;
    assert!((5..=9).contains(&revision), "20 jobs that spoke for five seconds made {revision} revisions");
    let shown = jobs_of(&store, &id).await;
    assert!(shown.iter().all(|job| job.progress_json.is_some()), "and every message is delivered");
    let task = finished(&runtime, &id).await;
    assert_eq!(task.counts.completed, 20);
    let last = jobs_of(&store, &id).await;
    assert!(last.iter().all(|job| job.progress_json.as_deref() == Some(r#"{"slept_ms":10000}"#)), "{last:?}");
    service.stop().await;
}
