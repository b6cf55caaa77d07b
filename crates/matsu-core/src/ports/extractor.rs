//! Extraction: the main text of a page, without its frame.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::research::document::Document;

use super::fetcher::FetchedPage;

#[async_trait]
pub trait Extractor: Send + Sync {
    /// HTML, PDF, Markdown, plain text. Never follows anything the page says. Ends within a bounded time, whatever the
    /// bytes are, and ends no other process with it.
    async fn extract(&self, page: FetchedPage) -> Result<Document, ExtractError>;
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum ExtractError {
    #[error("cannot read {0}")]
    Unsupported(String),
    /// There is no text in it.
    #[error("no text")]
    Empty,
    #[error("{0}")]
    Malformed(String),
    /// Not the page's fault: it may work another time.
    #[error("{0}")]
    Unavailable(String),
}
