//! A document: what an extractor makes of a page.

use serde::{Deserialize, Serialize};

/// Main text with its headings; nothing of the page's frame.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Document {
    pub title: String,
    /// Paragraphs are divided by `\n`. Headings are lines of the text, too.
    pub text: String,
    /// In the order of the text.
    pub headings: Vec<Heading>,
    /// BCP 47, as the page declares it or as it reads.
    pub language: Option<String>,
    pub year: Option<i32>,
    pub authors: Vec<String>,
    pub doi: Option<String>,
    /// The address the page gives itself, if it does.
    pub declared_url: Option<String>,
}

/// A heading inside the text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heading {
    /// Byte offset of its first character in the text.
    pub at: usize,
    /// 1 is the outermost.
    pub level: u8,
    pub text: String,
}
