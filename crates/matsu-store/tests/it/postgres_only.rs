//! What only PostgreSQL can show: heartbeats, lost connections, a killed server, hints between nodes, races.

mod beats;
mod commits;
mod hints;
mod lost;
mod proxy;
mod races;
mod schema;
mod server;
mod storm;

pub use server::emptied;
