//! Many tasks on two workers: nothing lost, stuck or completed twice, and the start order exact.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use matsu_core::clock::{Clock, Timestamp};
use matsu_core::id::{JobId, TaskId};
use matsu_core::job::{JobKind, JobState, Priority};
use matsu_core::slot::SlotLimits;
use matsu_core::task::{StopMode, StopReason, TaskKind};
use matsu_store::{OpenOptions, Synchronous, open};

use crate::fixtures::*;
use matsu_runtime::tasks::Tasks;
use matsu_runtime::worker::Service;

/// What each job wrote down when it started, and how often it was completed.
#[derive(Default)]
struct Record {
    started: Vec<(JobId, i64)>,
    running_now: usize,
    running_max: usize,
}

fn recording(record: &Arc<Mutex<Record>>) -> Scripted {
    let record = Arc::clone(record);
    scripted(JobKind::Search, move |cx| {
        let record = Arc::clone(&record);
        async move {
            {
                let mut record = record.lock().expect("a record");
                record.started.push((cx.job.id.clone(), cx.job.attempt));
                record.running_now += 1;
                record.running_max = record.running_max.max(record.running_now);
            }
            let ms: u64 = cx.job.input_json.parse().unwrap_or(100);
            let stopped = tokio::select! {
                biased;
                _ = cx.stop.stop_requested() => true,
                () = cx.runtime().clock().sleep(Duration::from_millis(ms)) => false,
            };
            record.lock().expect("a record").running_now -= 1;
            if stopped { cx.stopped() } else { done() }
        }
    })
}

#[tokio::test(start_paused = true)]
async fn ten_tasks_of_twenty_jobs_under_random_cancels() {
    for seed in 0..8 {
        println!("seed {seed}");
        many_tasks(seed).await;
    }
}

async fn many_tasks(seed: u64) {
    let mut chance = Chance::new(seed);
    let (store, clock) = memory().await;
    let record = Arc::new(Mutex::new(Record::default()));
    let runtime = runtime_with(&store, clock, SlotLimits::for_cores(2), bodies().with(recording(&record)));
    let service = Service::start(&runtime);
    let mut tasks = Vec::new();
    for _ in 0..10 {
        let jobs = (0..20).map(|_| job(&clock, JobKind::Search, &(10 + chance.below(400)).to_string())).collect();
        tasks.push(submit(&runtime, TaskKind::Agent, jobs).await.id);
    }
    for _ in 0..6 {
        clock.sleep(Duration::from_millis(chance.below(3_000))).await;
        let id = tasks[chance.below(10) as usize].clone();
        let mode = if chance.in_hundred(50) { StopMode::Graceful } else { StopMode::Immediate };
        let stop =
            Tasks::of(&runtime).stop(&me(), &id, mode, StopReason::UserCancelled, &CancellationToken::new()).await;
        assert!(stop.expect("a report").task.status.is_terminal());
    }
    let mut completed = 0;
    for id in &tasks {
        let task = finished(&runtime, id).await;
        assert!(task.status.is_terminal(), "seed {seed}: {task:?}");
        assert_eq!(task.counts.total(), 20);
        let jobs = jobs_of(&store, id).await;
        assert!(jobs.iter().all(|job| job.state.is_finished()), "seed {seed}");
        completed += jobs.iter().filter(|job| job.state == JobState::Completed).count();
    }
    service.stop().await;
    let record = record.lock().expect("a record");
    let mut starts: HashMap<&JobId, usize> = HashMap::new();
    for (id, _) in &record.started {
        *starts.entry(id).or_default() += 1;
    }
    assert!(starts.values().all(|times| *times == 1), "seed {seed}: a job started twice");
    assert!(completed <= record.started.len() && completed > 0, "seed {seed}");
    assert_eq!(runtime.running_jobs(), 0);
    assert_eq!(store.hub().sleepers(), 0);
}

#[tokio::test(start_paused = true)]
async fn jobs_start_by_priority_then_age_then_insertion() {
    let (store, clock) = memory().await;
    let record = Arc::new(Mutex::new(Record::default()));
    let runtime = runtime_with(&store, clock, SlotLimits::for_cores(2), bodies().with(recording(&record)));
    let mut expected: Vec<(Priority, Timestamp, usize, JobId)> = Vec::new();
    let mut chance = Chance::new(7);
    for call in 0..10 {
        let mut jobs: Vec<_> = (0..20).map(|_| job(&clock, JobKind::Search, "100")).collect();
        for (n, job) in jobs.iter_mut().enumerate() {
            job.priority = Priority::ALL[chance.below(3) as usize];
            expected.push((job.priority, clock.now(), call * 20 + n, job.id.clone()));
        }
        submit(&runtime, TaskKind::Research, jobs).await;
        clock.sleep(Duration::from_millis(chance.below(2) * 5)).await;
    }
    let service = Service::start(&runtime);
    clock.sleep(Duration::from_secs(60)).await;
    service.stop().await;
    expected.sort_by_key(|(priority, at, n, _)| (priority.rank(), *at, *n));
    let expected: Vec<JobId> = expected.into_iter().map(|(_, _, _, id)| id).collect();
    let record = record.lock().expect("a record");
    let started: Vec<JobId> = record.started.iter().map(|(id, _)| id.clone()).collect();
    assert_eq!(started, expected);
    assert_eq!(record.running_max, 2, "two workers, both busy, never a third");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn on_real_threads_nothing_is_lost_either() {
    let clock = Clock::system();
    let opened = open("memory:", OpenOptions { synchronous: Synchronous::Normal, clock }).await;
    let store = opened.expect("a memory store").store;
    let runtime = runtime(&store, clock);
    let service = Service::start(&runtime);
    let mut callers = JoinSet::new();
    for _ in 0..20 {
        let runtime = runtime.clone();
        callers.spawn(async move {
            for _ in 0..5 {
                let jobs = (0..10).map(|_| job(runtime.clock(), JobKind::Noop, "{}")).collect();
                let id = submit(&runtime, TaskKind::Agent, jobs).await.id;
                let task = finished(&runtime, &id).await;
                assert_eq!((task.counts.completed, task.counts.total()), (10, 10));
            }
        });
    }
    while let Some(caller) = callers.join_next().await {
        caller.expect("no caller waits in vain");
    }
    service.stop().await;
    assert_eq!(store.hub().sleepers(), 0);
}

#[tokio::test(start_paused = true)]
async fn work_that_arrives_while_the_dispatcher_sleeps_starts_at_once() {
    let (store, clock) = memory().await;
    let runtime = runtime(&store, clock);
    let service = Service::start(&runtime);
    clock.sleep(Duration::from_secs(33)).await;
    let began = clock.now();
    let id: TaskId = submit(&runtime, TaskKind::Agent, vec![job(&clock, JobKind::Noop, "{}")]).await.id;
    let task = finished(&runtime, &id).await;
    assert!(task.status.is_terminal());
    assert_eq!(clock.now(), began, "no interval was waited for");
    service.stop().await;
}

/// While every claim finds a next job, delayed ones are looked for now and then only.
#[tokio::test(start_paused = true)]
async fn a_delayed_job_gets_in_line_although_all_workers_are_busy() {
    let (store, clock) = memory().await;
    let record = Arc::new(Mutex::new(Record::default()));
    let runtime = runtime_with(&store, clock, SlotLimits::for_cores(2), bodies().with(recording(&record)));
    let mut jobs: Vec<_> = (0..80).map(|_| job(&clock, JobKind::Search, "10")).collect();
    jobs[79].run_at = clock.now().plus(Duration::from_millis(100));
    jobs[79].priority = Priority::High;
    let delayed = jobs[79].id.clone();
    let task = submit(&runtime, TaskKind::Agent, jobs).await.id;
    let service = Service::start(&runtime);
    finished(&runtime, &task).await;
    service.stop().await;
    let record = record.lock().expect("a record");
    let place = record.started.iter().position(|(id, _)| *id == delayed).expect("it ran");
    let workers = record.running_max;
    // Ten turns of all workers until it is due, five more until it is looked for.
    assert!((10 * workers..=16 * workers).contains(&place), "started as number {place} on {workers} workers");
}
