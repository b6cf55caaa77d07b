//! How each measurement is put to honker 0.5.
//!
//! Its defaults stay (WAL, 32 MB cache, checkpoint every 10,000 pages, 1 ms watcher); only `synchronous` is set, since
//! it opens at NORMAL. One `Database` is one connection behind a mutex, so with several workers both ways are tried,
//! one shared handle and one handle per worker, and the faster counts.

use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use bench_peer::{Answer, Durability, How, LatencyLog, Order, Sample, Stamp, payload_text};
use honker::{Database, EnqueueOpts, Queue, QueueOpts};
use serde::{Deserialize, Serialize};

const BATCH: i64 = 10;

#[derive(Deserialize, Serialize)]
struct Body {
    stamp: u64,
    text: String,
}

#[derive(Clone, Copy)]
enum Claiming {
    Single,
    Batched,
}

struct HonkerQueue {
    path: String,
    durability: Durability,
    payload_bytes: usize,
    claiming: Claiming,
}

pub fn open_single(order: &Order) -> Result<Box<dyn bench_peer::Queue>> {
    Ok(Box::new(HonkerQueue::new(order, Claiming::Single)))
}

pub fn open_batched(order: &Order) -> Result<Box<dyn bench_peer::Queue>> {
    Ok(Box::new(HonkerQueue::new(order, Claiming::Batched)))
}

impl HonkerQueue {
    fn new(order: &Order, claiming: Claiming) -> Self {
        Self { path: order.store.clone(), durability: order.durability, payload_bytes: order.payload_bytes, claiming }
    }

    fn database(&self) -> Result<Database> {
        let database = Database::open(&self.path)?;
        database.with_conn(|connection| {
            connection.execute_batch(&format!("PRAGMA synchronous = {}", self.durability.pragma()))
        })?;
        Ok(database)
    }

    fn body(&self) -> Body {
        Body { stamp: Stamp::now().0, text: payload_text(self.payload_bytes) }
    }

    fn fill(&self, database: &Database, jobs: usize, size: usize) -> Result<()> {
        let queue = queue(database);
        let mut left = jobs;
        while left > 0 {
            let batch = left.min(size);
            let transaction = database.transaction()?;
            for _ in 0..batch {
                queue.enqueue_tx(&transaction, &self.body(), EnqueueOpts::default())?;
            }
            transaction.commit()?;
            left -= batch;
        }
        Ok(())
    }

    fn drain_over(&self, jobs: usize, databases: &[Database]) -> Result<Duration> {
        self.fill(&databases[0], jobs, 1000)?;
        let claiming = self.claiming;
        let started = Instant::now();
        let done = std::thread::scope(|scope| {
            let threads: Vec<_> = databases
                .iter()
                .enumerate()
                .map(|(index, database)| {
                    scope.spawn(move || work_until_empty(&queue(database), &format!("worker-{index}"), claiming))
                })
                .collect();
            threads.into_iter().map(joined).sum::<Result<usize>>()
        })?;
        anyhow::ensure!(done == jobs, "{done} of {jobs} jobs were acknowledged");
        Ok(started.elapsed())
    }
}

impl bench_peer::Queue for HonkerQueue {
    fn enqueue(&mut self, jobs: usize, how: How) -> Result<Answer> {
        let database = self.database()?;
        let started = Instant::now();
        match how {
            How::Single => {
                let queue = queue(&database);
                for _ in 0..jobs {
                    queue.enqueue(&self.body(), EnqueueOpts::default())?;
                }
            }
            How::Batched { size } => self.fill(&database, jobs, size)?,
            How::Callers { callers } => std::thread::scope(|scope| {
                let threads: Vec<_> = (0..callers)
                    .map(|caller| {
                        let (queue, share) = (queue(&database), share(jobs, callers, caller));
                        let this = &*self;
                        scope.spawn(move || -> Result<usize> {
                            for _ in 0..share {
                                queue.enqueue(&this.body(), EnqueueOpts::default())?;
                            }
                            Ok(share)
                        })
                    })
                    .collect();
                threads.into_iter().map(joined).sum::<Result<usize>>().map(drop)
            })?,
        }
        Ok(Answer::Done(Sample::timed(jobs, started.elapsed())))
    }

    fn drain(&mut self, jobs: usize, workers: usize) -> Result<Answer> {
        let own: Vec<_> = (0..workers).map(|_| self.database()).collect::<Result<_>>()?;
        let own_elapsed = self.drain_over(jobs, &own)?;
        let shared = vec![own[0].clone(); workers];
        drop(own);
        let shared_elapsed = self.drain_over(jobs, &shared)?;
        let rate = |elapsed: Duration| jobs as f64 / elapsed.as_secs_f64();
        let note = format!(
            "shared handle {:.0}/s, a handle per worker {:.0}/s; acknowledging deletes the row",
            rate(shared_elapsed),
            rate(own_elapsed)
        );
        Ok(Answer::Done(Sample::timed(jobs, own_elapsed.min(shared_elapsed)).noted(note)))
    }

    /// The workers block in `ClaimWaker::next` for ever; they end with the process.
    fn latency(&mut self, samples: usize, workers: usize) -> Result<Answer> {
        let database = self.database()?;
        let mut log = LatencyLog::new();
        for index in 0..workers {
            let (queue, sender) = (queue(&database), log.sender());
            std::thread::spawn(move || -> Result<()> {
                let waker = queue.claim_waker();
                while let Some(job) = waker.next(&format!("worker-{index}"))? {
                    let body: Body = job.payload_as()?;
                    sender.send(Stamp::now().0 - body.stamp)?;
                    job.ack()?;
                }
                Ok(())
            });
        }
        let queue = queue(&database);
        for _ in 0..samples {
            queue.enqueue(&self.body(), EnqueueOpts::default())?;
            log.wait_one(Duration::from_secs(60))?;
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(Answer::Done(Sample::latencies(log.into_samples()).noted("1 ms watcher, its default")))
    }

    fn history(&mut self, _finished: usize, _samples: usize) -> Result<Answer> {
        Ok(Answer::cannot("an acknowledged job is deleted, so there is no history to grow"))
    }
}

fn queue(database: &Database) -> Queue {
    database.queue("bench", QueueOpts::default())
}

fn share(jobs: usize, callers: usize, caller: usize) -> usize {
    jobs / callers + usize::from(caller < jobs % callers)
}

fn work_until_empty(queue: &Queue, worker: &str, claiming: Claiming) -> Result<usize> {
    let mut done = 0;
    loop {
        match claiming {
            Claiming::Single => match queue.claim_one(worker)? {
                Some(job) => done += usize::from(job.ack()?),
                None => return Ok(done),
            },
            Claiming::Batched => {
                let ids: Vec<i64> = queue.claim_batch(worker, BATCH)?.iter().map(|job| job.id).collect();
                if ids.is_empty() {
                    return Ok(done);
                }
                done += queue.ack_batch(&ids, worker)? as usize;
            }
        }
    }
}

fn joined(thread: std::thread::ScopedJoinHandle<'_, Result<usize>>) -> Result<usize> {
    thread.join().map_err(|_| anyhow!("a thread panicked"))?
}
