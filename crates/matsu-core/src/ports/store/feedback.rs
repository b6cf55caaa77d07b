//! A person's corrections. Each takes effect in the transaction that writes it down, and is logged in the same one.

use serde::Serialize;

use crate::clock::Timestamp;
use crate::id::{ClaimId, EdgeId, FeedbackId, RuleId, SampleId};
use crate::principal::Principal;
use crate::research::domain_rule::{DomainPattern, DomainRule, RuleDecision};
use crate::research::evidence::{Adoption, Relation};

use super::request;

/// Active rules of an owner, newest first.
#[derive(Clone, Debug)]
pub struct ReadRules(pub Principal);
request!(ReadRules => Vec<DomainRule>);

request! {
    NewRule => DomainRule
}

/// Takes back all active rules with exactly this pattern. None is an answer too.
#[derive(Clone, Debug)]
pub struct ClearRules {
    pub owner: Principal,
    pub pattern: DomainPattern,
    pub reason: String,
    pub now: Timestamp,
}
request!(ClearRules => Vec<RuleId>);

request! {
    /// Rejects or restores a claim of the owner's. Unknown or another's: `NotFound`.
    SetAdoption => ()
}

request! {
    /// Sets what an edge says, recomputes its claim, and keeps a sample if the relation changed. An `origin` edge is
    /// `Refused`; unknown or another's: `NotFound`.
    CorrectEdge => CorrectedEdge
}

/// The log, newest first, at most `rows_max`.
#[derive(Clone, Debug)]
pub struct ReadFeedback {
    pub owner: Principal,
    pub rows_max: u32,
}
request!(ReadFeedback => Vec<FeedbackEntry>);

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
