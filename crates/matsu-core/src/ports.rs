//! What the inner crates need from the outer ones, as traits.

pub mod provider;
pub mod store;
pub mod tool_source;
