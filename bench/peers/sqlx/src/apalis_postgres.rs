//! How the throughput measurement is put to apalis 1.0 on Postgres.
//!
//! `open_default` leaves its configuration alone; `open_batched` is the configuration of its own basic example
//! (batches of 100, no task lock). One worker of concurrency N and N workers are both tried, and the faster counts.

use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use apalis::prelude::*;
use apalis_postgres::{Config, PostgresStorage};
use bench_peer::{Answer, How, LatencyLog, Order, Queue, Sample};
use sqlx::PgPool;
use tokio::runtime::Runtime;

use crate::apalis_sqlite::fastest;
use crate::body::{Body, Counter};
use crate::scratch_database::ScratchDatabase;

const DRAIN_LIMIT: Duration = Duration::from_secs(120);
const QUEUE: &str = "bench";

struct ApalisPostgres {
    runtime: Runtime,
    server: String,
    payload_bytes: usize,
    config: Config,
}

pub fn open_default(order: &Order) -> Result<Box<dyn Queue>> {
    open(order, Config::default().queue(QUEUE))
}

pub fn open_batched(order: &Order) -> Result<Box<dyn Queue>> {
    open(order, Config::default().queue(QUEUE).batch_size(100).lock_tasks(false))
}

fn open(order: &Order, config: Config) -> Result<Box<dyn Queue>> {
    Ok(Box::new(ApalisPostgres {
        runtime: Runtime::new()?,
        server: order.store.clone(),
        payload_bytes: order.payload_bytes,
        config,
    }))
}

impl ApalisPostgres {
    fn storage(&self, pool: &PgPool) -> PostgresStorage<Body> {
        PostgresStorage::<Body>::new(pool).with_config(self.config.clone())
    }

    async fn drain_on_fresh(&self, jobs: usize, crew_size: usize, concurrency: usize) -> Result<Duration> {
        let database = ScratchDatabase::create(&self.server).await?;
        let pool = database.pool(20).await?;
        PostgresStorage::setup(&pool).await?;
        let elapsed = self.drain_with(&pool, jobs, crew_size, concurrency).await;
        pool.close().await;
        database.close().await?;
        elapsed
    }

    async fn drain_with(&self, pool: &PgPool, jobs: usize, crew_size: usize, concurrency: usize) -> Result<Duration> {
        let mut storage = self.storage(pool);
        for start in (0..jobs).step_by(1000) {
            let batch = (jobs - start).min(1000);
            storage.push_bulk((0..batch).map(|_| Body::new(self.payload_bytes)).collect()).await?;
        }
        let counter = Counter::default();
        let (stop, stopped) = tokio::sync::watch::channel(());
        let started = Instant::now();
        let tasks: Vec<_> = (0..crew_size)
            .map(|index| {
                let worker = WorkerBuilder::new(format!("bench-{index}").as_str())
                    .backend(storage.clone().with_pubsub().poll_with_interval(Duration::from_millis(10)))
                    .data(counter.clone())
                    .concurrency(concurrency)
                    .build(run);
                let mut stopped = stopped.clone();
                tokio::spawn(async move {
                    worker
                        .run_until(async move {
                            let _ = stopped.changed().await;
                            Ok::<(), std::io::Error>(())
                        })
                        .await
                })
            })
            .collect();
        counter.all_started(jobs, DRAIN_LIMIT).await?;
        while started.elapsed() < DRAIN_LIMIT {
            let done: i64 =
                sqlx::query_scalar("SELECT count(*) FROM apalis.jobs WHERE status = 'Done'").fetch_one(pool).await?;
            if done as usize == jobs {
                let elapsed = started.elapsed();
                drop(stop);
                for task in tasks {
                    task.await?.map_err(|error| anyhow!("a worker failed: {error}"))?;
                }
                return Ok(elapsed);
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        Err(anyhow!("not every job was acknowledged"))
    }

    async fn latency_on_fresh(&self, samples: usize, workers: usize) -> Result<Sample> {
        let database = ScratchDatabase::create(&self.server).await?;
        let pool = database.pool(20).await?;
        PostgresStorage::setup(&pool).await?;
        let mut log = LatencyLog::new();
        let mut storage = self.storage(&pool);
        let worker = WorkerBuilder::new("latency")
            .backend(storage.clone().with_pubsub())
            .data(Counter::reporting_to(log.sender()))
            .concurrency(workers)
            .build(run);
        let worker = tokio::spawn(worker.run());
        tokio::time::sleep(Duration::from_millis(500)).await;
        for _ in 0..samples {
            storage.push(Body::new(self.payload_bytes)).await?;
            log = tokio::task::spawn_blocking(move || {
                log.wait_one(Duration::from_secs(60))?;
                anyhow::Ok(log)
            })
            .await??;
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        worker.abort();
        database.close().await?;
        Ok(Sample::latencies(log.into_samples()).noted("with its pubsub listener"))
    }
}

impl Queue for ApalisPostgres {
    fn enqueue(&mut self, _jobs: usize, _how: How) -> Result<Answer> {
        Ok(Answer::cannot("the enqueue row is SQLite only"))
    }

    fn drain(&mut self, jobs: usize, workers: usize) -> Result<Answer> {
        let one = self.runtime.block_on(self.drain_on_fresh(jobs, 1, workers));
        let many = self.runtime.block_on(self.drain_on_fresh(jobs, workers, 1));
        fastest(jobs, vec![("1 worker of concurrency N", one), ("N workers", many)])
    }

    fn latency(&mut self, samples: usize, workers: usize) -> Result<Answer> {
        Ok(Answer::Done(self.runtime.block_on(self.latency_on_fresh(samples, workers))?))
    }

    fn history(&mut self, _finished: usize, _samples: usize) -> Result<Answer> {
        Ok(Answer::cannot("it has no call that claims one job outside a worker"))
    }
}

async fn run(body: Body, counter: Data<Counter>) -> Result<(), BoxDynError> {
    counter.start(&body);
    Ok(())
}
