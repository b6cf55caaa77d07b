//! What one request says of itself: its caller, its client, its session, its protocol.

use axum::http::request::Parts;
use matsu_runtime::InstanceId;
use rmcp::model::ProtocolVersion;
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::Value;

use crate::auth::Caller;

/// A longer name of a call is ignored.
const CALL_KEY_BYTES_MAX: usize = 200;

/// The name that a client gives itself: with the request, or once with its handshake.
pub(super) fn client_name(context: &RequestContext<RoleServer>) -> String {
    let with_request = context.meta.client_info().map(|info| info.name);
    let once = || context.peer.peer_info().map(|info| info.client_info.name.clone());
    with_request.or_else(once).unwrap_or_default()
}

/// A client that names its own calls repeats the name when it repeats the call.
pub(super) fn call_key(context: &RequestContext<RoleServer>) -> Option<String> {
    let named = |name: &str| context.meta.get(name).and_then(Value::as_str).map(str::to_owned);
    let clients = named("claudecode/toolUseId").map(|key| format!("claudecode/{key}"));
    let relays = || named("matsu/call").map(|key| format!("relay/{key}"));
    clients.or_else(relays).filter(|key| key.len() <= CALL_KEY_BYTES_MAX)
}

/// Whose token came with this request.
///
/// # Errors
/// A request that passed no guard.
pub fn caller_of(context: &RequestContext<RoleServer>) -> Result<Caller, ErrorData> {
    let parts = context.extensions.get::<Parts>();
    let caller = parts.and_then(|parts| parts.extensions.get::<Caller>()).cloned();
    let mut caller = caller.ok_or_else(|| ErrorData::invalid_request("the request was not authenticated", None))?;
    // A legacy session is an instance of its own; without one the token is.
    if let Some(session) = legacy_session(context) {
        caller.instance = InstanceId::from_text(format!("{}/{session}", caller.instance));
    }
    Ok(caller)
}

/// The metadata by which a request names its session.
pub(super) const SESSION_META: &str = "matsu/session";

pub(super) fn extension<T: Clone + Send + Sync + 'static>(context: &RequestContext<RoleServer>) -> Option<T> {
    context.extensions.get::<Parts>().and_then(|parts| parts.extensions.get::<T>()).cloned()
}

pub(super) fn legacy_session(context: &RequestContext<RoleServer>) -> Option<&str> {
    context.extensions.get::<Parts>().and_then(|parts| parts.headers.get("mcp-session-id")?.to_str().ok())
}

/// Whether this very request says that it is of the modern protocol.
pub(super) fn is_modern(context: &RequestContext<RoleServer>) -> bool {
    context.meta.protocol_version().is_some_and(|version| version >= ProtocolVersion::V_2026_07_28)
}

/// Whether a reply may be a task. Only if this very request is of the modern era and says so itself; what a handshake once declared does not count.
#[must_use]
pub fn follows_tasks(context: &RequestContext<RoleServer>) -> bool {
    is_modern(context) && context.meta.client_capabilities().is_some_and(|capabilities| capabilities.supports_tasks())
}
