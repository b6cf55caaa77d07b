//! Extraction: the main text of a page, without its frame.

use async_trait::async_trait;

use crate::research::document::Document;

use super::fetcher::FetchedPage;

#[async_trait]
pub trait Extractor: Send + Sync {
    /// HTML, PDF, Markdown, plain text. Never follows anything the page says. Long computing happens off the caller's
    /// thread.
    async fn extract(&self, page: FetchedPage) -> Result<Document, ExtractError>;
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExtractError {
    #[error("cannot read {0}")]
    Unsupported(String),
    /// There is no text in it.
    #[error("no text")]
    Empty,
    #[error("{0}")]
    Malformed(String),
}
