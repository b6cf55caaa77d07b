//! Confidence of a claim: a Beta distribution over what other domains say about it.
//!
//! Only `supports` and `refutes` enter. Neutral edges, the claim's own fragment, what kind of domain it is and how
//! sure a model felt never do.

use serde::Serialize;

use super::evidence::Relation;

/// Three decimals each.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Confidence {
    pub confidence: f64,
    pub uncertainty: f64,
    /// 0: everything points one way. 0.5: as much for as against.
    pub controversy: f64,
}

impl Confidence {
    /// From the edges of one claim, as relation and calibrated probability.
    #[must_use]
    pub fn of(edges: impl IntoIterator<Item = (Relation, f64)>) -> Self {
        let (mut alpha, mut beta) = (1.0_f64, 1.0_f64);
        for (relation, probability) in edges {
            match relation {
                Relation::Supports => alpha += probability,
                Relation::Refutes => beta += probability,
                Relation::Neutral | Relation::Origin => {}
            }
        }
        let total = alpha + beta;
        let weight = total - 2.0;
        Self {
            confidence: round3(alpha / total),
            uncertainty: round3((alpha * beta / (total * total * (total + 1.0))).sqrt()),
            controversy: if weight > 0.0 { round3((alpha - 1.0).min(beta - 1.0) / weight) } else { 0.0 },
        }
    }
}

/// Three decimals, as all figures of the evidence are shown.
#[must_use]
pub fn round3(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use Relation::{Neutral, Origin, Refutes, Supports};

    /// Edges, and the three figures they give.
    type Case = (&'static [(Relation, f64)], [f64; 3]);

    #[test]
    fn the_written_numbers_come_out() {
        let table: &[Case] = &[
            (&[], [0.5, 0.289, 0.0]),
            (&[(Supports, 0.9)], [0.655, 0.241, 0.0]),
            (&[(Supports, 0.9), (Refutes, 0.8)], [0.514, 0.231, 0.471]),
            (&[(Supports, 0.9), (Supports, 0.9), (Supports, 0.9)], [0.787, 0.171, 0.0]),
            // What must not count.
            (&[(Origin, 1.0)], [0.5, 0.289, 0.0]),
            (&[(Neutral, 0.99), (Neutral, 0.7)], [0.5, 0.289, 0.0]),
            (&[(Supports, 0.9), (Neutral, 0.9), (Origin, 1.0)], [0.655, 0.241, 0.0]),
            // A person's word is worth one.
            (&[(Refutes, 1.0)], [0.333, 0.236, 0.0]),
        ];
        for (edges, [confidence, uncertainty, controversy]) in table {
            let got = Confidence::of(edges.iter().copied());
            assert_eq!(
                (got.confidence, got.uncertainty, got.controversy),
                (*confidence, *uncertainty, *controversy),
                "{edges:?}"
            );
        }
    }
}
