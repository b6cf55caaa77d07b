//! Markdown and plain text, and what every document must be, whatever it was read from.

use matsu_core::ports::extractor::ExtractError;
use matsu_core::research::document::Document;
use matsu_core::research::passages::{PASSAGE_CHARS_MAX, passages};

use crate::input::choice;

const MEDIA_TYPES: [&str; 4] = ["text/markdown", "text/plain", "text/csv; charset=utf-8", "application/octet-stream"];

pub fn run(data: &[u8]) {
    let (which, body) = choice(data);
    check(matsu_reader::read(body, MEDIA_TYPES[which % MEDIA_TYPES.len()]));
}

/// The text has something in it, headings stand where they say, and passages are cut from the text.
pub fn check(read: Result<Document, ExtractError>) {
    let Ok(document) = read else { return };
    assert!(!document.text.trim().is_empty(), "a document without text");
    check_headings(&document);
    let document = document.with_marks();
    check_headings(&document);
    for passage in passages(&document) {
        assert!(passage.text.chars().count() <= PASSAGE_CHARS_MAX, "a passage that is too long");
        let from = document.text.chars().skip(passage.offset as usize);
        // A passage may be shorter than what is compared.
        let length = passage.text.chars().count().min(20);
        assert!(from.take(length).eq(passage.text.chars().take(20)), "a passage that is not where it says");
    }
}

fn check_headings(document: &Document) {
    for heading in &document.headings {
        let at = document.text.get(heading.at..);
        assert!(at.is_some_and(|text| text.starts_with(&heading.text)), "a heading that is not where it says");
    }
}
