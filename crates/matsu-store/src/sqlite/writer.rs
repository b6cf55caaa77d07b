//! The one writer thread. Operations that arrive while a commit is under way share the next one. A small operation does
//! not come here at all while no other write is under way: see [`WriteGate::write_at_once`].
//!
//! Order, for each group: `BEGIN IMMEDIATE`, the operations (each undone alone if it fails), `COMMIT`, and only then
//! the answers and the wake-ups. An answer is never sent for something that could still be lost.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::task::{Context, Poll, Waker};

use matsu_core::change::Topic;
use matsu_core::limits::{STORE_CLOSE_MAX, WRITE_BATCH_MAX};
use matsu_core::ports::store::StoreError;
use rusqlite::Connection;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::oneshot;

use super::write_gate::WriteGate;
use crate::sql::sqlite as statement;
use crate::sql::{Driver, Transition, Tx, internal};

/// Operations that may wait in line before callers have to wait for a place in it.
const LINE_MAX: usize = 4_096;

/// A handle to the thread; the thread ends when the last handle is dropped.
pub struct Writer {
    line: Option<Sender<Box<dyn Operation>>>,
    gate: Arc<WriteGate>,
    /// Closes when the thread exits.
    ended: Mutex<mpsc::Receiver<()>>,
}

impl Writer {
    pub fn start(gate: WriteGate) -> Result<Self, StoreError> {
        let (line, mut operations) = channel(LINE_MAX);
        let (ends, ended) = mpsc::channel();
        let gate = Arc::new(gate);
        let own = Arc::clone(&gate);
        let thread = std::thread::Builder::new().name("matsu-writer".to_owned());
        let work = move || {
            work(&own, &mut operations);
            // In this order: once the end is reported, the file is closed.
            drop(own);
            drop(ends);
        };
        thread.spawn(work).map_err(internal)?;
        Ok(Self { line: Some(line), gate, ended: Mutex::new(ended) })
    }

    /// Runs a transition. Once it is queued it happens, also if the caller goes away.
    pub async fn write<T: Transition>(&self, transition: T) -> Result<T::Output, StoreError> {
        if transition.is_quick()
            && let Some(outcome) = self.gate.write_at_once(&transition)
        {
            return outcome;
        }
        let (reply, answer) = oneshot::channel();
        self.send(Box::new(Pending { transition, outcome: None, reply })).await?;
        answer.await.map_err(|_| gone())?
    }

    /// A number that moves when another process or connection has changed the file.
    pub async fn data_version(&self) -> Result<i64, StoreError> {
        let (reply, answer) = oneshot::channel();
        self.send(Box::new(DataVersion { seen: 0, reply })).await?;
        answer.await.map_err(|_| gone())?
    }

    async fn send(&self, operation: Box<dyn Operation>) -> Result<(), StoreError> {
        let Some(line) = &self.line else { return Err(gone()) };
        let place = self.gate.stand_in_line();
        line.send(operation).await.map_err(|_| gone())?;
        place.keep();
        Ok(())
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // Closing the line ends the thread after what stands in it; then the file is closed for good. A disk that
        // hangs is not waited for: what was answered is on it, and nothing else was promised.
        self.line = None;
        let ended = self.ended.get_mut().unwrap_or_else(PoisonError::into_inner);
        if ended.recv_timeout(STORE_CLOSE_MAX) == Err(mpsc::RecvTimeoutError::Timeout) {
            tracing::warn!("the store does not close in time");
        }
    }
}

fn gone() -> StoreError {
    StoreError::Unavailable("the writer has ended".to_owned())
}

/// Something to be done inside the group's transaction.
trait Operation: Send {
    /// Does it; `Err` means that whatever it changed must be undone.
    fn apply(&mut self, connection: &mut Connection) -> Result<Vec<Topic>, ()>;

    /// Whether what it wrote is not looked at again soon, and shall not stay in memory.
    fn is_bulk(&self) -> bool {
        false
    }

    /// Answers. `Err`: the group did not commit, and nothing of this happened.
    fn answer(self: Box<Self>, committed: Result<(), StoreError>);
}

struct Pending<T: Transition> {
    transition: T,
    outcome: Option<Result<T::Output, StoreError>>,
    reply: oneshot::Sender<Result<T::Output, StoreError>>,
}

impl<T: Transition> Operation for Pending<T> {
    fn apply(&mut self, connection: &mut Connection) -> Result<Vec<Topic>, ()> {
        let (outcome, topics) = run_now(&self.transition, connection);
        let failed = outcome.is_err();
        self.outcome = Some(outcome);
        if failed { Err(()) } else { Ok(topics) }
    }

    fn is_bulk(&self) -> bool {
        self.transition.is_bulk()
    }

    fn answer(self: Box<Self>, committed: Result<(), StoreError>) {
        let answer = match (self.outcome, committed) {
            (Some(outcome), Ok(())) => outcome,
            // What broke the group is the better answer.
            (Some(Err(own @ (StoreError::Unavailable(_) | StoreError::Internal(_)))), Err(_)) => Err(own),
            // A refusal counts no more than a success: it may rest on what a neighbour did and is now undone.
            (_, Err(error)) => Err(error),
            (None, Ok(())) => Err(internal("an operation was answered before it ran")),
        };
        let _ = self.reply.send(answer);
    }
}

struct DataVersion {
    seen: i64,
    reply: oneshot::Sender<Result<i64, StoreError>>,
}

impl Operation for DataVersion {
    fn apply(&mut self, connection: &mut Connection) -> Result<Vec<Topic>, ()> {
        self.seen = connection.query_row("PRAGMA data_version", [], |row| row.get(0)).map_err(|_| ())?;
        Ok(Vec::new())
    }

    fn answer(self: Box<Self>, committed: Result<(), StoreError>) {
        let _ = self.reply.send(committed.map(|()| self.seen));
    }
}

/// Runs a transition to its end at once: on SQLite nothing in it ever waits.
pub fn run_now<T: Transition>(
    transition: &T,
    connection: &mut Connection,
) -> (Result<T::Output, StoreError>, Vec<Topic>) {
    let mut tx = Tx::new(Driver::Sqlite(connection));
    let polled = catch_unwind(AssertUnwindSafe(|| {
        let future = pin!(transition.run(&mut tx));
        future.poll(&mut Context::from_waker(Waker::noop()))
    }));
    let outcome = match polled {
        Ok(Poll::Ready(outcome)) => outcome,
        Ok(Poll::Pending) => Err(internal("a transition waited for something other than the database")),
        // A defect ends its own operation, which is undone like any that fails, and never the writer.
        Err(_) => Err(internal("a transition panicked")),
    };
    (outcome, tx.into_topics())
}

fn work(gate: &WriteGate, operations: &mut Receiver<Box<dyn Operation>>) {
    let mut group: Vec<Box<dyn Operation>> = Vec::with_capacity(WRITE_BATCH_MAX);
    let mut patience = Patience::default();
    while let Some(first) = patience.next(operations) {
        group.push(first);
        let mut topics = Vec::new();
        let committed = gate.writer_connection().with(|connection| {
            let committed = run_group(connection, operations, &mut group, &mut topics);
            // After the commit: until then its pages cannot be given back.
            if group.iter().any(|operation| operation.is_bulk()) {
                let _ = connection.execute_batch("PRAGMA shrink_memory");
            }
            committed
        });
        if committed.is_ok() {
            gate.hub().publish(&topics);
        }
        // Before the answers: a caller that has its answer may write at once on its own thread next.
        gate.leave_line(group.len());
        for operation in group.drain(..) {
            operation.answer(match &committed {
                Ok(()) => Ok(()),
                Err(error) => Err(StoreError::Unavailable(error.to_string())),
            });
        }
    }
    // Leave one tidy file behind; a failure here loses nothing, the log is replayed at the next start.
    gate.writer_connection().with(|connection| {
        let _ = connection.execute_batch("PRAGMA optimize; PRAGMA wal_checkpoint(TRUNCATE);");
    });
}

/// How the thread waits for work. To be woken takes longer than a small transaction, so while operations come in
/// quick succession it looks for the next one a few times before it goes to sleep.
#[derive(Default)]
struct Patience {
    /// How often the next operation was there within the looks; halved each time it was not.
    trust: u32,
}

impl Patience {
    const LOOKS: u32 = 400;
    const TRUST_MAX: u32 = 8;

    fn next(&mut self, operations: &mut Receiver<Box<dyn Operation>>) -> Option<Box<dyn Operation>> {
        let looks = if self.trust > 0 { Self::LOOKS } else { 1 };
        for _ in 0..looks {
            if let Ok(operation) = operations.try_recv() {
                self.trust = (self.trust + 1).min(Self::TRUST_MAX);
                return Some(operation);
            }
            for _ in 0..4 {
                std::hint::spin_loop();
            }
        }
        self.trust /= 2;
        operations.blocking_recv()
    }
}

/// One transaction: the operation that is there, and all that arrive before it is done.
fn run_group(
    connection: &mut Connection,
    operations: &mut Receiver<Box<dyn Operation>>,
    group: &mut Vec<Box<dyn Operation>>,
    topics: &mut Vec<Topic>,
) -> rusqlite::Result<()> {
    begin(connection, "BEGIN IMMEDIATE")?;
    let mut at = 0;
    let mut before = Before::Nothing;
    while at < group.len() {
        before = run_one(connection, group[at].as_mut(), before, topics).inspect_err(|_| {
            let _ = connection.execute_batch("ROLLBACK");
        })?;
        at += 1;
        if at == group.len() && at < WRITE_BATCH_MAX {
            group.extend(operations.try_recv().ok());
        }
    }
    begin(connection, "COMMIT").inspect_err(|_| {
        let _ = connection.execute_batch("ROLLBACK");
    })
}

pub fn begin(connection: &Connection, sql: &str) -> rusqlite::Result<()> {
    connection.prepare_cached(sql)?.raw_execute().map(drop)
}

/// What this transaction has done so far.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    Nothing,
    Something,
}

/// `Err` only if the whole transaction is broken; a refused operation is undone alone and answers for itself. The
/// first needs no savepoint: if it is refused, the whole transaction can begin anew.
fn run_one(
    connection: &mut Connection,
    operation: &mut dyn Operation,
    before: Before,
    topics: &mut Vec<Topic>,
) -> rusqlite::Result<Before> {
    if before == Before::Something {
        begin(connection, "SAVEPOINT operation")?;
    }
    match (operation.apply(connection), before) {
        (Ok(woken), _) => {
            if before == Before::Something {
                begin(connection, "RELEASE operation")?;
            }
            for topic in woken {
                if !topics.contains(&topic) {
                    topics.push(topic);
                }
            }
            Ok(Before::Something)
        }
        (Err(()), Before::Nothing) => {
            begin(connection, "ROLLBACK")?;
            begin(connection, "BEGIN IMMEDIATE")?;
            Ok(Before::Nothing)
        }
        (Err(()), Before::Something) => {
            // A full disk may have made SQLite roll back everything on its own; then there is no savepoint left.
            begin(connection, "ROLLBACK TO operation")?;
            begin(connection, "RELEASE operation")?;
            Ok(Before::Something)
        }
    }
}

/// Runs a transition in a transaction of its own on a connection the caller holds.
pub fn run_alone<T: Transition>(
    transition: &T,
    connection: &mut Connection,
    begin_with: &str,
) -> (Result<T::Output, StoreError>, Vec<Topic>) {
    if let Err(error) = begin(connection, begin_with) {
        return (Err(statement::error(error)), Vec::new());
    }
    run_begun(transition, connection)
}

/// The rest of [`run_alone`].
pub fn run_begun<T: Transition>(
    transition: &T,
    connection: &mut Connection,
) -> (Result<T::Output, StoreError>, Vec<Topic>) {
    let (outcome, topics) = run_now(transition, connection);
    let ended = begin(connection, if outcome.is_ok() { "COMMIT" } else { "ROLLBACK" });
    match (outcome, ended) {
        (Ok(output), Ok(())) => (Ok(output), topics),
        (Ok(_), Err(error)) => {
            let _ = connection.execute_batch("ROLLBACK");
            (Err(statement::error(error)), Vec::new())
        }
        (Err(error), _) => (Err(error), Vec::new()),
    }
}

#[cfg(test)]
mod tests;
