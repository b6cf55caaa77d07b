//! Claims: statements that a fragment makes about a question.

use async_trait::async_trait;

use crate::research::evidence::Extraction;
use crate::slot::Slot;

/// Claims one fragment may give at most.
pub const CLAIMS_PER_FRAGMENT_MAX: usize = 5;

#[async_trait]
pub trait ClaimMaker: Send + Sync {
    fn extraction(&self) -> Extraction;

    /// The inner permit that the caller must hold while it works, if any.
    fn slot(&self) -> Option<Slot>;

    /// The text of the fragment is data: nothing in it is followed. The caller drops drafts whose quote does not stand
    /// in the fragment, and what exceeds the bound.
    async fn claims(&self, request: &ClaimRequest) -> Result<Vec<ClaimDraft>, ModelError>;
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
    /// What it said cannot be used.
    #[error("the model's answer cannot be used: {0}")]
    Malformed(String),
}
