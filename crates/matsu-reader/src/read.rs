//! Picks the reader by media type.

use matsu_core::ports::extractor::ExtractError;
use matsu_core::research::document::Document;

use crate::blocks::Blocks;
use crate::wire::{ReaderReply, Request, Want};
use crate::{decode, depth, html, pdf, plain};

/// What a reader process answers to a request.
///
/// # Errors
/// As the port says.
pub fn answer(request: &Request) -> Result<ReaderReply, ExtractError> {
    let Request { want, media_type, body } = request;
    match want {
        Want::Document => read(body, media_type).map(ReaderReply::Document),
        Want::VisibleChars => visible_chars(body, media_type).map(ReaderReply::VisibleChars),
    }
}

/// The main text of bytes of a media type.
///
/// # Errors
/// As the port says.
pub fn read(body: &[u8], media_type: &str) -> Result<Document, ExtractError> {
    let document = match kind_of(media_type).as_str() {
        "application/pdf" => {
            let text = pdf::join(&pdf::pages(body)?);
            let title = text.lines().next().map(|line| line.chars().take(200).collect()).unwrap_or_default();
            Document { title, text, ..Document::default() }
        }
        "text/markdown" => plain::markdown(&decode(body, Some(media_type))),
        "text/html" | "application/xhtml+xml" | "text/xml" | "application/xml" => {
            html::read(&html_of(body, media_type)?)?
        }
        other if other.starts_with("text/") => plain::text(&decode(body, Some(media_type))),
        other => return Err(ExtractError::Unsupported(other.to_owned())),
    };
    if document.text.trim().is_empty() { Err(ExtractError::Empty) } else { Ok(document) }
}

/// How many characters a browser without scripts would show of a page.
///
/// # Errors
/// `Malformed`: it is nested too deeply.
pub fn visible_chars(body: &[u8], media_type: &str) -> Result<usize, ExtractError> {
    let blocks = Blocks::of(&dom_query::Document::from(html_of(body, media_type)?));
    Ok(blocks.blocks.iter().map(|block| block.text.chars().count()).sum())
}

/// The text of an HTML page that its parser can take.
fn html_of(body: &[u8], media_type: &str) -> Result<String, ExtractError> {
    let html = decode(body, Some(media_type));
    if depth::is_deeper_than(&html, depth::DEPTH_MAX) {
        let why = format!("its elements are nested more than {} deep", depth::DEPTH_MAX);
        return Err(ExtractError::Malformed(why));
    }
    Ok(html)
}

fn kind_of(media_type: &str) -> String {
    media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}
