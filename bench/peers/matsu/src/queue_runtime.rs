//! A runtime on an open store, and the tasks and jobs the measurements put into it.

use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;

use anyhow::{Result, bail};
use async_trait::async_trait;
use bench_peer::{Durability, Stamp, payload_text};
use matsu_core::clock::Clock;
use matsu_core::id::{JobId, TaskId};
use matsu_core::job::{Job, JobEnd, JobKind, NewJob, Priority};
use matsu_core::ports::store::Store;
use matsu_core::principal::Principal;
use matsu_core::slot::{Slot, SlotLimits};
use matsu_core::task::{NewTask, TaskKind};
use matsu_runtime::bodies::Noop;
use matsu_runtime::tasks::status::Waits;
use matsu_runtime::tasks::Tasks;
use matsu_runtime::{Bodies, JobBody, JobContext, Runtime, RuntimeOptions, WaitFor, WaitRequest};
use matsu_store::{OpenOptions, Synchronous};
use tokio_util::sync::CancellationToken;

pub const SLOT: Slot = Slot::NetworkClient;
/// What the runtime takes in one call.
pub const JOBS_PER_CALL: usize = 100;
const FOREVER: Duration = Duration::from_secs(3_600);

pub struct QueueRuntime {
    pub runtime: Runtime,
    pub owner: Principal,
    payload_bytes: usize,
}

impl QueueRuntime {
    pub async fn open(url: &str, durability: Durability, payload_bytes: usize, workers: usize) -> Result<Self> {
        Self::with_bodies(url, durability, payload_bytes, workers, Bodies::default().with(Noop)).await
    }

    /// Each job says how long it took from the stamp in its input to its first line.
    pub async fn reporting(
        url: &str,
        durability: Durability,
        payload_bytes: usize,
        workers: usize,
        latencies: Sender<u64>,
    ) -> Result<Self> {
        let bodies = Bodies::default().with(Reporting { latencies });
        Self::with_bodies(url, durability, payload_bytes, workers, bodies).await
    }

    async fn with_bodies(
        url: &str,
        durability: Durability,
        payload_bytes: usize,
        workers: usize,
        bodies: Bodies,
    ) -> Result<Self> {
        let clock = Clock::system();
        let synchronous = match durability {
            Durability::Normal => Synchronous::Normal,
            Durability::Full => Synchronous::Full,
        };
        let opened = matsu_store::open(url, OpenOptions { synchronous, clock }).await?;
        let mut limits = SlotLimits::for_cores(2);
        limits.network_client = u32::try_from(workers)?;
        let runtime = Runtime::new(RuntimeOptions::new(opened.store, clock, limits, bodies));
        Ok(Self { runtime, owner: Principal::local_user(), payload_bytes })
    }

    pub fn store(&self) -> &Arc<dyn Store> {
        self.runtime.store()
    }

    pub fn job(&self) -> NewJob {
        let now = self.runtime.clock().now();
        NewJob {
            id: JobId::mint(now),
            kind: JobKind::Noop,
            priority: Priority::Medium,
            slot: SLOT,
            input_json: format!("{{\"stamp\":{},\"text\":\"{}\"}}", Stamp::now().0, payload_text(self.payload_bytes)),
            cause_id: None,
            run_at: now,
            dedupe_key: None,
        }
    }

    pub fn jobs(&self, count: usize) -> Vec<NewJob> {
        (0..count).map(|_| self.job()).collect()
    }

    pub async fn submit(&self, kind: TaskKind, jobs: Vec<NewJob>) -> Result<TaskId> {
        let now = self.runtime.clock().now();
        let task = NewTask {
            id: TaskId::mint(now),
            kind,
            owner: self.owner.clone(),
            project_id: None,
            title: "bench".to_owned(),
            config_json: "{}".to_owned(),
            budget: Vec::new(),
            assignee: None,
            parent_id: None,
            depends_on: Vec::new(),
            jobs,
            idempotency: None,
            created_at: now,
        };
        Ok(Tasks::of(&self.runtime).submit(task).await?.task.id)
    }

    /// Returns once every job of these tasks has ended and that is committed.
    pub async fn wait_for_all(&self, ids: Vec<TaskId>) -> Result<()> {
        let request = WaitRequest {
            owner: self.owner.clone(),
            since: Some(ids.iter().map(|id| (id.clone(), 1)).collect()),
            ids,
            wait_for: WaitFor::All,
            hold: FOREVER,
            hold_max: Some(FOREVER),
            instance: None,
            interrupt: None,
        };
        let reply = Waits::of(&self.runtime).wait_for_tasks(request, &CancellationToken::new()).await?;
        if reply.tasks.iter().any(|view| view.task.counts.unfinished() > 0) {
            bail!("the wait for all jobs ended before they did");
        }
        Ok(())
    }

    /// What a status call does: one look, no hold.
    pub async fn status(&self, id: &TaskId) -> Result<i64> {
        let request = WaitRequest {
            owner: self.owner.clone(),
            since: None,
            ids: vec![id.clone()],
            wait_for: WaitFor::Any,
            hold: Duration::ZERO,
            hold_max: None,
            instance: None,
            interrupt: None,
        };
        let reply = Waits::of(&self.runtime).wait_for_tasks(request, &CancellationToken::new()).await?;
        Ok(reply.tasks.iter().map(|view| view.task.revision).sum())
    }
}

struct Reporting {
    latencies: Sender<u64>,
}

#[async_trait]
impl JobBody for Reporting {
    fn kind(&self) -> JobKind {
        JobKind::Noop
    }

    fn run_seconds_max(&self, _job: &Job) -> Option<u32> {
        None
    }

    async fn run(&self, cx: JobContext) -> JobEnd {
        let now = Stamp::now().0;
        let stamp = cx.job.input_json.split(['{', ':', ',']).find_map(|part| part.parse::<u64>().ok());
        // The receiver only goes away at the end of the measurement.
        let _ = self.latencies.send(now - stamp.unwrap_or(now));
        JobEnd::Completed { output_json: "{}".to_owned() }
    }
}
