//! Everything outward: agent command lines, models, search engines, pages, MCP servers. Implements the ports of the
//! core; nothing here decides what a task becomes.

pub mod agents;
pub mod mcp_host;
pub mod model_research;
pub mod providers;
