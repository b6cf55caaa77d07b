//! What work has cost: tokens, and money where it is known.

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::id::RunId;
use crate::principal::Principal;
use crate::words::words;

/// What a run has cost by its own account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    pub input_tokens: u64,
    pub output_tokens: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
}

impl Usage {
    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let cost_usd = match (self.cost_usd, other.cost_usd) {
            (None, None) => None,
            (one, other) => Some(one.unwrap_or(0.0) + other.unwrap_or(0.0)),
        };
        Self {
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
            cost_usd,
        }
    }
}

/// What may be spent. At least one of them is set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UsageLimit {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Dollars.
    #[serde(default, rename = "cost", skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
}

impl UsageLimit {
    /// Whether it can be a limit: something is bounded, by more than nothing.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        let cost = |cost: f64| cost.is_finite() && cost > 0.0;
        (self.tokens.is_some() || self.cost_usd.is_some())
            && self.tokens.is_none_or(|tokens| tokens > 0)
            && self.cost_usd.is_none_or(cost)
    }

    /// Which part is used up, in words.
    #[must_use]
    pub fn used_up_by(&self, used: Usage) -> Option<String> {
        let tokens = used.input_tokens.saturating_add(used.output_tokens);
        if let Some(limit) = self.tokens.filter(|limit| tokens >= *limit) {
            return Some(format!("{tokens} of {limit} tokens"));
        }
        let cost = used.cost_usd.unwrap_or(0.0);
        self.cost_usd.filter(|limit| cost >= *limit).map(|limit| format!("${cost:.2} of ${limit:.2}"))
    }
}

/// What one run has cost. It outlives its task.
#[derive(Clone, Debug, PartialEq)]
pub struct Spent {
    pub run_id: RunId,
    pub owner: Principal,
    /// When it ended.
    pub at: Timestamp,
    pub agent: String,
    /// As the program says it, or as it was asked for.
    pub model: Option<String>,
    /// The directory it was asked to work in.
    pub project: Option<String>,
    /// Absent: the program did not say.
    pub usage: Option<Usage>,
}

/// Dollars for a million tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Price {
    pub input: f64,
    pub output: f64,
}

impl Price {
    /// Dollars.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "no run has so many tokens")]
    pub fn of(&self, usage: Usage) -> f64 {
        (usage.input_tokens as f64 * self.input + usage.output_tokens as f64 * self.output) / 1e6
    }
}

words! {
    /// What sums are kept apart by.
    pub enum UsageBy {
        Day = "day",
        Agent = "agent",
        Model = "model",
        Project = "project",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_used_up_when_it_is_reached() {
        let used = Usage { input_tokens: 90, output_tokens: 10, cost_usd: Some(0.5) };
        let limit = |tokens, cost_usd| UsageLimit { tokens, cost_usd };
        assert_eq!(limit(Some(100), None).used_up_by(used).as_deref(), Some("100 of 100 tokens"));
        assert_eq!(limit(Some(101), Some(0.51)).used_up_by(used), None);
        assert_eq!(limit(None, Some(0.25)).used_up_by(used).as_deref(), Some("$0.50 of $0.25"));
        assert!(limit(Some(1), None).is_valid() && limit(None, Some(0.01)).is_valid());
        for wrong in [limit(None, None), limit(Some(0), None), limit(Some(1), Some(0.0)), limit(None, Some(f64::NAN))] {
            assert!(!wrong.is_valid(), "{wrong:?}");
        }
    }
}
