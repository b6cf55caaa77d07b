//! What the tests have in common: a store, a runtime on it, jobs, and a small source of chance.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use matsu_core::clock::{Clock, Timestamp};
use matsu_core::id::{JobId, TaskId};
use matsu_core::job::{Job, JobEnd, JobKind, JobState, NewJob, Priority};
use matsu_core::page::PageRequest;
use matsu_core::ports::store::{JobFilter, ListJobs, Store};
use matsu_core::principal::Principal;
use matsu_core::slot::{Slot, SlotLimits};
use matsu_core::task::{NewTask, StopMode, StopReason, Task, TaskKind};
use matsu_runtime::bodies::{Noop, Sleep};
use matsu_runtime::tasks::Tasks;
use matsu_runtime::tasks::status::{WaitFor, WaitReply, WaitRequest, Waits};
use matsu_runtime::{Bodies, JobBody, JobContext, Runtime, RuntimeOptions, StopReport};
use matsu_store::{OpenOptions, Synchronous, open};

pub const START: Timestamp = Timestamp::from_millis(1_800_000_000_000);

pub fn me() -> Principal {
    Principal::local_user()
}

pub async fn memory() -> (Arc<dyn Store>, Clock) {
    let clock = Clock::starting_at(START);
    let opened = open("memory:", OpenOptions { synchronous: Synchronous::Normal, clock }).await;
    (opened.expect("a memory store opens").store, clock)
}

pub fn bodies() -> Bodies {
    Bodies::default().with(Noop).with(Sleep)
}

pub fn runtime_with(store: &Arc<dyn Store>, clock: Clock, limits: SlotLimits, bodies: Bodies) -> Runtime {
    Runtime::new(RuntimeOptions::new(Arc::clone(store), clock, limits, bodies))
}

pub fn runtime(store: &Arc<dyn Store>, clock: Clock) -> Runtime {
    runtime_with(store, clock, SlotLimits::for_cores(2), bodies())
}

/// A research job for the two search workers.
pub fn job(clock: &Clock, kind: JobKind, input: &str) -> NewJob {
    let now = clock.now();
    NewJob {
        id: JobId::mint(now),
        kind,
        priority: Priority::Medium,
        slot: Slot::NetworkClient,
        input_json: input.to_owned(),
        cause_id: None,
        run_at: now,
        dedupe_key: None,
    }
}

pub fn sleep_job(clock: &Clock, ms: u64) -> NewJob {
    job(clock, JobKind::Sleep, &format!(r#"{{"ms":{ms}}}"#))
}

pub fn task(clock: &Clock, kind: TaskKind, jobs: Vec<NewJob>) -> NewTask {
    let now = clock.now();
    NewTask {
        id: TaskId::mint(now),
        kind,
        owner: me(),
        project_id: None,
        title: "a task".to_owned(),
        config_json: "{}".to_owned(),
        budget: Vec::new(),
        assignee: None,
        parent_id: None,
        depends_on: Vec::new(),
        jobs,
        idempotency: None,
        created_at: now,
    }
}

pub async fn submit(runtime: &Runtime, kind: TaskKind, jobs: Vec<NewJob>) -> Task {
    Tasks::of(runtime).submit(task(runtime.clock(), kind, jobs)).await.expect("submitted").task
}

pub fn wait_request(ids: &[TaskId], wait_for: WaitFor, hold: Duration) -> WaitRequest {
    WaitRequest {
        owner: me(),
        ids: ids.to_vec(),
        since: Some(ids.iter().map(|id| (id.clone(), 1)).collect()),
        wait_for,
        hold,
        hold_max: Some(Duration::from_secs(86_400)),
        instance: None,
        interrupt: None,
    }
}

/// Waits until nothing of the task is left unfinished, or an hour.
pub async fn finished(runtime: &Runtime, id: &TaskId) -> Task {
    let request = wait_request(std::slice::from_ref(id), WaitFor::All, Duration::from_secs(3_600));
    let reply: WaitReply =
        Waits::of(runtime).wait_for_tasks(request, &CancellationToken::new()).await.expect("a reply");
    (*reply.tasks[0].task).clone()
}

pub async fn stop(runtime: &Runtime, id: &TaskId, mode: StopMode, reason: StopReason) -> StopReport {
    Tasks::of(runtime).stop(&me(), id, mode, reason, &CancellationToken::new()).await.expect("a report")
}

pub async fn jobs_of(store: &Arc<dyn Store>, id: &TaskId) -> Vec<Job> {
    let filter = JobFilter { task_id: Some(id.clone()), ..JobFilter::default() };
    store.run(ListJobs { filter: filter.clone(), page: PageRequest::new(None, Some(200)) }).await.expect("jobs").items
}

pub async fn only_job(store: &Arc<dyn Store>, id: &TaskId) -> Job {
    jobs_of(store, id).await.pop().expect("a job")
}

/// Lets time pass until the job is in this state.
pub async fn until(store: &Arc<dyn Store>, clock: &Clock, id: &TaskId, state: JobState) -> Job {
    for _ in 0..10_000 {
        let job = only_job(store, id).await;
        if job.state == state {
            return job;
        }
        clock.sleep(Duration::from_millis(100)).await;
    }
    panic!("the job never became {state}: {:?}", only_job(store, id).await);
}

type Run = dyn Fn(JobContext) -> Pin<Box<dyn Future<Output = JobEnd> + Send>> + Send + Sync;

/// A body made of a closure.
pub struct Scripted {
    kind: JobKind,
    run: Box<Run>,
}

pub fn scripted<F>(kind: JobKind, run: impl Fn(JobContext) -> F + Send + Sync + 'static) -> Scripted
where
    F: Future<Output = JobEnd> + Send + 'static,
{
    Scripted { kind, run: Box::new(move |cx| Box::pin(run(cx))) }
}

#[async_trait]
impl JobBody for Scripted {
    fn kind(&self) -> JobKind {
        self.kind
    }

    fn run_seconds_max(&self, _job: &Job) -> Option<u32> {
        None
    }

    async fn run(&self, cx: JobContext) -> JobEnd {
        (self.run)(cx).await
    }
}

pub fn done() -> JobEnd {
    JobEnd::Completed { output_json: "{}".to_owned() }
}

/// A source of chance that a seed repeats.
#[derive(Clone, Debug)]
pub struct Chance(u64);

impl Chance {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    pub fn in_hundred(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}
