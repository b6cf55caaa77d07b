//! The contenders that live in the harness itself: limits rather than libraries, and Matsu's server as a child.

pub mod bare_axum;
pub mod bare_grouped;
pub mod bare_sqlite;
pub mod matsu_server;
pub mod mcp_servers;
