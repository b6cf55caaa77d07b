//! A person's corrections, each with its line in the log, in one transaction.

use matsu_core::change::ChangeKind;
use matsu_core::clock::Timestamp;
use matsu_core::error_code::ErrorCode;
use matsu_core::id::{ClaimId, FeedbackId, RuleId, SampleId, TaskId};
use matsu_core::ports::store::{
    ClearRules, CorrectEdge, CorrectedEdge, FeedbackEntry, NewRule, ReadFeedback, ReadRules, SetAdoption, StoreError,
};
use matsu_core::principal::Principal;
use matsu_core::research::domain_rule::{DomainPattern, DomainRule, RuleDecision};
use matsu_core::research::evidence::{Adoption, Relation};

use super::record::score;
use crate::sql::{Row, Sql, Transition, Tx, internal, params};
use crate::transitions::ledger::Ledger;

const RULES: Sql = Sql::both(
    "SELECT seq, id, owner, pattern, decision, reason, created_at FROM domain_rules \
     WHERE owner = $1 AND cleared_at IS NULL ORDER BY seq DESC",
);
const ADD_RULE: Sql = Sql::both(
    "INSERT INTO domain_rules (id, owner, pattern, decision, reason, created_at) VALUES ($1, $2, $3, $4, $5, $6) \
     RETURNING seq",
);
const CLEAR_RULES: Sql = Sql::both(
    "UPDATE domain_rules SET cleared_at = $3 WHERE owner = $1 AND pattern = $2 AND cleared_at IS NULL RETURNING id",
);
const LOG: Sql = Sql::both(
    "INSERT INTO feedback (id, owner, action, target, reason, detail_json, at) VALUES ($1, $2, $3, $4, $5, $6, $7)",
);
const READ_LOG: Sql = Sql::both(
    "SELECT id, action, target, reason, detail_json, at FROM feedback WHERE owner = $1 ORDER BY seq DESC LIMIT $2",
);
const TASK_OF_CLAIM: Sql =
    Sql::both("SELECT c.task_id FROM claims c JOIN tasks t ON t.id = c.task_id WHERE c.id = $1 AND t.owner = $2");
const ADOPT: Sql = Sql::both("UPDATE claims SET adoption = $2, rejection_reason = $3 WHERE id = $1");
const EDGE: Sql = Sql::both(
    "SELECT e.claim_id, c.task_id FROM edges e JOIN claims c ON c.id = e.claim_id JOIN tasks t ON t.id = c.task_id \
     WHERE e.id = $1 AND t.owner = $2",
);
/// Read behind the task's lock, so that of two corrections the second sees the first.
const EDGE_NOW: Sql = Sql::both("SELECT relation, stance_json, source FROM edges WHERE id = $1");
const CORRECT: Sql = Sql::both("UPDATE edges SET relation = $2, probability = '1', is_corrected = 1 WHERE id = $1");
const SAMPLE: Sql = Sql::both(
    "INSERT INTO calibration_samples (id, source, edge_id, stance_json, correct, created_at) \
     VALUES ($1, $2, $3, $4, $5, $6)",
);

/// One line of the log.
struct Line<'a> {
    owner: &'a Principal,
    action: &'static str,
    target: &'a str,
    reason: Option<&'a str>,
    detail: serde_json::Value,
    at: Timestamp,
}

impl Line<'_> {
    async fn write(&self, tx: &mut Tx<'_>) -> Result<(), StoreError> {
        let (id, detail) = (FeedbackId::mint(self.at), self.detail.to_string());
        tx.run(&LOG, params![&id, self.owner, self.action, self.target, self.reason, &detail, self.at]).await?;
        Ok(())
    }
}

impl Transition for ReadRules {
    const READS: bool = true;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Vec<DomainRule>, StoreError> {
        let rows = tx.rows(&RULES, params![&self.0]).await?;
        rows.iter()
            .map(|row| {
                let mut c = row.columns();
                Ok(DomainRule {
                    seq: c.int()?,
                    id: RuleId::from_text(c.text()?),
                    owner: Principal::from_text(c.text()?),
                    pattern: DomainPattern::from_text(c.text()?),
                    decision: c.word(RuleDecision::parse)?,
                    reason: c.text()?,
                    created_at: c.time()?,
                })
            })
            .collect()
    }
}

impl Transition for NewRule {
    async fn run(&self, tx: &mut Tx<'_>) -> Result<DomainRule, StoreError> {
        let (id, pattern) = (RuleId::mint(self.now), self.pattern.as_str());
        let row = params![&id, &self.owner, pattern, self.decision.as_str(), &self.reason, self.now];
        let seq = tx.row(&ADD_RULE, row).await?.ok_or_else(|| internal("a rule has no number"))?.only_int()?;
        let action = match self.decision {
            RuleDecision::Block => "domain_block",
            RuleDecision::Unblock => "domain_unblock",
        };
        let detail = serde_json::json!({ "rule_id": id.as_str() });
        let reason = Some(self.reason.as_str());
        Line { owner: &self.owner, action, target: pattern, reason, detail, at: self.now }.write(tx).await?;
        Ok(DomainRule {
            id,
            owner: self.owner.clone(),
            pattern: self.pattern.clone(),
            decision: self.decision,
            reason: self.reason.clone(),
            created_at: self.now,
            seq,
        })
    }
}

impl Transition for ClearRules {
    async fn run(&self, tx: &mut Tx<'_>) -> Result<Vec<RuleId>, StoreError> {
        let rows = tx.rows(&CLEAR_RULES, params![&self.owner, self.pattern.as_str(), self.now]).await?;
        let cleared = rows.iter().map(Row::only_text).collect::<Result<Vec<_>, _>>()?;
        let (target, reason) = (self.pattern.as_str(), Some(self.reason.as_str()));
        let detail = serde_json::json!({ "cleared_rules": &cleared });
        let line = Line { owner: &self.owner, action: "domain_clear_override", target, reason, detail, at: self.now };
        line.write(tx).await?;
        Ok(cleared.into_iter().map(RuleId::from_text).collect())
    }
}

impl Transition for SetAdoption {
    async fn run(&self, tx: &mut Tx<'_>) -> Result<(), StoreError> {
        let row = tx.row(&TASK_OF_CLAIM, params![&self.claim_id, &self.owner]).await?;
        let row = row.ok_or_else(|| StoreError::NotFound { what: "claim", id: self.claim_id.to_string() })?;
        let task_id = TaskId::from_text(row.only_text()?);
        let mut ledger = Ledger::lock(tx, [task_id.clone()]).await?;
        let (action, kept_reason) = match self.adoption {
            Adoption::Rejected => ("claim_reject", self.reason.as_ref()),
            Adoption::Adopted => ("claim_restore", None),
        };
        tx.run(&ADOPT, params![&self.claim_id, self.adoption.as_str(), kept_reason]).await?;
        let (target, reason) = (self.claim_id.as_str(), self.reason.as_deref());
        let detail = serde_json::json!({ "task_id": task_id.as_str() });
        Line { owner: &self.owner, action, target, reason, detail, at: self.now }.write(tx).await?;
        ledger.change(&task_id, ChangeKind::Progress, |_| {});
        ledger.write(tx, self.now).await?;
        Ok(())
    }
}

impl Transition for CorrectEdge {
    async fn run(&self, tx: &mut Tx<'_>) -> Result<CorrectedEdge, StoreError> {
        let unknown = || StoreError::NotFound { what: "edge", id: self.edge_id.to_string() };
        let row = tx.row(&EDGE, params![&self.edge_id, &self.owner]).await?.ok_or_else(unknown)?;
        let mut c = row.columns();
        let (claim_id, task_id) = (ClaimId::from_text(c.text()?), TaskId::from_text(c.text()?));
        let mut ledger = Ledger::lock(tx, [task_id.clone()]).await?;
        let row = tx.row(&EDGE_NOW, params![&self.edge_id]).await?.ok_or_else(unknown)?;
        let mut c = row.columns();
        let previous = c.word(Relation::parse)?;
        let (Some(stance), Some(source)) = (c.opt_text()?, c.opt_text()?) else {
            let message = format!("edge {} only links its claim to its source; it cannot be corrected", self.edge_id);
            return Err(StoreError::Refused { code: ErrorCode::InvalidParams, message });
        };
        tx.run(&CORRECT, params![&self.edge_id, self.relation.as_str()]).await?;
        let sample_id = (previous != self.relation).then(|| SampleId::mint(self.now));
        if let Some(id) = &sample_id {
            let row = params![id, &source, &self.edge_id, &stance, self.relation.as_str(), self.now];
            tx.run(&SAMPLE, row).await?;
        }
        let confidence = score(tx, &claim_id).await?;
        let detail =
            serde_json::json!({ "previous_relation": previous.as_str(), "new_relation": self.relation.as_str() });
        let (target, reason) = (self.edge_id.as_str(), self.reason.as_deref());
        let line = Line { owner: &self.owner, action: "edge_correct", target, reason, detail, at: self.now };
        line.write(tx).await?;
        ledger.change(&task_id, ChangeKind::Progress, |_| {});
        ledger.write(tx, self.now).await?;
        Ok(CorrectedEdge { previous, sample_id, claim_id, confidence, source })
    }
}

impl Transition for ReadFeedback {
    const READS: bool = true;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Vec<FeedbackEntry>, StoreError> {
        let rows = tx.rows(&READ_LOG, params![&self.owner, self.rows_max]).await?;
        rows.iter()
            .map(|row| {
                let mut c = row.columns();
                Ok(FeedbackEntry {
                    id: FeedbackId::from_text(c.text()?),
                    action: c.text()?,
                    target: c.text()?,
                    reason: c.opt_text()?,
                    detail_json: c.text()?,
                    at: c.time()?,
                })
            })
            .collect()
    }
}
