//! Matsu as its users meet it: real processes, real signals, real databases. Each test has a data directory of its
//! own, a port that was free, and on PostgreSQL a schema of its own; whatever it starts, it ends.
//!
//! PostgreSQL is found through `MATSU_TEST_POSTGRES`; `make test` starts a server and sets it. With `MATSU_CHAOS=1`
//! the long tests below `chaos` run too; `make chaos` does that.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "tests start processes, look at the real clock and read the environment"
)]

mod access;
mod agent_models;
mod api;
mod bad_documents;
mod chaos;
mod chat;
mod chat_limits;
mod commands;
mod config;
mod connect;
mod crash;
mod daemon;
mod events;
mod first_token;
mod following;
mod home;
mod lone_jobs;
mod long_running;
mod model_chats;
mod nodes;
mod older_store;
mod own_mcp_host;
mod page;
mod private_files;
mod process;
mod readme;
mod refused_requests;
mod reports;
mod research;
mod research_bad_input;
mod research_states;
mod route_walk;
mod serve;
mod setup;
mod soak;
mod stores;
mod suspend;
mod tool_calls;
mod unauthenticated;
