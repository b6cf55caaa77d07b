//! `/mcp`: Streamable HTTP for both eras of the protocol.

use std::sync::Arc;
use std::time::Duration;

use matsu_core::limits::BODY_BYTES_MAX;
use matsu_runtime::dispatch::presets::Offer;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};

use super::{Connection, McpHandler};
use crate::app::App;

/// A legacy session must outlive the longest wait inside it, and must not outlive a forgetful client for ever.
const SESSION_KEPT: Duration = Duration::from_secs(2 * 3600);

/// The service behind the guard of the TCP door, which has checked Host, Origin and token before.
#[must_use]
pub fn service(app: &App) -> StreamableHttpService<McpHandler, LocalSessionManager> {
    let config = StreamableHttpServerConfig::default()
        .with_cancellation_token(app.shutdown().clone())
        .with_max_request_body_bytes(BODY_BYTES_MAX)
        // Ours has refused foreign origins already; two lists of what is ours would drift apart.
        .disable_allowed_hosts();
    let mut sessions = LocalSessionManager::default();
    sessions.session_config.keep_alive = Some(SESSION_KEPT);
    let app = app.clone();
    let connection = Connection { caller: None, offer: Offer::default(), hold_max: None };
    StreamableHttpService::new(move || Ok(McpHandler::new(app.clone(), connection.clone())), Arc::new(sessions), config)
}
