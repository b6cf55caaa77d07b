//! MCP: the same handlers behind the socket, stdio and Streamable HTTP. The only folder that knows rmcp.

pub mod acknowledgement;
pub mod bounded_lines;
mod direct_calls;
mod first_events;
mod handler;
pub mod http;
mod http_sessions;
mod instructions;
mod kept_answers;
mod last_events;
pub mod lines;
mod listing;
pub mod native;
mod request;
mod resumed;
pub mod socket;

pub use handler::{Connection, McpHandler};
pub use request::{caller_of, follows_tasks};
