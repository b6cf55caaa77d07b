//! The extractor behind the port: picks the reader by media type, off the caller's thread, for a bounded time.

use std::time::Duration;

use async_trait::async_trait;
use matsu_core::clock::Clock;
use matsu_core::ports::extractor::{ExtractError, Extractor};
use matsu_core::ports::fetcher::FetchedPage;
use matsu_core::research::document::Document;

use super::{decode, html, pdf, plain};

/// Longest time for one page. A page that takes longer is given up; its thread ends by itself, for every step is
/// bounded by the page's size.
const TIME_MAX: Duration = Duration::from_secs(30);

/// Reads fetched pages.
#[derive(Clone, Copy, Debug)]
pub struct PageReader {
    clock: Clock,
}

impl PageReader {
    #[must_use]
    pub fn new(clock: Clock) -> Self {
        Self { clock }
    }
}

#[async_trait]
impl Extractor for PageReader {
    async fn extract(&self, page: FetchedPage) -> Result<Document, ExtractError> {
        let work = tokio::task::spawn_blocking(move || read(&page.body, &page.media_type, Some(&page.url)));
        match self.clock.within(TIME_MAX, work).await {
            Some(Ok(read)) => read,
            Some(Err(_)) => Err(ExtractError::Malformed("the page broke the reader".to_owned())),
            None => Err(ExtractError::Malformed("the page took too long to read".to_owned())),
        }
    }
}

/// The main text of bytes of a media type.
///
/// # Errors
/// As the port says.
pub fn read(body: &[u8], media_type: &str, url: Option<&str>) -> Result<Document, ExtractError> {
    let kind = kind_of(media_type);
    let document = match kind.as_str() {
        "application/pdf" => {
            let text = pdf::join(&pdf::pages(body, pdf::TIME_MAX)?);
            let title = text.lines().next().map(|line| line.chars().take(200).collect()).unwrap_or_default();
            Document { title, text, ..Document::default() }
        }
        "text/markdown" => plain::markdown(&decode(body, Some(media_type))),
        "text/html" | "application/xhtml+xml" | "text/xml" | "application/xml" => {
            html::read(&decode(body, Some(media_type)), url)?
        }
        other if other.starts_with("text/") => plain::text(&decode(body, Some(media_type))),
        other => return Err(ExtractError::Unsupported(other.to_owned())),
    };
    if document.text.trim().is_empty() { Err(ExtractError::Empty) } else { Ok(document) }
}

/// The address that a document declares as its own, without reading all of it.
#[must_use]
pub fn declared_url(body: &[u8], media_type: &str) -> Option<String> {
    // What a document says about itself stands at its beginning.
    let head = &body[..body.len().min(64 * 1024)];
    match kind_of(media_type).as_str() {
        "text/markdown" => plain::declared_url(&decode(head, Some(media_type))),
        "text/html" => super::declared::Declared::of(&dom_query::Document::from(decode(head, Some(media_type)))).url,
        _ => None,
    }
}

fn kind_of(media_type: &str) -> String {
    media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}
