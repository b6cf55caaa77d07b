//! The runtime as a whole, on the memory store and paused time.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test says what it expects")]

mod faulty_store;
mod fixtures;

mod agentic_loop;
mod budget;
mod chat;
mod delegation;
mod misbehaviour;
mod order;
mod outage;
mod recovery;
mod research;
mod sessions;
mod simulation;
mod steering;
mod tasks;
mod tools;
mod waiting;
