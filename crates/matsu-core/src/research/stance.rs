//! A stance: how likely a passage supports, refutes or leaves open a claim.

use serde::{Deserialize, Serialize};

use super::evidence::Relation;

/// Three probabilities that sum to one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stance {
    pub supports: f64,
    pub refutes: f64,
    pub neutral: f64,
}

impl Stance {
    /// Scales three weights to probabilities. Nonsense (negative, infinite, all zero) abstains.
    #[must_use]
    pub fn from_weights(supports: f64, refutes: f64, neutral: f64) -> Self {
        let weights = [supports, refutes, neutral];
        let total: f64 = weights.iter().sum();
        if weights.iter().any(|weight| !weight.is_finite() || *weight < 0.0) || total <= 0.0 {
            return Self::abstained();
        }
        Self { supports: supports / total, refutes: refutes / total, neutral: neutral / total }
    }

    /// Says nothing either way.
    #[must_use]
    pub fn abstained() -> Self {
        Self { supports: 0.0, refutes: 0.0, neutral: 1.0 }
    }

    #[must_use]
    pub fn probability(&self, relation: Relation) -> f64 {
        match relation {
            Relation::Supports => self.supports,
            Relation::Refutes => self.refutes,
            Relation::Neutral => self.neutral,
            Relation::Origin => 0.0,
        }
    }

    /// The likeliest relation; neutral wins a tie, for a judge that cannot tell must not take sides.
    #[must_use]
    pub fn relation(&self) -> Relation {
        if self.supports > self.neutral && self.supports > self.refutes {
            Relation::Supports
        } else if self.refutes > self.neutral && self.refutes > self.supports {
            Relation::Refutes
        } else {
            Relation::Neutral
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ties_and_nonsense_are_neutral() {
        for (weights, relation) in [
            ((0.9, 0.05, 0.05), Relation::Supports),
            ((0.1, 0.8, 0.1), Relation::Refutes),
            ((0.4, 0.4, 0.2), Relation::Neutral),
            ((0.5, 0.0, 0.5), Relation::Neutral),
            ((f64::NAN, 0.5, 0.5), Relation::Neutral),
            ((-1.0, 3.0, 0.0), Relation::Neutral),
            ((0.0, 0.0, 0.0), Relation::Neutral),
        ] {
            assert_eq!(Stance::from_weights(weights.0, weights.1, weights.2).relation(), relation, "{weights:?}");
        }
    }
}
