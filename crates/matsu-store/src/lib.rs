//! Where Matsu keeps its state: memory, SQLite, PostgreSQL.
//!
//! Every transition is written once, in [`transitions`], against a small SQL layer; a backend is a driver
//! that runs transitions in transactions. So the backends cannot drift apart.

pub mod backends;
mod memory;
mod postgres;
mod sql;
mod sql_store;
mod sqlite;
mod transitions;

pub use backends::{OpenOptions, Opened, Synchronous, open};
