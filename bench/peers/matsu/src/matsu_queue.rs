//! How each measurement is put to Matsu: through its runtime, as a server in the same process would.
//!
//! Enqueueing is `Runtime::enqueue` into a task that is there; workers are the slot's limit; the end of a throughput
//! run is the runtime's own wait, which returns after the last commit and costs nothing before it.

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use bench_peer::{Answer, Durability, How, LatencyLog, Order, Queue, Sample};
use matsu_core::id::TaskId;
use matsu_core::job::Priority;
use matsu_core::ports::store::CountUnfinished;
use matsu_core::task::TaskKind;
use tokio::runtime::Runtime;

use crate::dispatching;
use crate::long_history;
use crate::queue_runtime::{JOBS_PER_CALL, QueueRuntime};
use crate::scratch_database::ScratchDatabase;
use matsu_runtime::tasks::Tasks;
use matsu_runtime::worker::Service;

enum Place {
    Sqlite(String),
    Postgres(String),
    Memory,
}

struct MatsuQueue {
    executor: Runtime,
    place: Place,
    durability: Durability,
    payload_bytes: usize,
}

pub fn open_sqlite(order: &Order) -> Result<Box<dyn Queue>> {
    open(order, Place::Sqlite(order.store.clone()))
}

pub fn open_postgres(order: &Order) -> Result<Box<dyn Queue>> {
    open(order, Place::Postgres(order.store.clone()))
}

pub fn open_memory(order: &Order) -> Result<Box<dyn Queue>> {
    open(order, Place::Memory)
}

fn open(order: &Order, place: Place) -> Result<Box<dyn Queue>> {
    let (durability, payload_bytes) = (order.durability, order.payload_bytes);
    Ok(Box::new(MatsuQueue { executor: Runtime::new()?, place, durability, payload_bytes }))
}

impl MatsuQueue {
    /// Runs `measure` on a fresh store's address, on a thread of the executor, as a server's handler would.
    fn on_fresh<F, T>(&self, measure: impl FnOnce(String) -> F) -> Result<T>
    where
        F: Future<Output = Result<T>> + Send + 'static,
        T: Send + 'static,
    {
        let database = match &self.place {
            Place::Postgres(server) => Some(self.executor.block_on(ScratchDatabase::create(server))?),
            Place::Sqlite(_) | Place::Memory => None,
        };
        let url = match (&database, &self.place) {
            (Some(database), _) => database.url()?,
            (None, Place::Sqlite(path)) => format!("sqlite:{path}"),
            (None, _) => "memory:".to_owned(),
        };
        let measure = measure(url);
        let measured = self.executor.block_on(async { tokio::spawn(measure).await })?;
        if let Some(database) = database {
            self.executor.block_on(database.drop())?;
        }
        measured
    }
}

impl Queue for MatsuQueue {
    fn enqueue(&mut self, jobs: usize, how: How) -> Result<Answer> {
        let (durability, payload_bytes) = (self.durability, self.payload_bytes);
        let elapsed = self.on_fresh(|url| async move {
            let queue_runtime = Arc::new(QueueRuntime::open(&url, durability, payload_bytes, 2).await?);
            enqueue(&queue_runtime, jobs, how).await
        })?;
        Ok(Answer::Done(Sample::timed(jobs, elapsed)))
    }

    fn drain(&mut self, jobs: usize, workers: usize) -> Result<Answer> {
        let (durability, payload_bytes) = (self.durability, self.payload_bytes);
        let elapsed = self.on_fresh(|url| async move {
            let queue_runtime = QueueRuntime::open(&url, durability, payload_bytes, workers).await?;
            drain(&queue_runtime, jobs).await
        })?;
        Ok(Answer::Done(Sample::timed(jobs, elapsed).noted("finished jobs, their tasks and their changes are kept")))
    }

    fn latency(&mut self, samples: usize, workers: usize) -> Result<Answer> {
        let (durability, payload_bytes) = (self.durability, self.payload_bytes);
        let latencies = self.on_fresh(|url| async move {
            let log = LatencyLog::new();
            let queue_runtime = QueueRuntime::reporting(&url, durability, payload_bytes, workers, log.sender()).await?;
            latency(&queue_runtime, log, samples).await
        })?;
        Ok(Answer::Done(Sample::latencies(latencies)))
    }

    fn history(&mut self, finished: usize, samples: usize) -> Result<Answer> {
        let Place::Sqlite(path) = &self.place else {
            return Ok(Answer::cannot("the history row is SQLite only"));
        };
        let (path, durability, payload_bytes) = (path.clone(), self.durability, self.payload_bytes);
        let sample = self.on_fresh(|url| async move {
            let past = long_history::fill(&url, &path, durability, payload_bytes, finished).await?;
            let queue_runtime = QueueRuntime::open(&url, durability, payload_bytes, 2).await?;
            long_history::sample(&queue_runtime, past, samples).await
        })?;
        Ok(Answer::Done(sample))
    }

    fn dispatch(&mut self, samples: usize) -> Result<Answer> {
        let (durability, payload_bytes) = (self.durability, self.payload_bytes);
        let latencies = self.on_fresh(|url| async move {
            let queue_runtime = QueueRuntime::open(&url, durability, payload_bytes, 2).await?;
            dispatching::sample(&queue_runtime, samples).await
        })?;
        Ok(Answer::Done(Sample::latencies(latencies)))
    }
}

async fn enqueue(queue_runtime: &Arc<QueueRuntime>, jobs: usize, how: How) -> Result<Duration> {
    let (callers, size) = match how {
        How::Single => (1, 1),
        How::Batched { size } => (1, size),
        How::Callers { callers } => (callers, 1),
    };
    ensure!(size <= JOBS_PER_CALL, "the runtime takes {JOBS_PER_CALL} jobs in one call");
    // A research task takes jobs for as long as it lives; every caller has its own.
    let mut tasks = Vec::with_capacity(callers);
    for _ in 0..callers {
        tasks.push(queue_runtime.submit(TaskKind::Research, Vec::new()).await?);
    }
    let started = Instant::now();
    let mut working = Vec::with_capacity(callers);
    for (caller, task) in tasks.into_iter().enumerate() {
        let share = jobs / callers + usize::from(caller < jobs % callers);
        let queue_runtime = Arc::clone(queue_runtime);
        working.push(tokio::spawn(async move { enqueue_share(&queue_runtime, &task, share, size).await }));
    }
    for caller in working {
        caller.await??;
    }
    Ok(started.elapsed())
}

async fn enqueue_share(queue_runtime: &QueueRuntime, task: &TaskId, share: usize, size: usize) -> Result<()> {
    let mut left = share;
    while left > 0 {
        let batch = left.min(size);
        Tasks::of(&queue_runtime.runtime).enqueue(&queue_runtime.owner, task, queue_runtime.jobs(batch)).await?;
        left -= batch;
    }
    Ok(())
}

async fn drain(queue_runtime: &QueueRuntime, jobs: usize) -> Result<Duration> {
    let mut tasks = Vec::new();
    let mut left = jobs - 1;
    while left > 0 {
        let batch = left.min(JOBS_PER_CALL);
        tasks.push(queue_runtime.submit(TaskKind::Agent, queue_runtime.jobs(batch)).await?);
        left -= batch;
    }
    // Claimed last, so that a wait for it sleeps until the end.
    let mut last = queue_runtime.job();
    last.priority = Priority::Low;
    let last = queue_runtime.submit(TaskKind::Agent, vec![last]).await?;
    let started = Instant::now();
    let service = Service::start(&queue_runtime.runtime);
    queue_runtime.wait_for_all(vec![last]).await?;
    // Others may have been running beside it.
    let before_it = tasks.split_off(tasks.len().saturating_sub(2));
    if !before_it.is_empty() {
        queue_runtime.wait_for_all(before_it).await?;
    }
    let elapsed = started.elapsed();
    ensure!(queue_runtime.store().run(CountUnfinished).await? == 0, "jobs were left when the last one had ended");
    service.stop().await;
    Ok(elapsed)
}

async fn latency(queue_runtime: &QueueRuntime, mut log: LatencyLog, samples: usize) -> Result<Vec<u64>> {
    let task = queue_runtime.submit(TaskKind::Research, Vec::new()).await?;
    let service = Service::start(&queue_runtime.runtime);
    tokio::time::sleep(Duration::from_millis(300)).await;
    for _ in 0..samples {
        Tasks::of(&queue_runtime.runtime).enqueue(&queue_runtime.owner, &task, queue_runtime.jobs(1)).await?;
        let waiting = tokio::task::spawn_blocking(move || {
            log.wait_one(Duration::from_secs(60))?;
            anyhow::Ok(log)
        });
        log = waiting.await.context("the wait for a job broke")??;
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    service.stop().await;
    Ok(log.into_samples())
}
