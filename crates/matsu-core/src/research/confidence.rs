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

/// What one passage says about a claim, and the source that it counts for.
#[derive(Clone, Debug, PartialEq)]
pub struct Vote {
    pub relation: Relation,
    pub probability: f64,
    pub source: String,
    /// A person decided it.
    pub is_corrected: bool,
}

/// The places of the votes that count, one for each source: what a person corrected, else the strongest; of equals the
/// one that refutes. A source does not count more because it repeats itself, and one that states the claim itself does
/// not confirm it.
#[must_use]
pub fn counted(votes: &[Vote]) -> Vec<usize> {
    let is_origin = |source: &str| votes.iter().any(|vote| vote.relation == Relation::Origin && vote.source == source);
    let is_telling = |vote: &Vote| match vote.relation {
        Relation::Supports | Relation::Refutes => vote.is_corrected || !is_origin(&vote.source),
        Relation::Neutral => vote.is_corrected,
        Relation::Origin => false,
    };
    let weight = |vote: &Vote| (vote.is_corrected, vote.probability, vote.relation == Relation::Refutes);
    let mut chosen: Vec<usize> = Vec::new();
    for (at, vote) in votes.iter().enumerate().filter(|(_, vote)| is_telling(vote)) {
        match chosen.iter_mut().find(|known| votes[**known].source == vote.source) {
            None => chosen.push(at),
            Some(known) if weight(vote) > weight(&votes[*known]) => *known = at,
            Some(_) => {}
        }
    }
    chosen
}

/// The votes that count, as edges.
#[must_use]
pub fn counted_edges(votes: &[Vote]) -> Vec<(Relation, f64)> {
    counted(votes).into_iter().map(|at| (votes[at].relation, votes[at].probability)).collect()
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
    fn a_source_has_one_vote() {
        let vote = |source: &str, relation, probability, is_corrected| Vote {
            relation,
            probability,
            source: source.to_owned(),
            is_corrected,
        };
        let many: Vec<Vote> = (0..20).map(|_| vote("a.org", Supports, 0.9, false)).collect();
        assert_eq!(counted_edges(&many), [(Supports, 0.9)]);
        let mixed = [
            vote("a.org", Supports, 0.7, false),
            vote("a.org", Refutes, 0.8, false),
            vote("b.org", Neutral, 0.99, false),
            vote("b.org", Supports, 0.6, false),
            vote("c.org", Origin, 1.0, false),
        ];
        assert_eq!(counted_edges(&mixed), [(Refutes, 0.8), (Supports, 0.6)]);
        let corrected = [vote("a.org", Supports, 1.0, false), vote("a.org", Neutral, 1.0, true)];
        assert_eq!(counted_edges(&corrected), [(Neutral, 1.0)], "a person's word decides for its source");
        let equal = [vote("a.org", Supports, 0.9, false), vote("a.org", Refutes, 0.9, false)];
        assert_eq!(counted_edges(&equal), [(Refutes, 0.9)]);
        let turned: Vec<Vote> = equal.into_iter().rev().collect();
        assert_eq!(counted_edges(&turned), [(Refutes, 0.9)], "whatever the order");
        let copied = [vote("a.org", Origin, 1.0, false), vote("a.org", Supports, 0.9, false)];
        assert_eq!(counted_edges(&copied), [], "a source that states it does not confirm it");
    }

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
