//! Matsu as a host of MCP servers: for each chat its own connections, opened on first use and closed with the chat.
//!
//! Two chats never share a server process unless the server is marked as shared. Every server that is opened here is
//! closed here, in reverse order, down to the last child of a child.

mod answer;
mod child;
pub mod config;
mod connection;
mod handler;
mod http;
mod naming;
mod server;
mod servers;
mod task_driver;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use matsu_core::clock::Clock;

pub use config::{McpConfig, ServerConfig, Transport};
pub use naming::assign as assign_names;
pub use servers::ChatServers;

use server::Server;

/// All servers of all chats.
pub struct McpHost {
    config: McpConfig,
    clock: Clock,
    /// Names that are taken by Matsu's own tools.
    reserved: Vec<String>,
    chats: Mutex<Vec<(String, Arc<ChatServers>)>>,
    shared: HashMap<String, Arc<Server>>,
}

impl McpHost {
    #[must_use]
    pub fn new(config: McpConfig, reserved: Vec<String>, clock: Clock) -> Self {
        let shared = config.servers.iter().filter(|server| server.shared);
        let shared =
            shared.map(|server| (server.name.clone(), Arc::new(Server::new(server.clone(), &config, clock)))).collect();
        Self { config, clock, reserved, chats: Mutex::default(), shared }
    }

    /// The servers of a chat. Nothing is started before they are used.
    pub fn for_chat(&self, chat: &str) -> Arc<ChatServers> {
        let mut chats = self.chats.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, servers)) = chats.iter().find(|(name, _)| name == chat) {
            return Arc::clone(servers);
        }
        let own = |server: &ServerConfig| match self.shared.get(&server.name) {
            Some(shared) => Arc::clone(shared),
            None => Arc::new(Server::new(server.clone(), &self.config, self.clock)),
        };
        let servers = self.config.servers.iter().map(own).collect();
        let servers = Arc::new(ChatServers::new(servers, self.reserved.clone(), self.clock));
        chats.push((chat.to_owned(), Arc::clone(&servers)));
        servers
    }

    /// Ends what a chat had opened.
    pub async fn close_chat(&self, chat: &str) {
        let closed = {
            let mut chats = self.chats.lock().unwrap_or_else(PoisonError::into_inner);
            chats.iter().position(|(name, _)| name == chat).map(|at| chats.remove(at).1)
        };
        if let Some(servers) = closed {
            servers.close_own().await;
        }
    }

    /// Closes the servers of chats that were not used for a while.
    pub async fn close_idle(&self, idle_max: Duration) {
        let idle: Vec<String> = {
            let chats = self.chats.lock().unwrap_or_else(PoisonError::into_inner);
            chats.iter().filter(|(_, servers)| servers.idle_for() >= idle_max).map(|(name, _)| name.clone()).collect()
        };
        for chat in idle {
            self.close_chat(&chat).await;
        }
    }

    /// Ends everything, the last opened first.
    pub async fn close_all(&self) {
        let chats = std::mem::take(&mut *self.chats.lock().unwrap_or_else(PoisonError::into_inner));
        for (_, servers) in chats.into_iter().rev() {
            servers.close_own().await;
        }
        for server in self.shared.values() {
            server.close().await;
        }
    }

    /// One line for each server: its name, and how many tools it offers or why it is away.
    pub async fn probe(&self) -> Vec<(String, Result<usize, String>)> {
        let servers = self.for_chat("probe");
        let found = servers.probe().await;
        self.close_chat("probe").await;
        found
    }
}
