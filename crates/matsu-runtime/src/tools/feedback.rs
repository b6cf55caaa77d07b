//! `feedback`: a person's corrections. Each takes effect at once and is logged.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use matsu_core::error_code::ErrorCode;
use matsu_core::id::{ClaimId, EdgeId};
use matsu_core::ports::store::{ClearRules, CorrectEdge, NewRule, SetAdoption, StoreError};
use matsu_core::research::domain_rule::{DomainPattern, RuleDecision};
use matsu_core::research::evidence::{Adoption, Relation};

use crate::research::recalibration::recalibrate;
use crate::tool::{Annotations, Rules, Tool, ToolContext, ToolError, ToolReply, Toolset};

pub struct Feedback;

#[derive(Deserialize, JsonSchema)]
pub struct Input {
    /// What to correct; decides which other parameters are required.
    action: Action,
    /// For domain actions: example.com, or *.example.com for it and its subdomains.
    #[schemars(length(min = 1, max = 253))]
    domain_pattern: Option<String>,
    /// For claim_reject and claim_restore: id of the claim, from get_materials.
    #[schemars(length(min = 1, max = 100))]
    claim_id: Option<String>,
    /// For edge_correct: edge_id of the evidence, from get_materials.
    #[schemars(length(min = 1, max = 100))]
    edge_id: Option<String>,
    /// For edge_correct: the correct relation of the passage to the claim.
    correct_relation: Option<CorrectRelation>,
    /// Why; stored. Required for domain actions and claim_reject.
    #[schemars(length(min = 1, max = 1000))]
    reason: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Action {
    DomainBlock,
    DomainUnblock,
    DomainClearOverride,
    ClaimReject,
    ClaimRestore,
    EdgeCorrect,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum CorrectRelation {
    Supports,
    Refutes,
    Neutral,
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    action: Action,
    #[serde(skip_serializing_if = "Option::is_none")]
    domain_pattern: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cleared_rules: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    claim_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    edge_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    previous_relation: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    new_relation: Option<String>,
    /// The calibration sample, if the relation changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    sample_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    claim: Option<Scored>,
}

#[derive(Serialize, JsonSchema)]
struct Scored {
    id: String,
    confidence: f64,
}

impl Output {
    fn of(action: Action) -> Self {
        Self {
            action,
            domain_pattern: None,
            rule_id: None,
            cleared_rules: None,
            claim_id: None,
            edge_id: None,
            previous_relation: None,
            new_relation: None,
            sample_id: None,
            claim: None,
        }
    }
}

impl Tool for Feedback {
    const NAME: &'static str = "feedback";
    const TITLE: &'static str = "Correct research results";
    const DESCRIPTION: &'static str = "Research: store a correction that the user made. Blocks or unblocks a domain \
        for all your searches, rejects or restores a claim, or corrects what a passage says about a claim \
        (edge_correct), which recomputes the claim's confidence and trains the judge. Takes effect at once; returns \
        what changed.";
    const TOOLSET: Toolset = Toolset::Research;
    const ANNOTATIONS: Annotations =
        Annotations { read_only: false, destructive: true, idempotent: true, open_world: false };
    const RULES: Rules = Rules::PERSON;
    type Input = Input;
    type Output = Output;

    async fn call(cx: &ToolContext, input: Input) -> Result<ToolReply<Output>, ToolError> {
        input.check_fields()?;
        let output = match input.action {
            Action::DomainBlock => rule(cx, &input, RuleDecision::Block).await?,
            Action::DomainUnblock => rule(cx, &input, RuleDecision::Unblock).await?,
            Action::DomainClearOverride => clear(cx, &input).await?,
            Action::ClaimReject => adopt(cx, &input, Adoption::Rejected).await?,
            Action::ClaimRestore => adopt(cx, &input, Adoption::Adopted).await?,
            Action::EdgeCorrect => correct(cx, &input).await?,
        };
        Ok(ToolReply::Done(output))
    }
}

impl Input {
    /// Every field that the action needs, and none that it has no use for.
    fn check_fields(&self) -> Result<(), ToolError> {
        use Action::{ClaimReject, ClaimRestore, DomainBlock, DomainClearOverride, DomainUnblock, EdgeCorrect};
        let domain = matches!(self.action, DomainBlock | DomainUnblock | DomainClearOverride);
        let claim = matches!(self.action, ClaimReject | ClaimRestore);
        let edge = self.action == EdgeCorrect;
        for (name, is_wanted, is_given) in [
            ("domain_pattern", domain, self.domain_pattern.is_some()),
            ("claim_id", claim, self.claim_id.is_some()),
            ("edge_id", edge, self.edge_id.is_some()),
            ("correct_relation", edge, self.correct_relation.is_some()),
        ] {
            let action = serde_json::to_value(self.action).unwrap_or_default();
            let action = action.as_str().unwrap_or_default();
            if is_wanted && !is_given {
                let message = format!("{name} is required for {action}");
                return Err(ToolError::param(name, "a value", "nothing", message));
            }
            if !is_wanted && is_given {
                let message = format!("{name} is not used with {action}; leave it out");
                return Err(ToolError::param(name, "absent", "a value", message));
            }
        }
        if (domain || self.action == ClaimReject) && self.reason().is_none() {
            return Err(ToolError::param("reason", "a reason", "nothing", "reason is empty; give one, it is stored"));
        }
        Ok(())
    }

    fn reason(&self) -> Option<String> {
        self.reason.as_deref().map(str::trim).filter(|reason| !reason.is_empty()).map(str::to_owned)
    }

    fn pattern(&self) -> Result<DomainPattern, ToolError> {
        let text = self.domain_pattern.as_deref().unwrap_or_default();
        DomainPattern::parse(text).map_err(|error| {
            let expected = error.to_string();
            ToolError::param(
                "domain_pattern",
                &expected,
                text,
                format!("domain_pattern must be {expected}, got {text}"),
            )
        })
    }
}

async fn rule(cx: &ToolContext, input: &Input, decision: RuleDecision) -> Result<Output, ToolError> {
    let (owner, now, pattern) = (cx.principal.clone(), cx.runtime.clock().now(), input.pattern()?);
    let reason = input.reason().unwrap_or_default();
    let rule = cx.runtime.store().run(NewRule { owner, pattern, decision, reason, now }).await?;
    let pattern = Some(rule.pattern.as_str().to_owned());
    Ok(Output { domain_pattern: pattern, rule_id: Some(rule.id.to_string()), ..Output::of(input.action) })
}

async fn clear(cx: &ToolContext, input: &Input) -> Result<Output, ToolError> {
    let (pattern, reason) = (input.pattern()?, input.reason().unwrap_or_default());
    let now = cx.runtime.clock().now();
    let cleared = cx
        .runtime
        .store()
        .run(ClearRules { owner: cx.principal.clone(), pattern: pattern.clone(), reason: reason.clone(), now })
        .await?;
    let pattern = Some(pattern.as_str().to_owned());
    Ok(Output { domain_pattern: pattern, cleared_rules: Some(cleared.len()), ..Output::of(input.action) })
}

async fn adopt(cx: &ToolContext, input: &Input, adoption: Adoption) -> Result<Output, ToolError> {
    let claim_id = ClaimId::from_text(input.claim_id.clone().unwrap_or_default());
    let (owner, reason, now) = (cx.principal.clone(), input.reason(), cx.runtime.clock().now());
    let request = SetAdoption { owner, claim_id, adoption, reason, now };
    cx.runtime.store().run(request).await.map_err(unknown)?;
    Ok(Output { claim_id: input.claim_id.clone(), ..Output::of(input.action) })
}

async fn correct(cx: &ToolContext, input: &Input) -> Result<Output, ToolError> {
    let relation = match input.correct_relation {
        Some(CorrectRelation::Supports) => Relation::Supports,
        Some(CorrectRelation::Refutes) => Relation::Refutes,
        Some(CorrectRelation::Neutral) | None => Relation::Neutral,
    };
    let request = CorrectEdge {
        owner: cx.principal.clone(),
        edge_id: EdgeId::from_text(input.edge_id.clone().unwrap_or_default()),
        relation,
        reason: input.reason(),
        now: cx.runtime.clock().now(),
    };
    let corrected = cx.runtime.store().run(request).await.map_err(unknown)?;
    if corrected.sample_id.is_some() {
        recalibrate(&cx.runtime, &corrected.source).await?;
    }
    let confidence = f64::from(corrected.confidence) / 1000.0;
    Ok(Output {
        edge_id: input.edge_id.clone(),
        previous_relation: Some(corrected.previous.to_string()),
        new_relation: Some(relation.to_string()),
        sample_id: corrected.sample_id.map(|id| id.to_string()),
        claim: Some(Scored { id: corrected.claim_id.to_string(), confidence }),
        ..Output::of(input.action)
    })
}

fn unknown(error: StoreError) -> ToolError {
    match error {
        StoreError::NotFound { what, id } => ToolError {
            details: serde_json::json!({ "resource_type": what, "resource_id": id }),
            ..ToolError::new(ErrorCode::ResourceNotFound, format!("{what} {id} was not found; see get_materials"))
        },
        StoreError::Refused { code: ErrorCode::InvalidParams, message } => {
            ToolError::param("edge_id", "an edge that was judged", "an origin edge", message)
        }
        error => error.into(),
    }
}
