//! Search engines: one file each, and one line in [`NAMES`].

pub mod local;
pub mod openalex;
pub mod searxng;
mod service;

/// Every engine there is, in the order they are offered.
pub const NAMES: &[&str] = &[local::NAME, searxng::NAME, openalex::NAME];

#[cfg(test)]
mod tests;
