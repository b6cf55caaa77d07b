//! The limit for wake-ups over HTTP: an axum handler parked on a tokio watch, and nothing else; or with one row
//! committed to SQLite before a waiter is woken.
//!
//! It runs as a child process so that its memory can be read from outside, and is told to publish over HTTP, as Matsu
//! is.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use axum::Router;
use axum::extract::{Query, State};
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::{get, post};
use bench_peer::Durability;
use rusqlite::Connection;
use serde::Deserialize;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::watch;

use super::bare_sqlite;
use crate::waiters::{Waiter, wall_ns};
use crate::wake::{Topic, WakeTarget};

/// One row of the ledger.
pub const ENDED: &str = "UPDATE ended SET times = times + 1";

#[derive(Clone)]
struct Topics {
    probe: watch::Sender<u64>,
    crowd: watch::Sender<u64>,
    ledger: Option<Arc<Mutex<Connection>>>,
}

impl Topics {
    /// Writes down that something happened, on the caller's own thread: nothing is quicker.
    fn commit(&self) {
        if let Some(ledger) = &self.ledger {
            let ledger = ledger.lock().unwrap_or_else(PoisonError::into_inner);
            let written = ledger.prepare_cached(ENDED).and_then(|mut sql| sql.execute([]));
            written.expect("a row can be written");
        }
    }

    fn get(&self, name: &str) -> &watch::Sender<u64> {
        if name == "probe" { &self.probe } else { &self.crowd }
    }
}

#[derive(Deserialize)]
struct WaitParams {
    task: String,
    since: u64,
}

#[derive(Deserialize)]
struct PublishParams {
    task: String,
}

#[derive(Deserialize)]
struct WorkParams {
    ms: u64,
}

/// With a file to commit to at FULL, or without.
pub fn serve(ledger: Option<&Path>) -> Result<()> {
    let ledger = ledger.map(open_ledger).transpose()?.map(|ledger| Arc::new(Mutex::new(ledger)));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let topics = Topics { probe: watch::Sender::new(1), crowd: watch::Sender::new(1), ledger };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        println!("{}", listener.local_addr()?);
        let app = Router::new().route("/wait", get(wait)).route("/publish", post(publish));
        let app = app.route("/work", get(work)).with_state(topics);
        axum::serve(listener, app).await.context("the server stopped")
    })
}

pub fn open_ledger(path: &Path) -> Result<Connection> {
    let ledger = bare_sqlite::connect(path, Durability::Full)?;
    ledger.execute_batch("CREATE TABLE ended (times INTEGER NOT NULL); INSERT INTO ended VALUES (0)")?;
    Ok(ledger)
}

async fn wait(State(topics): State<Topics>, Query(params): Query<WaitParams>) -> impl IntoResponse {
    let mut receiver = topics.get(&params.task).subscribe();
    let revision = match receiver.wait_for(|revision| *revision > params.since).await {
        Ok(revision) => *revision,
        // The senders live as long as the server.
        Err(_) => params.since,
    };
    let body = format!(
        "{{\"task\":\"{}\",\"status\":\"running\",\"revision\":{revision},\"next\":{{\"since\":{revision}}}}}",
        params.task
    );
    ([(CONTENT_TYPE, "application/json")], body)
}

async fn publish(State(topics): State<Topics>, Query(params): Query<PublishParams>) -> impl IntoResponse {
    topics.commit();
    let topic = topics.get(&params.task);
    topic.send_modify(|revision| *revision += 1);
    let revision = *topic.borrow();
    ([(CONTENT_TYPE, "application/json")], format!("{{\"next\":{{\"since\":{revision}}}}}"))
}

/// Work that ends by itself, and waiters parked on a watch.
async fn work(State(topics): State<Topics>, Query(params): Query<WorkParams>) -> impl IntoResponse {
    let (ends, mut ended) = watch::channel(0);
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(params.ms)).await;
        let ended_ns = wall_ns();
        topics.commit();
        let _ = ends.send(ended_ns);
        ends.closed().await;
    });
    let ended_ns = ended.wait_for(|ended_ns| *ended_ns > 0).await.map_or(0, |ended_ns| *ended_ns);
    ([(CONTENT_TYPE, "application/json")], format!("{{\"ended_ns\":{ended_ns}}}"))
}

/// The harness's side of the child; killing it on drop also closes every parked connection.
pub struct BareAxum {
    address: SocketAddr,
    child: Child,
}

impl BareAxum {
    pub async fn launch(ledger: Option<&Path>) -> Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .arg("__axum-server")
            .args(ledger)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let mut lines = BufReader::new(child.stdout.take().context("no standard output")?).lines();
        let address = lines.next_line().await?.context("the server did not start")?.parse()?;
        Ok(Self { address, child })
    }
}

impl WakeTarget for BareAxum {
    fn address(&self) -> SocketAddr {
        self.address
    }

    fn pid(&self) -> u32 {
        // Only absent once the child has been waited for, which nothing here does.
        self.child.id().unwrap_or_default()
    }

    /// It has two topics and no more: a crowd of others shares one.
    async fn make_topics(&mut self, _others: usize) -> Result<()> {
        Ok(())
    }

    fn wait_request(&self, topic: Topic, since: u64) -> Vec<u8> {
        let task = name(topic);
        format!(
            "GET /wait?task={task}&since={since} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer bench\r\n\r\n"
        )
        .into_bytes()
    }

    fn publish_request(&mut self, topic: Topic) -> Vec<u8> {
        let task = name(topic);
        format!(
            "POST /publish?task={task} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer bench\r\n\
             Content-Length: 0\r\n\r\n"
        )
        .into_bytes()
    }

    async fn end_of_work(&mut self, length: Duration) -> Result<u64> {
        #[derive(Deserialize)]
        struct Ended {
            ended_ns: u64,
        }
        let mut waiter = Waiter::connect(self.address).await?;
        let path = format!("/work?ms={}", length.as_millis());
        waiter.send(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes()).await?;
        let answer = waiter.response().await?;
        let ended: Ended = serde_json::from_slice(&answer.body)?;
        Ok(answer.arrived_wall_ns.saturating_sub(ended.ended_ns))
    }
}

fn name(topic: Topic) -> &'static str {
    match topic {
        Topic::Probe => "probe",
        Topic::Crowd | Topic::Other(_) => "crowd",
    }
}
