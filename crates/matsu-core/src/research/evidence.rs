//! The evidence graph: claim → fragment → page → address. Every claim can be walked back to a sentence on a page.

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::id::{ClaimId, EdgeId, FragmentId, JobId, PageId, TaskId};
use crate::principal::Principal;
use crate::research::headings::Headings;
use crate::words::words;

words! {
    /// What a fragment says about a claim.
    pub enum Relation {
        /// The claim was taken from this fragment. Never scores: a statement does not confirm itself.
        Origin = "origin",
        Supports = "supports",
        Refutes = "refutes",
        Neutral = "neutral",
    }
}

words! {
    /// Whether a claim counts. A rejected one stays, and says so.
    pub enum Adoption {
        Adopted = "adopted",
        Rejected = "rejected",
    }
}

words! {
    /// How a claim was made.
    pub enum Extraction {
        /// A sentence of the fragment itself.
        Extractive = "extractive",
        /// Put into words by a model; its quote was found in the fragment.
        Model = "model",
    }
}

words! {
    /// How a page was come by.
    pub enum PageOrigin {
        Http = "http",
        Browser = "browser",
        /// The engine itself had the text: an abstract, say.
        Engine = "engine",
        /// A document in one of the owner's folders.
        Local = "local",
    }
}

/// A page as stored. `owner` is absent for a page that any principal could have fetched. A page that took the cookies
/// or the folders of a principal belongs to that principal and is shown to no other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SourcePage {
    pub id: PageId,
    /// Canonical; unique for each owner.
    pub url: String,
    pub final_url: String,
    /// What independence is counted by: the registrable domain; of a document on this machine the site or the author
    /// that it names, its repository, or itself (`local:<folder>/<path>`).
    pub domain: String,
    pub owner: Option<Principal>,
    pub origin: PageOrigin,
    pub title: String,
    pub language: Option<String>,
    pub year: Option<i32>,
    pub doi: Option<String>,
    pub authors: Vec<String>,
    pub is_primary: bool,
    pub content_hash: String,
    pub etag: Option<String>,
    pub last_modified: Option<String>,
    pub fetched_at: Timestamp,
}

/// What names a page for good: its address and whose it is. The id of a page that is about to be written is not known
/// before the write, for another search may have stored the same page a moment ago, and then that one's id stands.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PageKey {
    pub url: String,
    pub owner: Option<Principal>,
}

impl SourcePage {
    #[must_use]
    pub fn key(&self) -> PageKey {
        PageKey { url: self.url.clone(), owner: self.owner.clone() }
    }
}

/// A passage of a page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fragment {
    pub id: FragmentId,
    pub page_id: PageId,
    /// Number of the passage on its page, from 0.
    pub position: u32,
    pub text: String,
    pub headings: Headings,
    /// Characters before it in the page's text.
    pub offset: u32,
    pub hash: String,
    /// Near-duplicates differ in few bits of it.
    pub sketch: u64,
}

/// A statement found by a search.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Claim {
    pub id: ClaimId,
    pub task_id: TaskId,
    /// The search that found it.
    pub job_id: JobId,
    pub text: String,
    pub quote: String,
    pub fragment_id: FragmentId,
    /// What stands above it and is needed to understand it: the lead-in of a list, the headings.
    pub context: String,
    /// How likely it answers the question, in ten-thousandths.
    pub relevance: u32,
    /// What the relevance was made of, the largest part first.
    pub parts: Vec<ScorePart>,
    pub extraction: Extraction,
    pub adoption: Adoption,
    pub rejection_reason: Option<String>,
    pub created_at: Timestamp,
}

/// A part of a claim's score.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScorePart {
    pub name: String,
    pub thousandths: i32,
}

/// What one fragment says about one claim. At most one edge joins the two.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Edge {
    pub id: EdgeId,
    pub claim_id: ClaimId,
    pub fragment_id: FragmentId,
    pub relation: Relation,
    /// Calibrated probability of the relation; 1 for `origin` and for a person's word.
    pub probability: f64,
    /// The judge's own three numbers, before calibration. Absent for `origin`.
    pub stance: Option<super::stance::Stance>,
    /// The calibration in force when it was judged; 0 for none.
    pub calibration_version: u32,
    pub is_corrected: bool,
    pub created_at: Timestamp,
}
