//! Foreign documents are parsed in reader processes: `matsu __read`, which can reach no file and no network and has
//! bounds on memory, time and output. A document that breaks its reader is one error; nothing else notices.

pub mod child;
#[cfg(test)]
pub mod in_process;
pub mod lockdown;
pub mod pool;
mod process;
mod text_check;

use async_trait::async_trait;
use matsu_core::ports::extractor::ExtractError;
use matsu_core::research::document::Document;
use matsu_reader::wire::{ReaderReply, Request, Want};

pub use pool::{ReaderLimits, Readers};

/// Answers requests about documents. In the product only reader processes do.
#[async_trait]
pub trait DocumentReader: Send + Sync {
    async fn ask(&self, request: Request) -> Result<ReaderReply, ExtractError>;
}

/// The main text of a document.
///
/// # Errors
/// As the port says.
pub async fn document(reader: &dyn DocumentReader, body: Vec<u8>, media_type: &str) -> Result<Document, ExtractError> {
    if text_check::is_plain(media_type) && !text_check::is_text(&body) {
        return Err(ExtractError::Malformed("not a text".to_owned()));
    }
    match reader.ask(Request { want: Want::Document, media_type: media_type.to_owned(), body }).await? {
        ReaderReply::Document(document) => Ok(document),
        ReaderReply::VisibleChars(_) => Err(wrong_answer()),
    }
}

/// How many characters a browser without scripts would show of a page.
///
/// # Errors
/// As the port says.
pub async fn visible_chars(
    reader: &dyn DocumentReader,
    html: Vec<u8>,
    media_type: &str,
) -> Result<usize, ExtractError> {
    let request = Request { want: Want::VisibleChars, media_type: media_type.to_owned(), body: html };
    match reader.ask(request).await? {
        ReaderReply::VisibleChars(chars) => Ok(chars),
        ReaderReply::Document(_) => Err(wrong_answer()),
    }
}

fn wrong_answer() -> ExtractError {
    ExtractError::Unavailable("the reader process answered another question".to_owned())
}
