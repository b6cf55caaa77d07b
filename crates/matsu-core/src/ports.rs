//! What the inner crates need from the outer ones, as traits.

pub mod agent;
pub mod store;
