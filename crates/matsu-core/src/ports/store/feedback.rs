//! A person's corrections. Each takes effect in the transaction that writes it down, and is logged in the same one.

use async_trait::async_trait;
use serde::Serialize;

use crate::clock::Timestamp;
use crate::id::{ClaimId, EdgeId, FeedbackId, RuleId, SampleId};
use crate::principal::Principal;
use crate::research::domain_rule::{DomainPattern, DomainRule, RuleDecision};
use crate::research::evidence::{Adoption, Relation};

use super::StoreError;

#[async_trait]
pub trait FeedbackStore {
    /// Active rules of an owner, newest first.
    async fn rules(&self, owner: &Principal) -> Result<Vec<DomainRule>, StoreError>;

    async fn add_rule(&self, request: NewRule) -> Result<DomainRule, StoreError>;

    /// Takes back all active rules with exactly this pattern. None is an answer too.
    async fn clear_rules(
        &self,
        owner: &Principal,
        pattern: &DomainPattern,
        reason: &str,
        now: Timestamp,
    ) -> Result<Vec<RuleId>, StoreError>;

    /// Rejects or restores a claim of the owner's. Unknown or another's: `NotFound`.
    async fn set_adoption(&self, request: SetAdoption) -> Result<(), StoreError>;

    /// Sets what an edge says, recomputes its claim, and keeps a sample if the relation changed. An `origin` edge is
    /// `Refused`; unknown or another's: `NotFound`.
    async fn correct_edge(&self, request: CorrectEdge) -> Result<CorrectedEdge, StoreError>;

    /// The log, newest first, at most `rows_max`.
    async fn feedback_log(&self, owner: &Principal, rows_max: u32) -> Result<Vec<FeedbackEntry>, StoreError>;
}

#[derive(Clone, Debug)]
pub struct NewRule {
    pub owner: Principal,
    pub pattern: DomainPattern,
    pub decision: RuleDecision,
    pub reason: String,
    pub now: Timestamp,
}

#[derive(Clone, Debug)]
pub struct SetAdoption {
    pub owner: Principal,
    pub claim_id: ClaimId,
    pub adoption: Adoption,
    pub reason: Option<String>,
    pub now: Timestamp,
}

#[derive(Clone, Debug)]
pub struct CorrectEdge {
    pub owner: Principal,
    pub edge_id: EdgeId,
    pub relation: Relation,
    pub reason: Option<String>,
    pub now: Timestamp,
}

#[derive(Clone, Debug, PartialEq)]
pub struct CorrectedEdge {
    pub previous: Relation,
    /// Absent if the relation was right already.
    pub sample_id: Option<SampleId>,
    pub claim_id: ClaimId,
    /// Of the claim, afterwards, in thousandths.
    pub confidence: u32,
    /// Whose judgement was corrected.
    pub source: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FeedbackEntry {
    pub id: FeedbackId,
    pub action: String,
    /// The claim, edge or pattern.
    pub target: String,
    pub reason: Option<String>,
    /// What changed, as JSON.
    pub detail_json: String,
    pub at: Timestamp,
}
