//! How commands reach the store: through the daemon's socket while one lives, else by opening the store themselves.
//! Both ways go through the same routes, so a command cannot behave differently with and without a daemon.

mod events;
mod socket;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use async_trait::async_trait;
use axum::Router;
use axum::body::Body;
use http_body_util::BodyExt;
use hyper::{Method, Request, StatusCode};
use matsu_core::clock::Clock;
use matsu_core::id::{JobId, NodeId};
use matsu_core::limits::DAEMON_START_MAX;
use matsu_core::node::NodeRole;
use matsu_runtime::models::chat::Workforce;
use matsu_runtime::tasks::Tasks;
use matsu_runtime::upkeep;
use matsu_runtime::{Runtime, Service, Workers};
use matsu_server::{App, AppOptions, Transport, router};
use serde_json::Value;
use tokio::net::UnixStream;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use crate::cli::Global;
use crate::compose::{self, Role, VERSION};
use crate::config::Config;
use crate::daemon::announce;
use crate::daemon::lock::ServeLock;
use crate::process;

pub use events::Events;
pub use socket::{ANSWER_MAX, DaemonUnreachable, control, over_socket};

/// How often a daemon that was just started is looked for.
const AFTER_START: Duration = Duration::from_millis(50);
/// How long a daemon that holds the store is given to answer, before its store is read here instead.
const BESIDE_ANOTHER_MAX: Duration = Duration::from_secs(1);

pub enum Client {
    /// The daemon answers.
    Daemon(Daemon),
    /// There is none; the routes run in this process.
    InProcess {
        router: Router,
        runtime: Runtime,
        /// Notices what other processes do to the store meanwhile, or does the work; ends with the command.
        beside: Beside,
    },
}

/// How the daemon is reached, and with what.
#[derive(Clone, Debug)]
pub struct Daemon {
    pub socket: PathBuf,
    token: Option<String>,
}

impl Daemon {
    /// With the token of the run that this process belongs to, else with the one in the data directory.
    pub fn of(config: &Config) -> Self {
        Self { socket: config.paths.socket(), token: token(config) }
    }

    /// A request that presents the token.
    pub fn request(&self, method: Method, path: &str) -> hyper::http::request::Builder {
        let request = Request::builder().method(method).uri(path).header("host", "localhost");
        match &self.token {
            Some(token) => request.header("authorization", format!("Bearer {token}")),
            None => request,
        }
    }
}

/// What this process presents to the daemon.
pub fn token(config: &Config) -> Option<String> {
    crate::config::session_token().or_else(|| owners_token(config))
}

/// The local owner's token. `None`: there is none yet, or the file is another user's.
pub fn owners_token(config: &Config) -> Option<String> {
    let text = std::fs::read_to_string(config.paths.token()).ok()?;
    Some(text.trim().to_owned()).filter(|token| !token.is_empty())
}

/// What goes on in this process besides the command itself.
pub enum Beside {
    Listening { _reads: JoinSet<()> },
    Working { _service: Service, _lock: ServeLock },
}

/// How the next daemon is started.
#[derive(Clone, Copy)]
pub struct Next<'a> {
    pub config: &'a Config,
    pub global: &'a Global,
}

/// So many daemons are asked for the same.
const ASKED_TIMES: u32 = 5;

/// What a process that works beside its command takes from the queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Claiming {
    Everything,
    Nothing,
}

/// Notices what other processes write to the store, for as long as it is kept.
pub fn listening(runtime: &Runtime) -> Beside {
    let (mut listening, runtime) = (JoinSet::new(), runtime.clone());
    listening.spawn(async move { upkeep::listen(&runtime, &CancellationToken::new()).await });
    Beside::Listening { _reads: listening }
}

/// Starts a daemon for work that a chat hands over, if none lives.
pub struct DaemonStarter {
    pub config: Config,
    pub global: Global,
}

#[async_trait]
impl Workforce for DaemonStarter {
    async fn ensure(&self) -> Result<(), String> {
        let daemon = Client::with_daemon(&self.config, &self.global).await;
        daemon.map(drop).map_err(|error| format!("{error:#}"))
    }
}

impl Client {
    pub async fn connect(config: &Config) -> Result<Self> {
        let daemon = Daemon::of(config);
        if UnixStream::connect(&daemon.socket).await.is_ok() {
            let daemon = Self::Daemon(daemon);
            // A run knows its daemon by its own socket, and nothing of stores.
            if crate::config::session_token().is_some() {
                return Ok(daemon);
            }
            // With --store the daemon of this data directory may serve another one.
            match Clock::system().within(HUNG_AFTER, daemon.get("/control/info")).await {
                None => bail!(
                    "the daemon{} does not answer within {} s: it is stopped or very busy. Its log is {}",
                    process_of(config),
                    HUNG_AFTER.as_secs(),
                    config.paths.daemon_log().display()
                ),
                Some(Ok(info)) if info["store"] == config.store_name() => return Ok(daemon),
                // It is just ending.
                Some(Err(error)) if !error.is::<DaemonUnreachable>() => return Err(error),
                Some(Ok(_) | Err(_)) => {}
            }
        }
        // A run works for a principal through the daemon and never opens a store itself.
        if crate::config::session_token().is_some() {
            bail!(
                "no daemon answers at {}; a run can reach Matsu only through its daemon",
                config.paths.socket().display()
            );
        }
        Self::here(config, Workers::None, Claiming::Nothing).await
    }

    /// As [`Client::connect`], for a command whose work must be done: by the daemon, or else by this process, unless
    /// another one holds the store and does it.
    pub async fn at_work(config: &Config) -> Result<Self> {
        let client = Self::connect(config).await?;
        if client.has_daemon() { Ok(client) } else { Self::here(config, Workers::All, Claiming::Everything).await }
    }

    /// As [`Client::at_work`], for a command that ends runs: without a daemon this process takes over those that are
    /// there, so that what they have printed and how they ended is stored first. It begins nothing that waits.
    pub async fn to_stop(config: &Config) -> Result<Self> {
        let client = Self::connect(config).await?;
        if client.has_daemon() { Ok(client) } else { Self::here(config, Workers::All, Claiming::Nothing).await }
    }

    /// The daemon, which is started if none runs. For commands whose work goes on after they have ended.
    pub async fn with_daemon(config: &Config, global: &Global) -> Result<Self> {
        let client = Self::connect(config).await?;
        if client.has_daemon() {
            return Ok(client);
        }
        drop(client);
        // A store in memory is this process's own; no daemon could see it.
        if config.store_url().starts_with("memory:") {
            return Self::here(config, Workers::All, Claiming::Everything).await;
        }
        if let Some(client) = Self::beside_another(config).await? {
            return Ok(client);
        }
        process::start_daemon(&config.paths, &process::daemon_arguments(config, global, false))?;
        let (clock, socket) = (Clock::system(), config.paths.socket());
        let deadline = clock.instant() + DAEMON_START_MAX;
        while clock.instant() < deadline {
            // In a new data directory the token is written shortly before or after the socket is there.
            if token(config).is_some()
                && let Ok(daemon) = Self::daemon(config).await
                && daemon.get("/api/v1/session").await.is_ok()
            {
                return Ok(daemon);
            }
            clock.sleep(AFTER_START).await;
        }
        bail!(
            "no daemon answers at {} within {} s of its start; see {}",
            socket.display(),
            DAEMON_START_MAX.as_secs(),
            config.paths.daemon_log().display()
        )
    }

    /// Where another process serves this store, no second daemon can be started. That process does the work: it is
    /// either the daemon of this data directory, which is just starting, or one of another data directory.
    async fn beside_another(config: &Config) -> Result<Option<Self>> {
        let (clock, lock) = (Clock::system(), config.paths.serve_lock(config.store_url()));
        let deadline = clock.instant() + BESIDE_ANOTHER_MAX;
        while ServeLock::try_take(&lock)?.is_none() {
            let client = Self::connect(config).await?;
            if client.has_daemon() || clock.instant() > deadline {
                return Ok(Some(client));
            }
            clock.sleep(AFTER_START).await;
        }
        Ok(None)
    }

    /// The daemon, for what only it can do.
    pub async fn daemon(config: &Config) -> Result<Self> {
        let daemon = Daemon::of(config);
        let no_daemon = || format!("no daemon answers at {}", daemon.socket.display());
        UnixStream::connect(&daemon.socket).await.with_context(no_daemon)?;
        Ok(Self::Daemon(daemon))
    }

    /// A stream of the daemon's.
    pub async fn events(&self, path: &str) -> Result<Events> {
        match self {
            Self::Daemon(daemon) => Events::open(daemon, path).await,
            Self::InProcess { .. } => bail!("no daemon runs, and only a daemon can stream events; start `matsu serve`"),
        }
    }

    async fn here(config: &Config, workers: Workers, claiming: Claiming) -> Result<Self> {
        let lock = match workers {
            Workers::All => ServeLock::try_take(&config.paths.serve_lock(config.store_url()))?,
            Workers::None => None,
        };
        let opened = compose::open_store(config).await?;
        let agents = compose::agents(config);
        let role = Role {
            node: NodeRole::Command,
            workers: if lock.is_some() { Workers::All } else { Workers::None },
            bodies: compose::bodies(&agents, false),
            agents,
            version: VERSION.to_owned(),
        };
        let runtime = compose::runtime(config, &opened, role)?;
        // Nothing may read as running that no live process holds.
        for dead in opened.store.dead_nodes(&NodeId::from_text("")).await? {
            opened.store.reap_node(&dead, runtime.clock().now()).await?;
        }
        if claiming == Claiming::Nothing {
            runtime.pause_claiming();
        }
        let beside = match lock {
            Some(lock) => Beside::Working { _service: Service::start(&runtime), _lock: lock },
            None => listening(&runtime),
        };
        let app = App::new(AppOptions {
            runtime: runtime.clone(),
            version: VERSION.to_owned(),
            store: config.store_name(),
            shutdown: CancellationToken::new(),
            metrics: std::sync::Arc::new(String::new),
            test_jobs: matsu_server::app::TestJobs::Hidden,
        });
        Ok(Self::InProcess { router: router(&app, Transport::Here), runtime, beside })
    }

    /// What the store holds of open tasks is as old as the last daemon.
    pub fn say_if_alone(&self, has_open_tasks: bool) {
        if has_open_tasks && !self.has_daemon() {
            eprintln!("No daemon runs. This is the state from when the last one ended. Start one: matsu serve");
        }
    }

    /// Without a daemon: waits until the runs of jobs that were stopped have ended.
    pub async fn end_stopped(&self, jobs: &[JobId]) -> Result<()> {
        match self {
            Self::Daemon(_) => Ok(()),
            Self::InProcess { runtime, .. } => Ok(Tasks::of(runtime).end_stopped(jobs).await?),
        }
    }

    /// Whether the work is done by this process and ends with it.
    pub fn works_here(&self) -> bool {
        matches!(self, Self::InProcess { beside: Beside::Working { .. }, .. })
    }

    /// Whether a daemon answers.
    pub fn has_daemon(&self) -> bool {
        matches!(self, Self::Daemon(_))
    }

    pub async fn get(&self, path: &str) -> Result<Value> {
        self.call(Method::GET, path, None).await
    }

    pub async fn post(&self, path: &str, body: Value) -> Result<Value> {
        self.call(Method::POST, path, Some(body)).await
    }

    /// As [`Client::post`], for what depends on the directory the command was started in.
    pub async fn post_from_here(&self, path: &str, body: Value) -> Result<Value> {
        let here = std::env::current_dir().context("cannot find the current directory")?;
        let here = Some(matsu_server::peer::header_of(&here));
        self.call_from(Method::POST, path, Some(body), here).await
    }

    pub async fn patch(&self, path: &str, body: Value) -> Result<Value> {
        self.call(Method::PATCH, path, Some(body)).await
    }

    pub async fn delete(&self, path: &str) -> Result<Value> {
        self.call(Method::DELETE, path, None).await
    }

    /// A request that may be made twice. If the daemon ends meanwhile, the next one is asked; it is started, unless a
    /// person has ended the last one.
    pub async fn ask(&mut self, next: Next<'_>, method: Method, path: &str, body: Option<Value>) -> Result<Value> {
        let mut asked = 1;
        loop {
            match self.call(method.clone(), path, body.clone()).await {
                Err(error)
                    if error.is::<DaemonUnreachable>()
                        && asked < ASKED_TIMES
                        && !next.config.paths.stopped().exists() =>
                {
                    *self = Self::with_daemon(next.config, next.global).await?;
                    asked += 1;
                }
                said => return said,
            }
        }
    }

    async fn call(&self, method: Method, path: &str, body: Option<Value>) -> Result<Value> {
        self.call_from(method, path, body, None).await
    }

    async fn call_from(&self, method: Method, path: &str, body: Option<Value>, here: Option<String>) -> Result<Value> {
        let mut request = match self {
            Self::Daemon(daemon) => daemon.request(method, path),
            Self::InProcess { .. } => Request::builder().method(method).uri(path).header("host", "localhost"),
        };
        if let Some(here) = here {
            request = request.header(matsu_server::peer::DIRECTORY, here);
        }
        let request = match body {
            None => request.body(Body::empty())?,
            Some(body) => request.header("content-type", "application/json").body(Body::from(body.to_string()))?,
        };
        let (status, bytes) = match self {
            Self::Daemon(daemon) => over_socket(&daemon.socket, request).await?,
            Self::InProcess { router, .. } => {
                let response = router.clone().oneshot(request).await?;
                (response.status(), response.into_body().collect().await?.to_bytes())
            }
        };
        if status == StatusCode::NO_CONTENT {
            return Ok(Value::Null);
        }
        let value: Value = serde_json::from_slice(&bytes).unwrap_or_else(|_| {
            // Health and readiness answer in plain text.
            serde_json::json!({ "detail": String::from_utf8_lossy(&bytes) })
        });
        if status.is_success() {
            return Ok(value);
        }
        let code = value["error_code"].as_str().unwrap_or("INTERNAL_ERROR");
        bail!("{} ({code})", value["detail"].as_str().unwrap_or(status.as_str()))
    }
}

/// Text as a part of a path: whatever a person typed as an id must reach the server as that.
pub fn segment(text: &str) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(byte);
    text.bytes().map(|byte| if plain(&byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

/// Names the process of the daemon, if it is known.
fn process_of(config: &Config) -> String {
    let server = announce::read_server_json(&config.paths);
    server
        .map(|server| format!(" (process {}; if it is stopped, continue it with: kill -CONT {0})", server.pid))
        .unwrap_or_default()
}

/// A daemon that takes longer to answer the first question does not work, also on a busy machine.
const HUNG_AFTER: Duration = Duration::from_secs(20);

/// A field of an answer, as text.
pub fn field(value: &Value, name: &str) -> String {
    match &value[name] {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::segment;

    #[test]
    fn whatever_was_typed_is_one_segment() {
        assert_eq!(segment("task_01ab"), "task_01ab");
        assert_eq!(segment("x y/../é?"), "x%20y%2F..%2F%C3%A9%3F");
    }
}
