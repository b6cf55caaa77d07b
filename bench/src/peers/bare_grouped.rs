//! A second limit for SQLite: the same statements, but with one writer that puts what belongs together into one commit.
//!
//! Each transaction completes what the workers hold and claims as many again, and enqueues that arrive together share
//! a commit. Where the disk decides (FULL), this and not the plain loop is what an engine can hope for.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel, sync_channel};
use std::time::Instant;

use anyhow::{Result, anyhow, ensure};
use bench_peer::{Answer, Durability, How, Order, Queue, Sample, payload_text};
use rusqlite::{Connection, TransactionBehavior, params};

use super::bare_sqlite::{self, INSERT, SCHEMA, joined, now_ns};

/// As many as Matsu's writer takes into one commit.
const GROUP_MAX: usize = 256;

pub struct BareGrouped {
    path: PathBuf,
    durability: Durability,
    payload: String,
}

pub fn open(order: &Order) -> Result<Box<dyn Queue>> {
    let queue = BareGrouped {
        path: PathBuf::from(&order.store),
        durability: order.durability,
        payload: payload_text(order.payload_bytes),
    };
    queue.connect()?.execute_batch(SCHEMA)?;
    Ok(Box::new(queue))
}

/// One caller's job, and where its answer goes after the commit.
type Wish = (String, Sender<()>);

impl BareGrouped {
    fn connect(&self) -> Result<Connection> {
        bare_sqlite::connect(&self.path, self.durability)
    }

    fn insert_from_callers(&self, jobs: usize, callers: usize) -> Result<Sample> {
        let connection = self.connect()?;
        let (line, wishes) = sync_channel::<Wish>(4_096);
        let started = Instant::now();
        std::thread::scope(|scope| {
            let writer = scope.spawn(move || write_groups(connection, &wishes));
            let threads: Vec<_> = (0..callers)
                .map(|caller| {
                    let (line, share) = (line.clone(), jobs / callers + usize::from(caller < jobs % callers));
                    scope.spawn(move || -> Result<()> {
                        let (reply, answer) = channel();
                        for _ in 0..share {
                            line.send((self.payload.clone(), reply.clone()))?;
                            answer.recv()?;
                        }
                        Ok(())
                    })
                })
                .collect();
            drop(line);
            threads.into_iter().try_for_each(joined)?;
            joined(writer)
        })?;
        Ok(Sample::timed(jobs, started.elapsed()).noted("one writer thread, a commit for all that arrive together"))
    }
}

fn write_groups(mut connection: Connection, wishes: &Receiver<Wish>) -> Result<()> {
    while let Ok(first) = wishes.recv() {
        let mut group = vec![first];
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut at = 0;
        while at < group.len() {
            transaction.prepare_cached(INSERT)?.execute(params![now_ns(), group[at].0])?;
            at += 1;
            if at == group.len() && at < GROUP_MAX {
                group.extend(wishes.try_recv().ok());
            }
        }
        transaction.commit()?;
        for (_, reply) in group {
            reply.send(()).map_err(|_| anyhow!("a caller went away"))?;
        }
    }
    Ok(())
}

impl Queue for BareGrouped {
    fn enqueue(&mut self, jobs: usize, how: How) -> Result<Answer> {
        match how {
            How::Callers { callers } => Ok(Answer::Done(self.insert_from_callers(jobs, callers)?)),
            How::Single | How::Batched { .. } => Ok(Answer::cannot("one caller is what the plain loop measures")),
        }
    }

    fn drain(&mut self, jobs: usize, workers: usize) -> Result<Answer> {
        let mut connection = self.connect()?;
        bare_sqlite::fill(&mut connection, jobs, &self.payload)?;
        let started = Instant::now();
        let mut held = Vec::new();
        let mut done = 0;
        loop {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            for job in held.drain(..) {
                bare_sqlite::complete(&transaction, &job)?;
                done += 1;
            }
            while held.len() < workers {
                match bare_sqlite::claim(&transaction)? {
                    Some(job) => held.push(job),
                    None => break,
                }
            }
            transaction.commit()?;
            if held.is_empty() {
                break;
            }
        }
        ensure!(done == jobs, "{done} of {jobs} jobs were completed");
        let note = format!("one thread; {workers} completions and {workers} claims in each commit");
        Ok(Answer::Done(Sample::timed(jobs, started.elapsed()).noted(note)))
    }

    fn latency(&mut self, _samples: usize, _workers: usize) -> Result<Answer> {
        Ok(Answer::cannot("with one job at a time there is nothing to group"))
    }

    fn history(&mut self, _finished: usize, _samples: usize) -> Result<Answer> {
        Ok(Answer::cannot("with one job at a time there is nothing to group"))
    }
}
