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
