//! The runtime as a whole, on the memory store and paused time.
#![allow(clippy::expect_used, reason = "a test may fail where it stands")]

mod faulty_store;
mod fixtures;

mod delegation;
mod misbehaviour;
mod order;
mod outage;
mod recovery;
mod simulation;
mod steering;
mod tasks;
mod waiting;
