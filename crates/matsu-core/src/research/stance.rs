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
    /// Scales three weights to probabilities. Nothing if they are no weights: negative, infinite or all zero.
    #[must_use]
    pub fn checked(supports: f64, refutes: f64, neutral: f64) -> Option<Self> {
        let weights = [supports, refutes, neutral];
        let total: f64 = weights.iter().sum();
        let is_weighed = weights.iter().all(|weight| weight.is_finite() && *weight >= 0.0) && total > 0.0;
        is_weighed.then(|| Self { supports: supports / total, refutes: refutes / total, neutral: neutral / total })
    }

    /// The same for weights that this program computed; an answer of a model goes through [`Stance::checked`]. A figure
    /// that cannot be used takes no side.
    #[must_use]
    pub fn from_weights(supports: f64, refutes: f64, neutral: f64) -> Self {
        Self::checked(supports, refutes, neutral).unwrap_or_else(Self::abstained)
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
    fn weights_that_are_none_are_refused() {
        for weights in [(f64::NAN, 0.5, 0.5), (f64::INFINITY, 0.0, 0.0), (-1.0, 3.0, 0.0), (0.0, 0.0, 0.0)] {
            assert_eq!(Stance::checked(weights.0, weights.1, weights.2), None, "{weights:?}");
        }
        let percent = Stance::checked(90.0, 5.0, 5.0).map(|stance| stance.supports);
        assert!(percent.is_some_and(|supports| (supports - 0.9).abs() < 1e-9));
    }

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
