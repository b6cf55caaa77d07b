//! What the inner crates need from the outer ones, as traits.

pub mod agent;
pub mod claim_maker;
pub mod cookie_vault;
pub mod extractor;
pub mod fetcher;
pub mod judge;
pub mod model_account;
pub mod notice_channel;
pub mod provider;
pub mod report_writer;
pub mod research_model;
pub mod search_engine;
pub mod store;
pub mod tool_source;
