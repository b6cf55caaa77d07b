//! Agents in sessions, over the real wires: every behaviour by its number, races, and what a session may not do.

mod chat;
mod notices;
mod on_postgres;
mod passkeys;
mod races;
mod rights;
pub mod stage;
mod started;
mod staying;
mod steering;
mod waiting;
mod wires;
