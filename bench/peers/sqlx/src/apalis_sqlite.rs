//! How each measurement is put to apalis 1.0 on SQLite.
//!
//! Its `setup` sets `synchronous = OFF` on whichever pooled connection it happens to get, so it runs on a pool that is
//! closed again, and the measured pool opens every connection at the durability the row asks for.
//! SQLite has one writer: a pool of one connection and sqlx's default of ten are both tried, as are one worker of
//! concurrency N and N workers, and the fastest counts.

use std::str::FromStr;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, ensure};
use apalis::prelude::*;
use apalis_sqlite::{SqliteConnectOptions, SqlitePool, SqlitePoolOptions, SqliteStorage};
use bench_peer::{Answer, Durability, How, LatencyLog, Order, Queue, Sample};
use futures::StreamExt;
use sqlx::sqlite::SqliteSynchronous;
use tokio::runtime::Runtime;

use crate::body::{Body, Counter, share};

const DRAIN_LIMIT: Duration = Duration::from_secs(120);

struct ApalisSqlite {
    runtime: Runtime,
    store: String,
    durability: Durability,
    payload_bytes: usize,
}

#[derive(Clone, Copy)]
enum Crew {
    OneWorkerConcurrent,
    ManyWorkers,
}

pub fn open(order: &Order) -> Result<Box<dyn Queue>> {
    Ok(Box::new(ApalisSqlite {
        runtime: Runtime::new()?,
        store: order.store.clone(),
        durability: order.durability,
        payload_bytes: order.payload_bytes,
    }))
}

impl ApalisSqlite {
    fn options(&self, path: &str) -> Result<SqliteConnectOptions> {
        let synchronous = match self.durability {
            Durability::Normal => SqliteSynchronous::Normal,
            Durability::Full => SqliteSynchronous::Full,
        };
        let options = SqliteConnectOptions::from_str(&format!("sqlite://{path}"))?;
        Ok(options.create_if_missing(true).synchronous(synchronous).busy_timeout(Duration::from_secs(30)))
    }

    async fn prepare(&self, path: &str) -> Result<SqliteConnectOptions> {
        let options = self.options(path)?;
        let pool = SqlitePoolOptions::new().max_connections(1).connect_with(options.clone()).await?;
        SqliteStorage::setup(&pool).await?;
        pool.close().await;
        Ok(options)
    }

    async fn pool(&self, variant: &str, connections_max: u32) -> Result<SqlitePool> {
        let options = self.prepare(&format!("{}-{variant}", self.store)).await?;
        let pool = SqlitePoolOptions::new().max_connections(connections_max).connect_with(options).await?;
        self.check_durability(&pool).await?;
        Ok(pool)
    }

    /// Trust is not enough where a library sets the pragma itself.
    async fn check_durability(&self, pool: &SqlitePool) -> Result<()> {
        let found: i64 = sqlx::query_scalar("PRAGMA synchronous").fetch_one(pool).await?;
        let wanted = match self.durability {
            Durability::Normal => 1,
            Durability::Full => 2,
        };
        ensure!(found == wanted, "synchronous is {found}, not {wanted}");
        Ok(())
    }

    async fn enqueue_over(&self, pool: &SqlitePool, jobs: usize, how: How) -> Result<Duration> {
        let mut storage = SqliteStorage::<Body>::new(pool);
        let started = Instant::now();
        match how {
            How::Single => {
                for _ in 0..jobs {
                    storage.push(Body::new(self.payload_bytes)).await?;
                }
            }
            How::Batched { size } => {
                let mut left = jobs;
                while left > 0 {
                    let batch = left.min(size);
                    storage.push_bulk((0..batch).map(|_| Body::new(self.payload_bytes)).collect()).await?;
                    left -= batch;
                }
            }
            How::Callers { callers } => {
                let tasks: Vec<_> = (0..callers)
                    .map(|caller| {
                        let (mut storage, share) = (storage.clone(), share(jobs, callers, caller));
                        let payload_bytes = self.payload_bytes;
                        tokio::spawn(async move {
                            for _ in 0..share {
                                storage.push(Body::new(payload_bytes)).await?;
                            }
                            anyhow::Ok(())
                        })
                    })
                    .collect();
                for task in tasks {
                    task.await??;
                }
            }
        }
        let elapsed = started.elapsed();
        let stored: i64 = sqlx::query_scalar("SELECT count(*) FROM Jobs").fetch_one(pool).await?;
        ensure!(stored as usize == jobs, "{stored} of {jobs} jobs were stored");
        Ok(elapsed)
    }

    async fn drain_with(
        &self,
        variant: &str,
        pool: SqlitePool,
        jobs: usize,
        workers: usize,
        crew: Crew,
    ) -> Result<Duration> {
        let mut storage = SqliteStorage::<Body>::new(&pool);
        for start in (0..jobs).step_by(1000) {
            let batch = (jobs - start).min(1000);
            storage.push_bulk((0..batch).map(|_| Body::new(self.payload_bytes)).collect()).await?;
        }
        let counter = Counter::default();
        let (stop, stopped) = tokio::sync::watch::channel(());
        let (crew_size, concurrency) = match crew {
            Crew::OneWorkerConcurrent => (1, workers),
            Crew::ManyWorkers => (workers, 1),
        };
        let started = Instant::now();
        let tasks: Vec<_> = (0..crew_size)
            .map(|index| {
                let backend = storage.clone().poll_with_interval(Duration::from_millis(10));
                let worker = WorkerBuilder::new(format!("{variant}-{index}").as_str())
                    .backend(backend)
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
                sqlx::query_scalar("SELECT count(*) FROM Jobs WHERE status = 'Done'").fetch_one(&pool).await?;
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

    /// The README's event-driven shape: update hook plus a 500 ms interval.
    async fn latency_with_hook(&self, samples: usize, workers: usize) -> Result<Sample> {
        let options = self.prepare(&self.store).await?;
        let (pool, listener) = SqliteStorage::connect_with_callback(&format!("sqlite://{}", self.store))?;
        pool.set_connect_options(options);
        self.check_durability(&pool).await?;
        let mut log = LatencyLog::new();
        let strategy = Strategy::new().stream(listener.ready_chunks(10)).interval(Duration::from_millis(500));
        let worker = WorkerBuilder::new("latency")
            .backend(SqliteStorage::<Body>::new(&pool).poll_with_strategy(strategy))
            .data(Counter::reporting_to(log.sender()))
            .concurrency(workers)
            .build(run);
        tokio::spawn(worker.run());
        tokio::time::sleep(Duration::from_millis(300)).await;
        let mut storage = SqliteStorage::<Body>::new(&pool);
        for _ in 0..samples {
            storage.push(Body::new(self.payload_bytes)).await?;
            log = tokio::task::spawn_blocking(move || {
                log.wait_one(Duration::from_secs(60))?;
                anyhow::Ok(log)
            })
            .await??;
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        Ok(Sample::latencies(log.into_samples()).noted("update hook and a 500 ms interval, as in its README"))
    }
}

impl Queue for ApalisSqlite {
    fn enqueue(&mut self, jobs: usize, how: How) -> Result<Answer> {
        let (one, ten) = self.runtime.block_on(async {
            let pool = self.pool("one", 1).await?;
            let one = self.enqueue_over(&pool, jobs, how).await;
            let pool = self.pool("ten", 10).await?;
            anyhow::Ok((one, self.enqueue_over(&pool, jobs, how).await))
        })?;
        fastest(jobs, vec![("pool of 1", one), ("pool of 10", ten)])
    }

    fn drain(&mut self, jobs: usize, workers: usize) -> Result<Answer> {
        let variants = [
            ("1 worker, pool of 1", Crew::OneWorkerConcurrent, 1),
            ("1 worker, pool of 10", Crew::OneWorkerConcurrent, 10),
            ("N workers, pool of 1", Crew::ManyWorkers, 1),
            ("N workers, pool of 10", Crew::ManyWorkers, 10),
        ];
        let mut results = Vec::new();
        for (index, (name, crew, connections)) in variants.into_iter().enumerate() {
            let variant = format!("drain{index}");
            let result = self.runtime.block_on(async {
                let pool = self.pool(&variant, connections).await?;
                self.drain_with(&variant, pool, jobs, workers, crew).await
            });
            results.push((name, result));
        }
        fastest(jobs, results)
    }

    fn latency(&mut self, samples: usize, workers: usize) -> Result<Answer> {
        Ok(Answer::Done(self.runtime.block_on(self.latency_with_hook(samples, workers))?))
    }

    fn history(&mut self, _finished: usize, _samples: usize) -> Result<Answer> {
        Ok(Answer::cannot("it has no call that claims one job outside a worker"))
    }
}

async fn run(body: Body, counter: Data<Counter>) -> Result<(), BoxDynError> {
    counter.start(&body);
    Ok(())
}

/// A variant that fails is named in the note; only if all fail does the measurement fail.
pub fn fastest(jobs: usize, results: Vec<(&str, Result<Duration>)>) -> Result<Answer> {
    let mut notes = Vec::new();
    let mut best: Option<Duration> = None;
    for (name, result) in results {
        match result {
            Ok(elapsed) => {
                notes.push(format!("{name} {:.0}/s", jobs as f64 / elapsed.as_secs_f64()));
                best = Some(best.map_or(elapsed, |best| best.min(elapsed)));
            }
            Err(error) => notes.push(format!("{name} failed: {error:#}")),
        }
    }
    let note = notes.join("; ");
    match best {
        Some(elapsed) => Ok(Answer::Done(Sample::timed(jobs, elapsed).noted(note))),
        None => Err(anyhow!(note)),
    }
}
