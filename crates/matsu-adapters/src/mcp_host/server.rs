//! One configured server: connected when it is needed, and again after it was lost, with growing pauses.

use std::sync::Arc;
use std::time::Duration;

use matsu_core::clock::Clock;
use matsu_core::ports::tool_source::{ToolAnswer, ToolReply, ToolRequest};
use rmcp::model::{CallToolRequestParams, CallToolResponse, Tool};
use rmcp::service::ServiceError;
use serde_json::{Map, Value};
use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::answer::from_result;
use super::config::{McpConfig, ServerConfig};
use super::connection::Connection;
use super::task_driver;

const RETRY_FIRST: Duration = Duration::from_secs(1);
const RETRY_MAX: Duration = Duration::from_secs(60);
/// How long last words to a server may take.
const FAREWELL_MAX: Duration = Duration::from_secs(2);

pub struct Server {
    pub config: ServerConfig,
    environment: Vec<(String, String)>,
    clock: Clock,
    state: Mutex<State>,
    /// Cancellations that no caller waits for; ended with the connection.
    farewells: Arc<std::sync::Mutex<JoinSet<()>>>,
}

#[derive(Default)]
struct State {
    live: Option<Arc<Connection>>,
    failures: u32,
    /// Not tried again before; with the reason of the last failure.
    away: Option<(Instant, String)>,
}

impl Server {
    pub fn new(config: ServerConfig, host: &McpConfig, clock: Clock) -> Self {
        let environment = host.environment.clone();
        Self { config, environment, clock, state: Mutex::default(), farewells: Arc::default() }
    }

    /// A live connection, made if there is none; else why there is none.
    pub async fn connection(&self) -> Result<Arc<Connection>, String> {
        let mut state = self.state.lock().await;
        if let Some(live) = &state.live {
            if !live.is_lost() {
                return Ok(Arc::clone(live));
            }
            live.close().await;
            state.live = None;
        }
        if let Some((until, reason)) = &state.away {
            let left = until.saturating_duration_since(self.clock.instant());
            if !left.is_zero() {
                return Err(format!("{reason} (tried again in {} s)", left.as_secs() + 1));
            }
        }
        match Connection::open(&self.config, &self.environment, self.clock).await {
            Ok(connection) => {
                let live = Arc::new(connection);
                *state = State { live: Some(Arc::clone(&live)), ..State::default() };
                Ok(live)
            }
            Err(reason) => {
                let pause = RETRY_FIRST.saturating_mul(2_u32.saturating_pow(state.failures)).min(RETRY_MAX);
                state.failures = state.failures.saturating_add(1);
                state.away = Some((self.clock.instant() + pause, reason.clone()));
                Err(reason)
            }
        }
    }

    /// The tools it offers, as far as they are wanted.
    pub async fn tools(&self) -> Result<Vec<Tool>, String> {
        let live = self.connection().await?;
        if live.events.take_tools_changed() {
            live.read_tools().await?;
        }
        let tools = Arc::clone(&*live.tools.lock().await);
        let wanted =
            |tool: &&Tool| self.config.only.as_ref().is_none_or(|only| only.iter().any(|name| *name == tool.name));
        Ok(tools.iter().filter(wanted).cloned().collect())
    }

    pub async fn call(&self, tool: &str, request: ToolRequest) -> ToolReply {
        let name = &self.config.name;
        let live = match self.connection().await {
            Ok(live) => live,
            Err(reason) => {
                return ToolReply::Now(ToolAnswer::error(format!("the MCP server {name} is not available: {reason}")));
            }
        };
        live.events.listen(&request.alive);
        let mut params = CallToolRequestParams::new(tool.to_owned());
        params.arguments = Some(request.arguments);
        let answer = match live.peer.call_tool_once(params).await {
            Ok(CallToolResponse::Complete(result)) => from_result(&fields(&result)),
            Ok(CallToolResponse::Task(created)) => {
                let farewells = Arc::clone(&self.farewells);
                let driver = task_driver::Driver::new(live.peer.clone(), created.task, self.clock, farewells);
                return ToolReply::Later(Box::pin(driver.run()));
            }
            Ok(_) => ToolAnswer::error(format!("{tool} asks for input, which cannot be given here")),
            Err(error) => {
                if matches!(error, ServiceError::TransportClosed | ServiceError::TransportSend(_)) {
                    self.forget(&live).await;
                }
                ToolAnswer::error(self.lost(tool, &error))
            }
        };
        ToolReply::Now(answer)
    }

    /// The connection itself learns of its end a moment later; no caller may be given it until then.
    async fn forget(&self, lost: &Arc<Connection>) {
        let mut state = self.state.lock().await;
        if state.live.as_ref().is_some_and(|live| Arc::ptr_eq(live, lost)) {
            state.live = None;
        }
        lost.close().await;
    }

    fn lost(&self, tool: &str, error: &ServiceError) -> String {
        let name = &self.config.name;
        match error {
            ServiceError::McpError(error) => format!("{tool} was refused: {}", error.message),
            ServiceError::TransportClosed | ServiceError::TransportSend(_) => {
                format!("the server {name} was lost during {tool}, which may have had effects; it is started again")
            }
            other => format!("{tool} failed: {other}"),
        }
    }

    pub async fn close(&self) {
        let mut farewells =
            std::mem::take(&mut *self.farewells.lock().unwrap_or_else(std::sync::PoisonError::into_inner));
        let _ = self.clock.within(FAREWELL_MAX, async { while farewells.join_next().await.is_some() {} }).await;
        let live = self.state.lock().await.live.take();
        if let Some(live) = live {
            live.close().await;
        }
    }
}

fn fields(result: &impl serde::Serialize) -> Map<String, Value> {
    match serde_json::to_value(result) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    }
}
