//! One live connection to one server: the handshake before anything else, then its tools.

use std::sync::Arc;
use std::time::Duration;

use matsu_core::clock::Clock;
use rmcp::model::{ProtocolVersion, Tool};
use rmcp::service::{ClientInitializeError, ClientLifecycleMode, ClientServiceExt, Peer, RoleClient, RunningService};
use tokio::sync::Mutex;

use super::child::{self, Child};
use super::config::{ServerConfig, Transport};
use super::handler::{Handler, ServerEvents};
use super::http;

/// A server that is fetched on first use may take its time.
const CONNECT_MAX: Duration = Duration::from_secs(60);
const CLOSE_MAX: Duration = Duration::from_secs(2);

pub struct Connection {
    pub peer: Peer<RoleClient>,
    pub events: Arc<ServerEvents>,
    pub tools: Mutex<Arc<[Tool]>>,
    /// Gone once it is closed.
    inner: Mutex<Option<Inner>>,
    clock: Clock,
}

struct Inner {
    service: RunningService<RoleClient, Handler>,
    child: Option<Child>,
}

/// Why there is no connection.
struct Refusal {
    words: String,
    /// It took longer to start than it is asked for its era, and then answered that question after all.
    was_late: bool,
}

impl From<String> for Refusal {
    fn from(words: String) -> Self {
        Self { words, was_late: false }
    }
}

impl Connection {
    /// A server that was late is started again and greeted as a legacy one. If that fails, it is started once more and
    /// greeted as a modern one. Each may take as long as a handshake may.
    pub async fn open(config: &ServerConfig, environment: &[(String, String)], clock: Clock) -> Result<Self, String> {
        let open = async |mode| Self::open_once(config, environment, mode, clock).await;
        match open(auto()).await {
            Err(Refusal { was_late: true, .. }) => {}
            opened => return opened.map_err(|refusal| refusal.words),
        }
        match open(ClientLifecycleMode::Initialize).await {
            Ok(connection) => Ok(connection),
            // Most servers are legacy ones, so this reason is the better one.
            Err(refusal) => {
                let modern = ClientLifecycleMode::Discover { preferred_versions: vec![MODERN] };
                open(modern).await.map_err(|_| refusal.words)
            }
        }
    }

    async fn open_once(
        config: &ServerConfig,
        environment: &[(String, String)],
        mode: ClientLifecycleMode,
        clock: Clock,
    ) -> Result<Self, Refusal> {
        let events = Arc::new(ServerEvents::default());
        let handler = Handler(Arc::clone(&events));
        let (service, child) = match &config.transport {
            Transport::Stdio { command, args, env, cwd } => {
                let (child, out, input) = child::start(command, args, cwd.as_deref(), environment, env)?;
                match greet(handler, (out, input), mode, clock).await {
                    Ok(service) => (service, Some(child)),
                    Err(refusal) => {
                        child.end(clock).await;
                        return Err(refusal);
                    }
                }
            }
            Transport::Http { url, headers } => {
                (greet(handler, http::transport(url, headers)?, mode, clock).await?, None)
            }
        };
        let peer = service.peer().clone();
        let connection = Self {
            peer,
            events,
            tools: Mutex::new(Arc::from([])),
            inner: Mutex::new(Some(Inner { service, child })),
            clock,
        };
        if let Err(words) = connection.read_tools().await {
            connection.close().await;
            return Err(words.into());
        }
        Ok(connection)
    }

    /// Reads the list of tools anew.
    pub async fn read_tools(&self) -> Result<(), String> {
        let listed = self.clock.within(CONNECT_MAX, self.peer.list_all_tools()).await;
        let listed = listed.ok_or("does not list its tools")?;
        let mut tools = listed.map_err(|error| format!("cannot list its tools: {error}"))?;
        tools.sort_by(|a, b| a.name.cmp(&b.name));
        *self.tools.lock().await = tools.into();
        Ok(())
    }

    pub fn is_lost(&self) -> bool {
        self.peer.is_transport_closed()
    }

    /// Closes its input, and sees its process out.
    pub async fn close(&self) {
        let Some(Inner { mut service, child }) = self.inner.lock().await.take() else { return };
        let _ = service.close_with_timeout(CLOSE_MAX).await;
        drop(service);
        if let Some(child) = child {
            child.end(self.clock).await;
        }
    }
}

const MODERN: ProtocolVersion = ProtocolVersion::V_2026_07_28;

/// Asks for the modern era and falls back.
fn auto() -> ClientLifecycleMode {
    ClientLifecycleMode::Auto { preferred_versions: vec![MODERN], legacy_version: Some(ProtocolVersion::V_2025_11_25) }
}

/// The handshake; nothing else is sent before it is over.
async fn greet<T, E, A>(
    handler: Handler,
    transport: T,
    mode: ClientLifecycleMode,
    clock: Clock,
) -> Result<RunningService<RoleClient, Handler>, Refusal>
where
    T: rmcp::transport::IntoTransport<RoleClient, E, A>,
    E: std::error::Error + Send + Sync + 'static,
{
    let greeted = clock.within(CONNECT_MAX, handler.serve_with_lifecycle(transport, mode)).await;
    let greeted = greeted.ok_or_else(|| format!("did not answer initialize within {} s", CONNECT_MAX.as_secs()))?;
    greeted.map_err(|error| Refusal {
        was_late: matches!(
            error,
            ClientInitializeError::ConflictInitResponseId(..) | ClientInitializeError::UncorrelatedErrorResponse { .. }
        ),
        words: format!("the handshake failed: {error}"),
    })
}
