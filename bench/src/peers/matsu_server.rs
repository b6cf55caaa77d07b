//! Matsu's own program as a child process: `matsu serve`, reached through its public routes.
//!
//! A waiter is a GET of a task's `wait` route with `wait_for=any`. A visible change is a PATCH that pauses or resumes
//! the task: one durable transaction, one new revision. Tasks are of the kind that has no jobs, so nothing else moves.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use bench_peer::Durability;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::process::{Child, Command};

use crate::waiters::Waiter;
use crate::wake::{Topic, WakeTarget};

const START_MAX: Duration = Duration::from_secs(20);
/// Longer than any measurement, so that no waiter returns by itself.
const HOLD_SECONDS: u32 = 3_600;
const MAKERS: usize = 64;

pub struct MatsuServer {
    address: SocketAddr,
    token: String,
    child: Child,
    folder: PathBuf,
    probe: Task,
    crowd: Task,
    others: Vec<String>,
}

struct Task {
    id: String,
    is_paused: bool,
}

#[derive(Deserialize)]
struct ServerJson {
    address: String,
}

impl MatsuServer {
    pub async fn launch(program: &Path, folder: PathBuf, durability: Durability) -> Result<Self> {
        let child = Command::new(program)
            .arg("--data-dir")
            .arg(&folder)
            .args(["serve", "--test-jobs", "--port", "0"])
            .env("MATSU_WAIT_HOLD_MAX", HOLD_SECONDS.to_string())
            .env("MATSU_STORE_SYNCHRONOUS", durability.pragma().to_lowercase())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()?;
        let text = tokio::time::timeout(START_MAX, announced(&folder)).await.context("the server did not start")?;
        let announced: ServerJson = serde_json::from_str(&text)?;
        let address = announced.address.trim_start_matches("http://").parse()?;
        let token = std::fs::read_to_string(folder.join("token"))?.trim().to_owned();
        let mut server = Self {
            address,
            token,
            child,
            folder,
            probe: Task { id: String::new(), is_paused: false },
            crowd: Task { id: String::new(), is_paused: false },
            others: Vec::new(),
        };
        let mut made = make_tasks(address, server.make_request(), 2).await?;
        server.probe.id = made.pop().context("no task was made")?;
        server.crowd.id = made.pop().context("no task was made")?;
        Ok(server)
    }

    fn make_request(&self) -> Vec<u8> {
        self.request("POST", "/test/tasks", "{\"kind\":\"wait\",\"jobs\":[]}")
    }

    fn request(&self, method: &str, path: &str, body: &str) -> Vec<u8> {
        let (token, length) = (&self.token, body.len());
        format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\
             Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        )
        .into_bytes()
    }
}

impl Drop for MatsuServer {
    fn drop(&mut self) {
        // Killed with its folder: nothing of it is asked for again.
        let _ = self.child.start_kill();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

async fn announced(folder: &Path) -> String {
    loop {
        match std::fs::read_to_string(folder.join("server.json")) {
            Ok(text) => return text,
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
}

async fn make_tasks(address: SocketAddr, request: Vec<u8>, count: usize) -> Result<Vec<String>> {
    let makers: Vec<_> = (0..MAKERS.min(count))
        .map(|maker| {
            let (request, share) = (request.clone(), count / MAKERS.min(count));
            let share = share + usize::from(maker < count % MAKERS.min(count));
            tokio::spawn(async move {
                let mut connection = Waiter::connect(address).await?;
                let mut ids = Vec::with_capacity(share);
                for _ in 0..share {
                    connection.send(&request).await?;
                    ids.push(task_id(&connection.response().await?.body)?);
                }
                anyhow::Ok(ids)
            })
        })
        .collect();
    let mut ids = Vec::with_capacity(count);
    for maker in makers {
        ids.extend(maker.await??);
    }
    ensure!(ids.len() == count, "{} of {count} tasks were made", ids.len());
    Ok(ids)
}

fn task_id(body: &[u8]) -> Result<String> {
    #[derive(Deserialize)]
    struct Made {
        task: MadeTask,
    }
    #[derive(Deserialize)]
    struct MadeTask {
        task_id: String,
        revision: u64,
    }
    let made: Made = serde_json::from_slice(body).context("the answer names no task")?;
    if made.task.revision != 1 {
        bail!("a fresh task has revision {}", made.task.revision);
    }
    Ok(made.task.task_id)
}

impl WakeTarget for MatsuServer {
    fn address(&self) -> SocketAddr {
        self.address
    }

    fn pid(&self) -> u32 {
        self.child.id().unwrap_or_default()
    }

    /// Every other client waits for a task of its own.
    async fn make_topics(&mut self, others: usize) -> Result<()> {
        let missing = others.saturating_sub(self.others.len());
        if missing > 0 {
            self.others.extend(make_tasks(self.address, self.make_request(), missing).await?);
        }
        Ok(())
    }

    fn wait_request(&self, topic: Topic, since: u64) -> Vec<u8> {
        let id = match topic {
            Topic::Probe => &self.probe.id,
            Topic::Crowd => &self.crowd.id,
            Topic::Other(number) => &self.others[number % self.others.len()],
        };
        let path = format!("/api/v1/tasks/{id}/wait?since={since}&timeout={HOLD_SECONDS}&wait_for=any");
        format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\r\n", self.token).into_bytes()
    }

    fn publish_request(&mut self, topic: Topic) -> Vec<u8> {
        let task = if matches!(topic, Topic::Probe) { &mut self.probe } else { &mut self.crowd };
        task.is_paused = !task.is_paused;
        let body = if task.is_paused { "{\"status\":\"paused\"}" } else { "{\"status\":\"running\"}" };
        let path = format!("/api/v1/tasks/{}", task.id);
        self.request("PATCH", &path, body)
    }

    /// A task with one job; the wait is for its last job to end. The job says itself when it did.
    async fn end_of_work(&mut self, length: Duration) -> Result<u64> {
        let mut connection = Waiter::connect(self.address).await?;
        let input = json!({ "ms": length.as_millis() as u64, "stamp": true });
        let task = json!({ "jobs": [{ "kind": "sleep", "input": input }] }).to_string();
        connection.send(&self.request("POST", "/test/tasks", &task)).await?;
        let id = task_id(&connection.response().await?.body)?;
        let path = format!("/api/v1/tasks/{id}/wait?since=1&timeout={HOLD_SECONDS}&wait_for=all");
        connection.send(&self.request("GET", &path, "")).await?;
        let arrived_ns = connection.response().await?.arrived_wall_ns;
        connection.send(&self.request("GET", &format!("/api/v1/tasks/{id}/jobs"), "")).await?;
        let jobs: Value = serde_json::from_slice(&connection.response().await?.body)?;
        let output = jobs["items"][0]["output"].as_str().context("the job has not ended")?;
        let output: Value = serde_json::from_str(output)?;
        let ended_ns = output["ended_ns"].as_u64().context("the job does not say when it ended")?;
        Ok(arrived_ns.saturating_sub(ended_ns))
    }
}
