//! `LISTEN` and `NOTIFY`: hints between nodes. Losing one costs at most the time to the next safety read.
//!
//! Notices are sent after the commit and outside of it: inside, every commit that notifies would queue behind the
//! others on one lock of the server. Notices that gather while one is on its way are sent together.
#![expect(clippy::disallowed_methods, reason = "drives its own two connections; ends with the store")]

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use matsu_core::change::Topic;
use matsu_core::clock::Clock;
use matsu_core::ports::store::{ForeignChange, StoreError};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;
use tokio_postgres::AsyncMessage;

use super::connection::Server;
use crate::sql::postgres::error;

/// PostgreSQL takes payloads of up to 8000 bytes.
const PAYLOAD_BYTES_MAX: usize = 7_500;
/// Sent instead of a list that would not fit.
const EVERYTHING: &str = "*";
/// The first notice goes out at once. Each is a transaction and wakes every listener, so in a storm of changes they
/// are gathered.
const NOTICE_PAUSE: Duration = Duration::from_millis(5);
const RECONNECT_FIRST: Duration = Duration::from_millis(100);
const RECONNECT_MAX: Duration = Duration::from_secs(5);

/// Notifies other nodes of what this one changed.
pub struct Notifier {
    line: UnboundedSender<Vec<Topic>>,
    origin: Arc<str>,
    task: JoinHandle<()>,
}

impl Notifier {
    pub fn start(server: &Server, clock: Clock) -> Self {
        let (line, topics) = unbounded_channel();
        let origin: Arc<str> = matsu_core::id::NodeId::mint(clock.now()).as_str().into();
        let task = tokio::spawn(send_all(server.clone(), Arc::clone(&origin), topics, clock));
        Self { line, origin, task }
    }

    /// Marks this node's own notices, so that it does not wake itself twice.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    pub fn notify(&self, topics: Vec<Topic>) {
        if !topics.is_empty() {
            let _ = self.line.send(topics);
        }
    }
}

impl Drop for Notifier {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn send_all(server: Server, origin: Arc<str>, mut line: UnboundedReceiver<Vec<Topic>>, clock: Clock) {
    let mut waiting = Vec::new();
    while line.recv_many(&mut waiting, 1_024).await > 0 {
        let topics: BTreeSet<Topic> = waiting.drain(..).flatten().collect();
        if let Err(error) = send(&server, &payload(&origin, &topics)).await {
            tracing::debug!(%error, "a notice to other nodes was not sent");
        }
        clock.sleep(NOTICE_PAUSE).await;
    }
}

fn payload(origin: &str, topics: &BTreeSet<Topic>) -> String {
    let mut text = origin.to_owned();
    for topic in topics {
        text.push('\n');
        text.push_str(topic.as_str());
    }
    if text.len() > PAYLOAD_BYTES_MAX { format!("{origin}\n{EVERYTHING}") } else { text }
}

async fn send(server: &Server, payload: &str) -> Result<(), StoreError> {
    let client = server.client().await?;
    // A hint need not survive a crash of the server, so its commit does not wait for the disk.
    let sql = "SELECT set_config('synchronous_commit', 'off', true), pg_notify($1, $2)";
    let statement = client.prepare_cached(sql).await.map_err(error)?;
    client.execute(&statement, &[&server.channel(), &payload]).await.map_err(error)?;
    Ok(())
}

/// Receives what other nodes changed, on a connection of its own.
pub struct Listener {
    server: Server,
    origin: String,
    clock: Clock,
    receiver: Option<(UnboundedReceiver<ForeignChange>, AbortOnDrop)>,
    pause: Duration,
}

struct AbortOnDrop(JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Listener {
    pub fn new(server: Server, origin: String, clock: Clock) -> Self {
        Self { server, origin, clock, receiver: None, pause: RECONNECT_FIRST }
    }

    /// The next hint. After a reconnection the first one is "something": notices sent meanwhile are lost.
    pub async fn next(&mut self) -> ForeignChange {
        loop {
            if let Some((receiver, _)) = &mut self.receiver {
                if let Some(change) = receiver.recv().await {
                    return change;
                }
                self.receiver = None;
            }
            match self.connect().await {
                Ok(()) => {
                    self.pause = RECONNECT_FIRST;
                    return ForeignChange::Unknown;
                }
                Err(error) => {
                    tracing::debug!(%error, "listening to other nodes failed; trying again");
                    self.clock.sleep(self.pause).await;
                    self.pause = (self.pause * 2).min(RECONNECT_MAX);
                }
            }
        }
    }

    async fn connect(&mut self) -> Result<(), StoreError> {
        let (client, mut connection) = self.server.dedicated().await?;
        let (hint, receiver) = unbounded_channel();
        let origin = self.origin.clone();
        let drive = tokio::spawn(async move {
            while let Some(Ok(message)) = poll_fn(|cx| connection.poll_message(cx)).await {
                if let AsyncMessage::Notification(notice) = message
                    && let Some(change) = read(&origin, notice.payload())
                    && hint.send(change).is_err()
                {
                    break;
                }
            }
        });
        let drive = AbortOnDrop(drive);
        client.batch_execute(&format!("LISTEN {}", self.server.channel())).await.map_err(error)?;
        // The connection ends with its client, so the client must live as long as the listening.
        let keep = tokio::spawn(async move {
            let _client = client;
            let _drive = drive;
            std::future::pending::<()>().await;
        });
        self.receiver = Some((receiver, AbortOnDrop(keep)));
        Ok(())
    }
}

/// `None`: our own words.
fn read(origin: &str, payload: &str) -> Option<ForeignChange> {
    let mut lines = payload.lines();
    if lines.next() == Some(origin) {
        return None;
    }
    let topics: Vec<Topic> = lines.map(Topic::from_text).collect();
    let everything = topics.iter().any(|topic| topic.as_str() == EVERYTHING);
    Some(if everything { ForeignChange::Unknown } else { ForeignChange::Topics(topics) })
}
