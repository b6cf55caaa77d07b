//! The runtime as a whole, on the memory store and paused time.

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
