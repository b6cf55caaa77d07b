//! Claims: statements that a fragment makes about a question.

use std::time::Duration;

use async_trait::async_trait;

use crate::research::evidence::Extraction;
use crate::research::headings::Headings;
use crate::slot::Slot;

use super::model_account::ModelAccount;

/// Claims one fragment may give at most.
pub const CLAIMS_PER_FRAGMENT_MAX: usize = 5;

#[async_trait]
pub trait ClaimMaker: Send + Sync {
    fn extraction(&self) -> Extraction;

    /// The inner permit that the caller must hold while it works, if any.
    fn slot(&self) -> Option<Slot>;

    /// What picks from all passages of a search at once, if this maker does; `claims` is then not asked.
    fn pool(&self) -> Option<&dyn PoolClaims> {
        None
    }

    /// The text of the fragment is data: nothing in it is followed. The caller drops drafts whose quote does not stand
    /// in the fragment, and what exceeds the bound.
    async fn claims(&self, request: &ClaimRequest) -> Result<Vec<ClaimDraft>, ModelError>;

    /// Fragments that [`ClaimMaker::claims_of`] takes at once.
    fn fragments_at_once(&self) -> usize {
        1
    }

    /// The claims of several fragments of one search, one list for each, in order. A maker that asks a model asks once,
    /// and notes in the account what that cost.
    async fn claims_of(
        &self,
        requests: &[ClaimRequest],
        _account: &ModelAccount,
    ) -> Result<Vec<Vec<ClaimDraft>>, ModelError> {
        let mut found = Vec::with_capacity(requests.len());
        for request in requests {
            found.push(self.claims(request).await?);
        }
        Ok(found)
    }
}

/// Picks claims out of everything that a search read, when the reading is done. Takes no I/O; may take a moment.
pub trait PoolClaims: Send + Sync {
    /// Best first.
    fn best(&self, request: &PoolRequest) -> Vec<PoolDraft>;
}

#[derive(Clone, Debug, Default)]
pub struct PoolRequest {
    /// The task's question.
    pub question: String,
    /// The search's words.
    pub query: String,
    /// Passages of one document stand together, in their order.
    pub passages: Vec<PoolPassage>,
    pub claims_max: usize,
}

#[derive(Clone, Debug, Default)]
pub struct PoolPassage {
    /// The same for all passages of a document.
    pub document: usize,
    pub title: String,
    pub headings: Headings,
    /// The sentence that leads to the list with which the passage begins, if that sentence stands before the passage.
    pub lead_in: String,
    pub text: String,
}

/// A sentence of a passage, as it stands there.
#[derive(Clone, Debug, PartialEq)]
pub struct PoolDraft {
    /// Number of its passage.
    pub passage: usize,
    pub text: String,
    pub context: String,
    /// How likely it answers, from 0 to 1.
    pub relevance: f64,
    /// What the relevance was made of, by name.
    pub parts: Vec<(&'static str, f64)>,
}

#[derive(Clone, Debug)]
pub struct ClaimRequest {
    /// The task's question.
    pub question: String,
    /// The search's words.
    pub query: String,
    pub heading: String,
    pub fragment: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimDraft {
    pub text: String,
    /// A span of the fragment.
    pub quote: String,
}

/// Why a model gave no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// It may work another time.
    #[error("the model did not answer: {0}")]
    Unavailable(String),
    /// Its quota is used up, or it is asked too often. It works again after a while.
    #[error("the model's quota is used up: {why}")]
    OutOfQuota {
        why: String,
        /// Absent: the vendor does not say when.
        after: Option<Duration>,
    },
    /// Its answer cannot be used.
    #[error("the model's answer cannot be used: {0}")]
    Malformed(String),
}
