//! The limit for SQLite rows: prepared statements in a loop, with no engine around them.
//!
//! It does what any durable queue on SQLite must do and nothing else: one insert per enqueue, and per job one claim
//! transaction and one completion transaction, in WAL mode, with a partial index over the claimable rows.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use bench_peer::{Answer, Durability, How, LatencyLog, Order, Queue, Sample, Stamp, payload_text};
use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};

pub const SCHEMA: &str = "
    CREATE TABLE jobs (
        id INTEGER PRIMARY KEY,
        state INTEGER NOT NULL DEFAULT 0,
        priority INTEGER NOT NULL DEFAULT 50,
        attempt INTEGER NOT NULL DEFAULT 0,
        queued_at INTEGER NOT NULL,
        started_at INTEGER,
        finished_at INTEGER,
        input TEXT NOT NULL
    );
    CREATE INDEX jobs_claimable ON jobs (priority, queued_at, id) WHERE state = 0;";
pub const INSERT: &str = "INSERT INTO jobs (queued_at, input) VALUES (?1, ?2)";
const CLAIM: &str = "UPDATE jobs SET state = 1, attempt = attempt + 1, started_at = ?1
    WHERE id = (SELECT id FROM jobs WHERE state = 0 ORDER BY priority, queued_at, id LIMIT 1)
    RETURNING id, attempt, queued_at, input";
const COMPLETE: &str = "UPDATE jobs SET state = 2, finished_at = ?3 WHERE id = ?1 AND attempt = ?2 AND state = 1";
const STATUS: &str = "SELECT state, attempt, queued_at, finished_at FROM jobs WHERE id = ?1";

pub struct BareSqlite {
    path: PathBuf,
    durability: Durability,
    payload: String,
}

pub fn open(order: &Order) -> Result<Box<dyn Queue>> {
    let queue = BareSqlite {
        path: PathBuf::from(&order.store),
        durability: order.durability,
        payload: payload_text(order.payload_bytes),
    };
    queue.connect()?.execute_batch(SCHEMA)?;
    Ok(Box::new(queue))
}

impl BareSqlite {
    fn connect(&self) -> Result<Connection> {
        connect(&self.path, self.durability)
    }

    fn fill(&self, jobs: usize) -> Result<()> {
        fill(&mut self.connect()?, jobs, &self.payload)
    }

    fn insert_single(&self, jobs: usize) -> Result<Sample> {
        let connection = self.connect()?;
        let mut insert = connection.prepare(INSERT)?;
        let started = Instant::now();
        for _ in 0..jobs {
            insert.execute(params![now_ns(), self.payload])?;
        }
        Ok(Sample::timed(jobs, started.elapsed()))
    }

    fn insert_batched(&self, jobs: usize, size: usize) -> Result<Sample> {
        let mut connection = self.connect()?;
        let started = Instant::now();
        let mut left = jobs;
        while left > 0 {
            let batch = left.min(size);
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            {
                let mut insert = transaction.prepare_cached(INSERT)?;
                for _ in 0..batch {
                    insert.execute(params![now_ns(), self.payload])?;
                }
            }
            transaction.commit()?;
            left -= batch;
        }
        Ok(Sample::timed(jobs, started.elapsed()))
    }

    /// The callers share one connection behind a mutex: with one writer at a time anyway, this beats 64 connections
    /// that spin on the busy handler.
    fn insert_from_callers(&self, jobs: usize, callers: usize) -> Result<Sample> {
        let connection = Mutex::new(self.connect()?);
        let left = AtomicUsize::new(jobs);
        let started = Instant::now();
        std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..callers).map(|_| scope.spawn(|| self.insert_until_none_left(&connection, &left))).collect();
            threads.into_iter().try_for_each(joined)
        })?;
        Ok(Sample::timed(jobs, started.elapsed()).noted("one connection behind a mutex, one commit per job"))
    }

    fn insert_until_none_left(&self, connection: &Mutex<Connection>, left: &AtomicUsize) -> Result<()> {
        while take_one(left) {
            let connection = connection.lock().map_err(|_| anyhow!("another caller panicked"))?;
            connection.prepare_cached(INSERT)?.execute(params![now_ns(), self.payload])?;
        }
        Ok(())
    }

    fn drain_with(&self, jobs: usize, workers: usize) -> Result<Duration> {
        self.fill(jobs)?;
        let connections: Vec<_> = (0..workers).map(|_| self.connect()).collect::<Result<_>>()?;
        let started = Instant::now();
        std::thread::scope(|scope| {
            let threads: Vec<_> =
                connections.into_iter().map(|connection| scope.spawn(move || work_until_empty(&connection))).collect();
            threads.into_iter().try_for_each(joined)
        })?;
        Ok(started.elapsed())
    }
}

impl Queue for BareSqlite {
    fn enqueue(&mut self, jobs: usize, how: How) -> Result<Answer> {
        let sample = match how {
            How::Single => self.insert_single(jobs)?,
            How::Batched { size } => self.insert_batched(jobs, size)?,
            How::Callers { callers } => self.insert_from_callers(jobs, callers)?,
        };
        Ok(Answer::Done(sample))
    }

    /// SQLite has one writer, so a second thread may cost more than it brings: the faster of the two is the limit.
    fn drain(&mut self, jobs: usize, workers: usize) -> Result<Answer> {
        let alone = self.drain_with(jobs, 1)?;
        let together = self.drain_with(jobs, workers)?;
        let rate = |elapsed: Duration| jobs as f64 / elapsed.as_secs_f64();
        let note = format!("1 thread {:.0}/s, {workers} threads {:.0}/s", rate(alone), rate(together));
        Ok(Answer::Done(Sample::timed(jobs, alone.min(together)).noted(note)))
    }

    /// A thread is handed a token after each commit, which is the cheapest wake-up there is.
    fn latency(&mut self, samples: usize, _workers: usize) -> Result<Answer> {
        let producer = self.connect()?;
        let worker = self.connect()?;
        let mut log = LatencyLog::new();
        let sender = log.sender();
        let (wake, woken) = std::sync::mpsc::channel::<()>();
        std::thread::scope(|scope| {
            let thread = scope.spawn(move || -> Result<()> {
                for () in woken {
                    while let Some(job) = claim(&worker)? {
                        sender.send((now_ns() - job.queued_at).unsigned_abs())?;
                        complete(&worker, &job)?;
                    }
                }
                Ok(())
            });
            for _ in 0..samples {
                producer.prepare_cached(INSERT)?.execute(params![now_ns(), self.payload])?;
                wake.send(())?;
                log.wait_one(Duration::from_secs(60))?;
                std::thread::sleep(Duration::from_millis(2));
            }
            drop(wake);
            joined(thread)
        })?;
        Ok(Answer::Done(Sample::latencies(log.into_samples())))
    }

    fn history(&mut self, finished: usize, samples: usize) -> Result<Answer> {
        self.fill(finished)?;
        let connection = self.connect()?;
        connection.execute("UPDATE jobs SET state = 2, attempt = 1, finished_at = queued_at", [])?;
        connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")?;
        self.fill(samples)?;
        let mut sample = Sample::default();
        for step in 0..samples {
            let started = Instant::now();
            let job = claim(&connection)?.ok_or_else(|| anyhow!("the queue ran dry"))?;
            sample.latencies_ns.push(started.elapsed().as_nanos() as u64);
            complete(&connection, &job)?;
            let (id, times) = if step % 2 == 0 {
                (job.id, &mut sample.status_ns)
            } else {
                ((step * 7919 % finished.max(1)) as i64 + 1, &mut sample.old_status_ns)
            };
            let started = Instant::now();
            connection.prepare_cached(STATUS)?.query_row([id], |row| row.get::<_, i64>(0))?;
            times.push(started.elapsed().as_nanos() as u64);
        }
        sample.count = samples;
        Ok(Answer::Done(sample))
    }
}

pub struct Claimed {
    id: i64,
    attempt: i64,
    queued_at: i64,
}

pub fn fill(connection: &mut Connection, jobs: usize, payload: &str) -> Result<()> {
    let transaction = connection.transaction()?;
    {
        let mut insert = transaction.prepare(INSERT)?;
        for _ in 0..jobs {
            insert.execute(params![now_ns(), payload])?;
        }
    }
    transaction.commit()?;
    Ok(())
}

pub fn connect(path: &Path, durability: Durability) -> Result<Connection> {
    let connection = Connection::open(path)?;
    connection.busy_timeout(Duration::from_secs(30))?;
    connection.execute_batch(&format!("PRAGMA journal_mode = WAL; PRAGMA synchronous = {};", durability.pragma()))?;
    Ok(connection)
}

fn work_until_empty(connection: &Connection) -> Result<()> {
    while let Some(job) = claim(connection)? {
        complete(connection, &job)?;
    }
    Ok(())
}

pub fn claim(connection: &Connection) -> Result<Option<Claimed>> {
    let mut statement = connection.prepare_cached(CLAIM)?;
    let job = statement
        .query_row([now_ns()], |row| {
            row.get::<_, String>(3)?;
            Ok(Claimed { id: row.get(0)?, attempt: row.get(1)?, queued_at: row.get(2)? })
        })
        .optional()?;
    Ok(job)
}

pub fn complete(connection: &Connection, job: &Claimed) -> Result<()> {
    let changed = connection.prepare_cached(COMPLETE)?.execute(params![job.id, job.attempt, now_ns()])?;
    anyhow::ensure!(changed == 1, "a completion was lost");
    Ok(())
}

fn take_one(left: &AtomicUsize) -> bool {
    left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
}

pub fn joined(thread: std::thread::ScopedJoinHandle<'_, Result<()>>) -> Result<()> {
    thread.join().map_err(|_| anyhow!("a thread panicked"))?
}

/// SQLite integers are signed; 292 years of nanoseconds fit.
pub fn now_ns() -> i64 {
    Stamp::now().0 as i64
}
