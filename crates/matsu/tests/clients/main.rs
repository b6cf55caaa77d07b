//! MCP as clients speak it: the official Python SDK, frames written by hand, relays whose daemon or client dies.
//! Each test has a data directory of its own, and whatever it starts, it ends.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "tests start processes, look at the real clock and read the environment"
)]

mod agent_runs;
mod agents;
mod bad_frames;
mod calls;
mod containment;
mod every_tool;
mod handles;
mod hold;
mod home;
mod http;
mod native;
mod notify;
mod owners;
mod python;
mod refused_requests;
mod relay;
mod research;
mod sessions;
mod stdio;
mod taking;
mod waking;
mod webhooks;
