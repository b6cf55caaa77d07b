//! How the measurements are put to graphile_worker 0.14.
//!
//! `open_default` sets nothing but the concurrency; `open_local_queue` adds what its guide recommends for throughput
//! (a local queue of 100 and completions batched over 5 ms). A completed job's row is deleted, so empty means done.
//!
//! Without a local queue its `run` takes at most one job per worker per signal (an insert's NOTIFY or the 1 s poll), so
//! a backlog that is already there drains at the pace of signals. `run_once` is its call for working off all that is
//! there; both are tried, `run` for a bounded time, and the faster counts.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, ensure};
use bench_peer::{Answer, How, LatencyLog, Order, Queue, Sample};
use graphile_worker::{
    IntoTaskHandlerResult, JobSpec, LocalQueueConfig, RawJobSpec, TaskHandler, WorkerContext, WorkerOptions,
};
use sqlx::PgPool;
use tokio::runtime::Runtime;

use crate::apalis_sqlite::fastest;
use crate::body::{Body, Counter};
use crate::scratch_database::ScratchDatabase;

const DRAIN_LIMIT: Duration = Duration::from_secs(10);

impl TaskHandler for Body {
    const IDENTIFIER: &'static str = "bench";

    async fn run(self, context: WorkerContext) -> impl IntoTaskHandlerResult {
        if let Some(counter) = context.get_ext::<Counter>() {
            counter.start(&self);
        }
        Ok::<(), String>(())
    }
}

struct Graphile {
    runtime: Runtime,
    server: String,
    payload_bytes: usize,
    tune: fn(WorkerOptions) -> WorkerOptions,
}

#[derive(Clone, Copy)]
enum Call {
    Run,
    RunOnce,
}

pub fn open_default(order: &Order) -> Result<Box<dyn Queue>> {
    open(order, |options| options)
}

pub fn open_local_queue(order: &Order) -> Result<Box<dyn Queue>> {
    open(order, |options| {
        options.complete_job_batch_delay(Duration::from_millis(5)).local_queue(LocalQueueConfig::default())
    })
}

fn open(order: &Order, tune: fn(WorkerOptions) -> WorkerOptions) -> Result<Box<dyn Queue>> {
    Ok(Box::new(Graphile {
        runtime: Runtime::new()?,
        server: order.store.clone(),
        payload_bytes: order.payload_bytes,
        tune,
    }))
}

impl Graphile {
    async fn worker(&self, pool: &PgPool, counter: Counter, workers: usize) -> Result<Arc<graphile_worker::Worker>> {
        let options = WorkerOptions::default().pg_pool(pool.clone()).concurrency(workers).add_extension(counter);
        Ok(Arc::new((self.tune)(options.define_job::<Body>()).init().await?))
    }

    async fn drain_on_fresh(&self, jobs: usize, workers: usize, call: Call) -> Result<Duration> {
        let database = ScratchDatabase::create(&self.server).await?;
        let pool = database.pool(20).await?;
        let worker = self.worker(&pool, Counter::default(), workers).await?;
        let utils = worker.create_utils();
        for start in (0..jobs).step_by(1000) {
            let batch: Vec<_> = (start..jobs.min(start + 1000)).map(|_| self.raw_job()).collect::<Result<_>>()?;
            utils.add_raw_jobs(&batch).await?;
        }
        let started = Instant::now();
        let running = tokio::spawn({
            let worker = Arc::clone(&worker);
            async move {
                match call {
                    Call::Run => worker.run().await,
                    Call::RunOnce => worker.run_once().await,
                }
            }
        });
        let emptied = wait_until_empty(&pool, jobs, started).await;
        worker.request_shutdown();
        running.await?.map_err(|error| anyhow!("the worker failed: {error}"))?;
        pool.close().await;
        database.close().await?;
        emptied
    }

    async fn latency_on_fresh(&self, samples: usize, workers: usize) -> Result<Sample> {
        let database = ScratchDatabase::create(&self.server).await?;
        let pool = database.pool(20).await?;
        let mut log = LatencyLog::new();
        let worker = self.worker(&pool, Counter::reporting_to(log.sender()), workers).await?;
        let utils = worker.create_utils();
        let running = tokio::spawn({
            let worker = Arc::clone(&worker);
            async move { worker.run().await }
        });
        tokio::time::sleep(Duration::from_millis(500)).await;
        for _ in 0..samples {
            utils.add_job(Body::new(self.payload_bytes), JobSpec::default()).await?;
            log = tokio::task::spawn_blocking(move || {
                log.wait_one(Duration::from_secs(60))?;
                anyhow::Ok(log)
            })
            .await??;
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        worker.request_shutdown();
        running.await?.map_err(|error| anyhow!("the worker failed: {error}"))?;
        pool.close().await;
        database.close().await?;
        Ok(Sample::latencies(log.into_samples()).noted("with LISTEN, its default"))
    }

    fn raw_job(&self) -> Result<RawJobSpec> {
        Ok(RawJobSpec {
            identifier: Body::IDENTIFIER.to_owned(),
            payload: serde_json::to_value(Body::new(self.payload_bytes))?,
            spec: JobSpec::default(),
        })
    }
}

impl Queue for Graphile {
    fn enqueue(&mut self, _jobs: usize, _how: How) -> Result<Answer> {
        Ok(Answer::cannot("the enqueue row is SQLite only"))
    }

    fn drain(&mut self, jobs: usize, workers: usize) -> Result<Answer> {
        let once = self.runtime.block_on(self.drain_on_fresh(jobs, workers, Call::RunOnce));
        let run = self.runtime.block_on(self.drain_on_fresh(jobs, workers, Call::Run));
        fastest(jobs, vec![("run_once", once), ("run", run)])
    }

    fn latency(&mut self, samples: usize, workers: usize) -> Result<Answer> {
        Ok(Answer::Done(self.runtime.block_on(self.latency_on_fresh(samples, workers))?))
    }

    fn history(&mut self, _finished: usize, _samples: usize) -> Result<Answer> {
        Ok(Answer::cannot("a completed job is deleted, so there is no history to grow"))
    }
}

async fn wait_until_empty(pool: &PgPool, jobs: usize, started: Instant) -> Result<Duration> {
    loop {
        let left: i64 =
            sqlx::query_scalar("SELECT count(*) FROM graphile_worker._private_jobs").fetch_one(pool).await?;
        let elapsed = started.elapsed();
        if left == 0 {
            return Ok(elapsed);
        }
        ensure!(elapsed < DRAIN_LIMIT, "{} of {jobs} jobs done in {} s", jobs as i64 - left, DRAIN_LIMIT.as_secs());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
