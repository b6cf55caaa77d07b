//! What work has cost: tokens, and money where it is known.

use serde::{Deserialize, Serialize};

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
