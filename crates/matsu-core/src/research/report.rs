//! The report of a research task: a direct answer, sections by topic, what is contested, what was not found, and what was
//! searched, read and skipped. Every sentence has numbered citations, each with its quote, its document and the place.
//!
//! Pure: the same material gives the same report. Without a model its sentences are those of the documents; with one
//! they are written from claims, and [`written`] removes what no claim supports.

pub mod bibliography;
mod build;
pub mod html;
pub mod markdown;
mod missing;
mod topics;
pub mod written;

use serde::{Serialize, Serializer};

use crate::clock::Timestamp;
use crate::words::words;

pub use build::{build, merged};
use written::Written;

words! {
    /// How the sentences of a report were made.
    pub enum Method {
        /// Sentences of the documents, word for word.
        Extractive = "extractive",
        /// Written by a model from claims.
        Model = "model",
    }
}

words! {
    /// What passages of other sources make of a claim.
    pub enum Verification {
        Unverified = "unverified",
        Supported = "supported",
        Refuted = "refuted",
        Contested = "contested",
    }
}

impl Verification {
    /// From how many sources support and refute.
    #[must_use]
    pub fn of(supporting: usize, refuting: usize) -> Self {
        match (supporting > 0, refuting > 0) {
            (false, false) => Self::Unverified,
            (true, false) => Self::Supported,
            (false, true) => Self::Refuted,
            (true, true) => Self::Contested,
        }
    }
}

/// What a report is made from.
#[derive(Clone, Debug, Default)]
pub struct Material {
    pub question: String,
    /// Claims that no person rejected, those that answer best first.
    pub findings: Vec<Finding>,
    /// All claims of the task that no person rejected.
    pub claims_total: usize,
    pub searches: Vec<Searched>,
    pub pages: Vec<PageRead>,
    /// What a model wrote, if one did.
    pub written: Option<Written>,
    /// What a reader must know: a judge that failed, a model that did not answer, work that goes on.
    pub notes: Vec<String>,
}

/// A claim with the places that state it and what others say about it.
#[derive(Clone, Debug, Default)]
pub struct Finding {
    pub claim_id: String,
    /// Ids of other claims that say the same.
    pub same: Vec<String>,
    pub text: String,
    /// Headings and the lead-in of a list.
    pub context: String,
    /// How likely it answers the question, from 0 to 1.
    pub relevance: f64,
    /// Absent: no passage of another source counts.
    pub confidence: Option<f64>,
    /// Where it stands, its own place first.
    pub origins: Vec<QuotePlace>,
    pub supports: Vec<QuotePlace>,
    pub refutes: Vec<QuotePlace>,
}

impl Finding {
    #[must_use]
    pub fn verification(&self) -> Verification {
        Verification::of(self.supports.len(), self.refutes.len())
    }

    /// Whether this is the claim of that id, or says the same as it.
    #[must_use]
    pub fn is_claim(&self, id: &str) -> bool {
        self.claim_id == id || self.same.iter().any(|same| same == id)
    }
}

/// A quote in a document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QuotePlace {
    pub fragment_id: String,
    pub quote: String,
    /// The headings above it.
    pub heading: String,
    /// Number of the passage in its document, from 1.
    pub passage: u32,
    pub document: DocumentFacts,
}

/// What names a document.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DocumentFacts {
    pub url: String,
    pub title: String,
    /// What it is counted under when sources are compared.
    pub source: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub authors: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub year: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub doi: Option<String>,
    #[serde(serialize_with = "as_text")]
    pub read_at: Timestamp,
}

/// A search and what came of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Searched {
    pub query: String,
    pub status: String,
    pub engines: Vec<String>,
    /// Engines that gave no answer, each with its cause.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub engines_failed: Vec<String>,
    pub pages_read: u32,
    /// Pages that could not be read.
    pub pages_failed: u32,
    /// Pages that were found and not opened, because the limit of pages was reached or nothing new came.
    pub pages_left: u32,
    pub claims: u32,
    /// Why it failed or ended early.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Pages that were not read, each with the reason.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PageRead {
    pub url: String,
    pub title: String,
}

#[derive(Clone, Debug, Serialize)]
pub struct Report {
    pub question: String,
    pub method: Method,
    /// The model that wrote it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Empty: nothing that was read answers the question.
    pub answer: Vec<Sentence>,
    pub sections: Vec<Section>,
    pub contested: Vec<Contested>,
    pub not_found: Vec<String>,
    pub searched: Vec<Searched>,
    pub read: Vec<PageRead>,
    pub citations: Vec<Citation>,
    /// Sentences that the model wrote and that its claims do not support.
    pub sentences_removed: u32,
    pub claims_used: usize,
    pub claims_total: usize,
    pub notes: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sentence {
    pub text: String,
    /// The heading above it, if it is too short to be understood alone.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub below: String,
    pub claim_ids: Vec<String>,
    pub citations: Vec<usize>,
    pub verification: Verification,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Section {
    pub title: String,
    pub sentences: Vec<Sentence>,
}

/// A claim that passages speak for and against.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Contested {
    pub text: String,
    pub claim_id: String,
    /// Where it stands, and what supports it.
    pub supported_by: Vec<usize>,
    pub refuted_by: Vec<usize>,
    pub verification: Verification,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
}

/// A numbered quote.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Citation {
    /// From 1, in the order in which the report names them.
    pub number: usize,
    pub quote: String,
    pub fragment_id: String,
    pub heading: String,
    /// Number of the passage in its document, from 1.
    pub passage: u32,
    #[serde(flatten)]
    pub document: DocumentFacts,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn as_text<S: Serializer>(time: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(time)
}

/// One line: page text is data, and a line break in it must not become structure.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
