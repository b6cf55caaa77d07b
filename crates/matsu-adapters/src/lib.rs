//! Everything outward: agent command lines, models, search engines, pages, MCP servers. Implements the ports of the
//! core; nothing here decides what a task becomes.

pub mod agents;
