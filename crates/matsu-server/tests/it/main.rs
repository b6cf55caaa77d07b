//! The server in this process: routes, rights and shapes over its router, MCP over a pipe in memory. No process, no
//! socket, and paused time.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test says what it expects")]
#![allow(clippy::disallowed_methods, reason = "tests start tasks and read the paused clock")]

mod first_events;
mod harness;
mod mcp;
mod open_calls;
mod rights;
mod shapes;
mod waiting;
