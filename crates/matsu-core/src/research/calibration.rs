//! Calibration: what a judge's own numbers are worth, and how that is measured.
//!
//! One judgement gives three pairs of prediction and truth, one for each relation, so that corrections alone (which
//! only ever say "not this one, that one") are enough to learn from.

pub mod fit;

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::id::{EdgeId, EvaluationId, SampleId};
use crate::words::words;

use super::confidence::round3;
use super::evidence::Relation;
use super::stance::Stance;

/// Samples a first fit needs.
pub const SAMPLES_MIN: usize = 10;
/// New samples after which a fit is made anew.
pub const REFIT_EVERY: usize = 10;
/// A fit whose Brier score is worse by more than this share is rolled back by itself.
pub const DEGRADATION_MAX: f64 = 0.05;
/// Bins of the expected calibration error.
pub const BINS: usize = 10;
/// Probabilities are kept this far from 0 and 1 where a logarithm is taken.
const EDGE: f64 = 1e-10;

words! {
    /// How raw probabilities become calibrated ones.
    pub enum CalibrationMethod {
        /// `sigmoid(logit(p) / T)`, with `scale` = 1/T.
        Temperature = "temperature",
        /// `sigmoid(scale · logit(p) + shift)`.
        Platt = "platt",
    }
}

/// One version of one source's calibration.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    pub method: CalibrationMethod,
    pub scale: f64,
    pub shift: f64,
}

impl Calibration {
    /// Changes nothing.
    pub const IDENTITY: Self = Self { method: CalibrationMethod::Temperature, scale: 1.0, shift: 0.0 };

    #[must_use]
    pub fn apply(&self, probability: f64) -> f64 {
        if *self == Self::IDENTITY {
            return probability;
        }
        let p = probability.clamp(EDGE, 1.0 - EDGE);
        let logit = (p / (1.0 - p)).ln();
        1.0 / (1.0 + (-(self.scale * logit + self.shift)).exp())
    }

    /// Each of the three numbers calibrated, and scaled to sum to one again.
    #[must_use]
    pub fn apply_to(&self, stance: &Stance) -> Stance {
        if *self == Self::IDENTITY {
            return *stance;
        }
        Stance::from_weights(self.apply(stance.supports), self.apply(stance.refutes), self.apply(stance.neutral))
    }
}

/// A stored version with what is known about it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CalibrationVersion {
    pub source: String,
    /// From 1; grows and is never reused.
    pub version: u32,
    pub calibration: Calibration,
    pub samples_used: u32,
    /// On the held-out part, before and after.
    pub brier_before: f64,
    pub brier_after: f64,
    pub is_in_force: bool,
    pub created_at: Timestamp,
}

/// A judgement that a person corrected.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CalibrationSample {
    pub id: SampleId,
    pub source: String,
    pub edge_id: EdgeId,
    pub stance: Stance,
    pub correct: Relation,
    pub created_at: Timestamp,
}

impl CalibrationSample {
    /// One pair of prediction and truth for each relation.
    #[must_use]
    pub fn pairs(&self) -> [(f64, bool); 3] {
        [Relation::Supports, Relation::Refutes, Relation::Neutral]
            .map(|relation| (self.stance.probability(relation), relation == self.correct))
    }
}

/// A stored evaluation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    pub id: EvaluationId,
    pub source: String,
    pub brier_score: f64,
    pub brier_score_calibrated: f64,
    pub expected_calibration_error: f64,
    pub samples_evaluated: u32,
    pub bins: Vec<Bin>,
    pub calibration_version: u32,
    pub evaluated_at: Timestamp,
}

/// One bar of a reliability diagram.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bin {
    pub lower: f64,
    pub upper: f64,
    pub count: u32,
    /// Mean prediction.
    pub confidence: f64,
    /// Share that came true.
    pub accuracy: f64,
    pub gap: f64,
}

/// Mean squared error of probabilities; 0 for nothing.
#[must_use]
pub fn brier(pairs: &[(f64, bool)]) -> f64 {
    mean(pairs.iter().map(|(p, y)| (p - truth(*y)).powi(2)))
}

/// Ten equal bins; 0 falls into the first, 1 into the last, any other border into the upper one.
#[must_use]
pub fn bins(pairs: &[(f64, bool)]) -> Vec<Bin> {
    (0..BINS)
        .map(|n| {
            let inside: Vec<&(f64, bool)> = pairs.iter().filter(|(p, _)| bin_of(*p) == n).collect();
            let confidence = mean(inside.iter().map(|(p, _)| *p));
            let accuracy = mean(inside.iter().map(|(_, y)| truth(*y)));
            let border = |n: usize| f64::from(u32::try_from(n).unwrap_or(0)) / 10.0;
            Bin {
                lower: border(n),
                upper: border(n + 1),
                count: u32::try_from(inside.len()).unwrap_or(u32::MAX),
                confidence: round3(confidence),
                accuracy: round3(accuracy),
                gap: round3((confidence - accuracy).abs()),
            }
        })
        .collect()
}

/// Gap between prediction and truth, weighted by how many predictions fell into each bin.
#[must_use]
pub fn expected_calibration_error(pairs: &[(f64, bool)]) -> f64 {
    (0..BINS)
        .map(|n| {
            let inside = pairs.iter().filter(|(p, _)| bin_of(*p) == n);
            inside.map(|(p, y)| p - truth(*y)).sum::<f64>().abs()
        })
        .sum::<f64>()
        / f64::from(u32::try_from(pairs.len().max(1)).unwrap_or(u32::MAX))
}

/// Whether it is time to fit anew: at every tenth sample, or when one of those was passed without a fit.
#[must_use]
pub fn is_refit_due(samples: usize, fits: u32) -> bool {
    let wanted = u32::try_from(samples / REFIT_EVERY).unwrap_or(u32::MAX);
    samples >= SAMPLES_MIN && (samples.is_multiple_of(REFIT_EVERY) || wanted > fits)
}

/// Whether a new fit is so much worse than the one in force that it must not stay.
#[must_use]
pub fn is_degraded(brier_in_force: f64, brier_new: f64) -> bool {
    brier_new > brier_in_force * (1.0 + DEGRADATION_MAX)
}

fn bin_of(p: f64) -> usize {
    // The cast saturates: anything outside 0..1 lands in the outer bins.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
    let n = (p * 10.0) as usize;
    n.min(BINS - 1)
}

fn truth(label: bool) -> f64 {
    if label { 1.0 } else { 0.0 }
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0_u32), |(sum, count), value| (sum + value, count + 1));
    if count == 0 { 0.0 } else { sum / f64::from(count) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(left: f64, right: f64) -> bool {
        (left - right).abs() < 1e-12
    }

    #[test]
    fn scores_match_an_independent_computation() {
        let pairs = [(0.9, true), (0.2, false)];
        assert!(close(brier(&pairs), 0.025));
        assert!(close(expected_calibration_error(&pairs), 0.15));
        let edges = [(0.0, false), (0.0, true), (1.0, true), (1.0, true)];
        assert!(close(brier(&edges), 0.25));
        assert!(close(expected_calibration_error(&edges), 0.25));
        let bins = bins(&edges);
        assert_eq!((bins[0].count, bins[9].count), (2, 2), "0 and 1 are counted");
        assert_eq!(bins.iter().map(|bin| bin.count).sum::<u32>(), 4);
        assert_eq!((bins[0].accuracy, bins[0].gap), (0.5, 0.5));
        assert!(close(brier(&[]), 0.0) && close(expected_calibration_error(&[]), 0.0));
    }

    #[test]
    fn temperature_softens_and_identity_is_exact() {
        let soft = Calibration { scale: 0.5, ..Calibration::IDENTITY };
        assert!(close(soft.apply(0.9), 0.75));
        assert!(close(soft.apply(0.5), 0.5));
        assert!(soft.apply(1.0) <= 1.0 && soft.apply(0.0) >= 0.0);
        assert_eq!(Calibration::IDENTITY.apply(0.123_456_789), 0.123_456_789);
        let stance = soft.apply_to(&Stance::from_weights(0.9, 0.05, 0.05));
        assert!(stance.supports < 0.9 && stance.relation() == Relation::Supports);
        assert!(close(stance.supports + stance.refutes + stance.neutral, 1.0));
    }

    #[test]
    fn every_tenth_sample_is_a_reason_to_fit_and_no_other() {
        for (samples, fits, wanted) in [
            (9, 0, false),
            (10, 0, true),
            (11, 1, false),
            (19, 1, false),
            (20, 1, true),
            (2_000, 199, true),
            (2_001, 200, false),
            (2_009, 200, false),
            (2_010, 200, true),
        ] {
            assert_eq!(is_refit_due(samples, fits), wanted, "{samples} samples, {fits} fits");
        }
        assert!(is_refit_due(11, 0), "two corrections at once, and neither saw the tenth alone");
    }

    #[test]
    fn five_per_cent_is_the_line() {
        assert!(!is_degraded(0.2, 0.21));
        assert!(is_degraded(0.2, 0.2101));
        assert!(!is_degraded(0.2, 0.1));
    }
}
