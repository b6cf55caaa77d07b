//! The limit for wake-ups over HTTP: an axum handler parked on a tokio watch, and nothing else.
//!
//! It runs as a child process so that its memory can be read from outside. Publishing is a line on its standard input;
//! the reply carries the time just before the publication, stamped here.

use std::net::SocketAddr;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result};
use axum::Router;
use axum::extract::{Query, State};
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::get;
use serde::Deserialize;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::watch;

use crate::waiters::monotonic_ns;
use crate::wake::{Topic, WakeTarget};

/// The reply to a publication waits this long, so that it does not compete with the wake-up it is about.
const REPLY_DELAY: Duration = Duration::from_millis(5);

#[derive(Clone)]
struct Topics {
    probe: watch::Sender<u64>,
    crowd: watch::Sender<u64>,
}

impl Topics {
    fn get(&self, name: &str) -> &watch::Sender<u64> {
        if name == "probe" { &self.probe } else { &self.crowd }
    }
}

#[derive(Deserialize)]
struct WaitParams {
    task: String,
    since: u64,
}

pub fn serve() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let topics = Topics { probe: watch::Sender::new(0), crowd: watch::Sender::new(0) };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        println!("{}", listener.local_addr()?);
        let app = Router::new().route("/wait", get(wait)).with_state(topics.clone());
        tokio::select! {
            served = async { axum::serve(listener, app).await } => served.context("the server stopped"),
            published = publish_lines(topics) => published,
        }
    })
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

async fn publish_lines(topics: Topics) -> Result<()> {
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Some(name) = lines.next_line().await? {
        let published_ns = monotonic_ns();
        topics.get(&name).send_modify(|revision| *revision += 1);
        tokio::time::sleep(REPLY_DELAY).await;
        println!("{published_ns}");
    }
    Ok(())
}

/// The harness's side of the child; killing it on drop also closes every parked connection.
pub struct BareAxum {
    address: SocketAddr,
    child: Child,
    commands: ChildStdin,
    replies: Lines<BufReader<ChildStdout>>,
}

impl BareAxum {
    pub async fn launch() -> Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .arg("__axum-server")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let commands = child.stdin.take().context("no standard input")?;
        let mut replies = BufReader::new(child.stdout.take().context("no standard output")?).lines();
        let address = replies.next_line().await?.context("the server did not start")?.parse()?;
        Ok(Self { address, child, commands, replies })
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

    fn request(&self, topic: Topic, since: u64) -> Vec<u8> {
        let task = name(topic);
        format!(
            "GET /wait?task={task}&since={since} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer bench\r\n\r\n"
        )
        .into_bytes()
    }

    async fn publish(&mut self, topic: Topic) -> Result<u64> {
        self.commands.write_all(format!("{}\n", name(topic)).as_bytes()).await?;
        Ok(self.replies.next_line().await?.context("the server went away")?.parse()?)
    }
}

fn name(topic: Topic) -> &'static str {
    match topic {
        Topic::Probe => "probe",
        Topic::Crowd => "crowd",
    }
}
