//! The PostgreSQL driver: pooled transactions with retries, `NOTIFY` as a hint, nodes judged by their heartbeats.

pub mod commit;
pub mod connection;
pub mod hints;
pub mod round;
pub mod transaction;

use std::sync::Arc;

use futures_util::future::{join, join3};
use matsu_core::clock::Clock;
use matsu_core::id::NodeId;
use matsu_core::node::BeatWatch;
use matsu_core::ports::store::{ForeignChange, ReadNodes, StoreError};
use matsu_core::wake::Hub;
use tokio::sync::Mutex;

use crate::sql::postgres as statement;
use crate::sql::{Driver, Mark, Transition, Tx};
use crate::transitions::tasks::nodes::ReadUnregistered;

use connection::Server;
use hints::{Listener, Notifier};
use transaction::Open;

/// A deadlock or a serialisation failure is retried this often; with the lock order both are rare.
const TRIES: u32 = 10;

/// A store on a server that other nodes share.
pub struct Postgres {
    server: Server,
    hub: Arc<Hub>,
    notifier: Notifier,
    listener: Mutex<Listener>,
    beats: Mutex<BeatWatch>,
    clock: Clock,
}

impl Postgres {
    /// Connects and brings the schema up to date.
    pub async fn open(url: &str, hub: Arc<Hub>, clock: Clock) -> Result<Self, StoreError> {
        let server = Server::connect(url)?;
        server.migrate().await?;
        let notifier = Notifier::start(&server, clock);
        let listener = Mutex::new(Listener::new(server.clone(), notifier.origin().to_owned(), clock));
        Ok(Self { server, hub, notifier, listener, beats: Mutex::default(), clock })
    }

    /// Runs a transition, again if the server asks for it.
    pub async fn write<T: Transition>(&self, transition: T) -> Result<T::Output, StoreError> {
        let mut tries = 0;
        loop {
            match self.try_write(&transition).await {
                Err(Attempt::Again(error)) if tries < TRIES => {
                    tries += 1;
                    tracing::debug!(%error, tries, "the transaction is tried again");
                }
                Err(Attempt::Again(error)) => return Err(StoreError::Unavailable(error)),
                Err(Attempt::Final(error)) => return Err(error),
                Ok(output) => return Ok(output),
            }
        }
    }

    async fn try_write<T: Transition>(&self, transition: &T) -> Result<T::Output, Attempt> {
        let open = Open::on(self.server.client().await.map_err(Attempt::Final)?);
        let client = open.client().map_err(Attempt::Final)?;
        let mut tx = Tx::marked(Driver::Postgres(client), Mark::fresh().map_err(Attempt::Final)?);
        // Polled in this order, so sent in this order; neither of the first two costs a round trip of its own.
        let begin = client.batch_execute(transaction::READ_WRITE);
        let (begun, number, outcome) = join3(begin, commit::number(client), transition.run(&mut tx)).await;
        let (posted, mark) = (tx.take_posted(), tx.mark());
        let topics = tx.into_topics();
        begun.map_err(Attempt::from)?;
        let (output, number) = match (outcome, number) {
            (Ok(output), Ok(number)) => (output, number),
            (Err(error), _) | (_, Err(error)) => {
                // A connection that cannot even do this is closed, which is a rollback too.
                let rolled_back = open.roll_back().await;
                tracing::trace!(ok = rolled_back.is_ok(), "the transaction failed and is not tried again");
                return Err(Attempt::of_store(error));
            }
        };
        if let Err(failure) = open.commit(&posted).await.map_err(Attempt::of_store)? {
            commit::check(&self.server, &self.clock, &number, mark, failure).await.map_err(Attempt::of_store)?;
        }
        self.hub.publish(&topics);
        self.notifier.notify(topics);
        Ok(output)
    }

    /// Runs a transition that only reads, in one snapshot.
    pub async fn read<T: Transition>(&self, transition: T) -> Result<T::Output, StoreError> {
        let open = Open::on(self.server.client().await?);
        let client = open.client()?;
        let mut tx = Tx::new(Driver::Postgres(client));
        let begin = client.batch_execute(transaction::READ_ONLY);
        let (begun, outcome) = join(begin, transition.run(&mut tx)).await;
        drop(tx);
        begun.map_err(statement::error)?;
        open.roll_back().await?;
        outcome
    }

    /// The nodes whose heartbeat has stood still for too long, counted in calls of this function, one a second; and
    /// those that own a job without being a node: they were reaped, and claimed once more before they knew.
    pub async fn dead_nodes(&self, observer: &NodeId) -> Result<Vec<NodeId>, StoreError> {
        let mut beats = self.beats.lock().await;
        let read = async { Ok((self.read(ReadUnregistered).await?, self.read(ReadNodes).await?)) };
        let (unregistered, nodes) = match read.await {
            Ok(read) => read,
            Err(error) => {
                beats.interrupted();
                return Err(error);
            }
        };
        let others: Vec<_> =
            nodes.into_iter().filter(|node| node.id != *observer).map(|node| (node.id, node.beat)).collect();
        let mut dead = beats.tick(self.clock.instant(), &others);
        dead.extend(unregistered.into_iter().filter(|id| id != observer));
        Ok(dead)
    }

    pub async fn foreign_change(&self) -> ForeignChange {
        self.listener.lock().await.next().await
    }

    pub fn location(&self) -> String {
        self.server.location()
    }
}

/// Why one attempt at a transaction did not succeed.
enum Attempt {
    /// A deadlock or serialisation failure: nothing happened, and it may pass.
    Again(String),
    Final(StoreError),
}

impl Attempt {
    fn of_store(error: StoreError) -> Self {
        match error {
            StoreError::Unavailable(message) if message.starts_with(statement::AGAIN) => Self::Again(message),
            other => Self::Final(other),
        }
    }
}

impl From<tokio_postgres::Error> for Attempt {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::of_store(statement::error(error))
    }
}
