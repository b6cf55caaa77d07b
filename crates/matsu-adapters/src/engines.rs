//! Search engines: one file each. Those that are asked over the network have a line in [`WEB_ENGINES`].

pub mod local;
pub mod openalex;
pub mod searxng;
mod service;

use std::sync::Arc;

use matsu_core::ports::search_engine::{EngineError, SearchEngine};

/// An engine that is asked over the network.
pub struct EngineEntry {
    /// The setting with its address, or `off`.
    pub setting: &'static str,
    /// Fails if the address cannot be used.
    pub make: fn(EngineSettings<'_>) -> Result<Arc<dyn SearchEngine>, EngineError>,
}

/// What an engine is made with.
pub struct EngineSettings<'a> {
    pub address: &'a str,
    pub user_agent: &'a str,
    /// An address of e-mail for services that ask polite callers for one.
    pub contact: Option<String>,
}

/// Every engine on the network, in the order they are asked.
pub const WEB_ENGINES: &[EngineEntry] = &[searxng::ENTRY, openalex::ENTRY];

#[cfg(test)]
mod tests;
