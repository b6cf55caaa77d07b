//! Everything outward: agent command lines, models, search engines, pages, MCP servers. Implements the ports of the
//! core; nothing here decides what a task becomes.

pub mod agents;
pub mod browser;
pub mod claims;
pub mod descriptors;
pub mod engines;
pub mod fetch;
pub mod http;
pub mod judge;
pub mod mcp_host;
pub mod model_research;
pub mod notify;
pub mod providers;
pub mod reach;
pub mod reading;
pub mod releases;
