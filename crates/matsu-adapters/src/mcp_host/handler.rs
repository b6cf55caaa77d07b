//! What a server may ask of us, and what it sends unasked: signs of life, and that its tools have changed.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use rmcp::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, Implementation, JsonObject, ProgressNotificationParam, TASKS_EXTENSION_ID,
};
use rmcp::service::{NotificationContext, RoleClient};

type Alive = dyn Fn() + Send + Sync;

/// What the connection receives. Shared between it and rmcp.
#[derive(Default)]
pub struct ServerEvents {
    calls: Mutex<Vec<Weak<Alive>>>,
    tools_changed: AtomicBool,
}

impl ServerEvents {
    /// From now on progress of this server is a sign of life for that call, as long as the call holds its `Arc`.
    pub fn listen(&self, alive: &Arc<Alive>) {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        calls.retain(|call| call.strong_count() > 0);
        calls.push(Arc::downgrade(alive));
    }

    fn note_activity(&self) {
        let calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for alive in calls.iter().filter_map(Weak::upgrade) {
            alive();
        }
    }

    /// Whether the list of tools must be read again.
    pub fn take_tools_changed(&self) -> bool {
        self.tools_changed.swap(false, Ordering::SeqCst)
    }
}

pub struct Handler(pub Arc<ServerEvents>);

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        capabilities.extensions = Some([(TASKS_EXTENSION_ID.to_owned(), JsonObject::new())].into());
        ClientConfig::new(capabilities, Implementation::new("matsu", env!("CARGO_PKG_VERSION")))
    }

    async fn on_progress(&self, _params: ProgressNotificationParam, _context: NotificationContext<RoleClient>) {
        self.0.note_activity();
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.0.tools_changed.store(true, Ordering::SeqCst);
    }
}
