//! The servers of one chat, as one source of tools.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::join_all;
use matsu_core::clock::Clock;
use matsu_core::ports::provider::{Danger, ToolSpec};
use matsu_core::ports::tool_source::{Offered, ToolAnswer, ToolReply, ToolRequest, ToolSource};
use rmcp::model::Tool;
use serde_json::Value;
use tokio::time::Instant;

use super::naming::assign;
use super::server::Server;

pub struct ChatServers {
    /// In the order of their names.
    servers: Vec<Arc<Server>>,
    reserved: Vec<String>,
    clock: Clock,
    used_at: Mutex<Instant>,
    /// What each name of the last offer stands for: (name, server, tool).
    routes: Mutex<Vec<(String, usize, String)>>,
}

impl ChatServers {
    pub fn new(servers: Vec<Arc<Server>>, reserved: Vec<String>, clock: Clock) -> Self {
        let used_at = Mutex::new(clock.instant());
        Self { servers, reserved, clock, used_at, routes: Mutex::default() }
    }

    fn touch(&self) {
        *self.used_at.lock().unwrap_or_else(PoisonError::into_inner) = self.clock.instant();
    }

    pub fn idle_for(&self) -> Duration {
        self.clock.instant() - *self.used_at.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes what is this chat's alone, the last opened first.
    pub async fn close_own(&self) {
        for server in self.servers.iter().rev().filter(|server| !server.config.shared) {
            server.close().await;
        }
    }

    pub async fn probe(&self) -> Vec<(String, Result<usize, String>)> {
        let found = self.servers.iter().map(|server| async {
            let tools = server.tools().await.map(|tools| tools.len());
            (server.config.name.clone(), tools)
        });
        join_all(found).await
    }

    fn route(&self, name: &str) -> Option<(usize, String)> {
        let routes = self.routes.lock().unwrap_or_else(PoisonError::into_inner);
        routes.iter().find(|(known, _, _)| known == name).map(|(_, server, tool)| (*server, tool.clone()))
    }
}

#[async_trait]
impl ToolSource for ChatServers {
    async fn offer(&self) -> Offered {
        self.touch();
        let lists = join_all(self.servers.iter().map(|server| server.tools())).await;
        let (mut found, mut notes): (Vec<(usize, Tool)>, Vec<String>) = (Vec::new(), Vec::new());
        for (at, (server, tools)) in self.servers.iter().zip(lists).enumerate() {
            match tools {
                Ok(tools) => found.extend(tools.into_iter().map(|tool| (at, tool))),
                Err(reason) => notes.push(format!("the tools of {} are not available: {reason}", server.config.name)),
            }
        }
        let pairs: Vec<(&str, &str)> =
            found.iter().map(|(at, tool)| (self.servers[*at].config.name.as_str(), tool.name.as_ref())).collect();
        let names = assign(&pairs, &self.reserved);
        let routes = names.iter().zip(&found).map(|(name, (at, tool))| (name.clone(), *at, tool.name.to_string()));
        *self.routes.lock().unwrap_or_else(PoisonError::into_inner) = routes.collect();
        Offered { tools: names.iter().zip(&found).map(|(name, (_, tool))| spec(name, tool)).collect(), notes }
    }

    async fn patience(&self, tool: &str) -> Option<Duration> {
        let (at, _) = self.route(tool)?;
        self.servers.get(at).map(|server| server.config.timeout)
    }

    async fn call(&self, request: ToolRequest) -> ToolReply {
        self.touch();
        let route = self.route(&request.name);
        let Some((server, tool)) = route.and_then(|(at, tool)| Some((self.servers.get(at)?, tool))) else {
            return ToolReply::Now(ToolAnswer::error(format!("no server offers {}", request.name)));
        };
        let reply = server.call(&tool, request).await;
        self.touch();
        reply
    }
}

fn spec(name: &str, tool: &Tool) -> ToolSpec {
    let input = Value::Object((*tool.input_schema).clone());
    ToolSpec::new(name, tool.description.as_deref().unwrap_or_default(), input, danger(tool))
}

/// What MCP says holds when a server says nothing: it may change things, and destroy some.
fn danger(tool: &Tool) -> Danger {
    let hints = tool.annotations.as_ref();
    if hints.and_then(|hints| hints.read_only_hint) == Some(true) {
        Danger::ReadOnly
    } else if hints.and_then(|hints| hints.destructive_hint) == Some(false) {
        Danger::Writes
    } else {
        Danger::Destructive
    }
}
