//! Fitting a calibration: the log-likelihood's maximum by Newton's method on two thirds of the samples, judged on the
//! third that it has not seen.

use super::{Calibration, CalibrationMethod, SAMPLES_MIN, brier};

/// Pairs that one corrected judgement gives; they stay together.
const PAIRS_PER_SAMPLE: usize = 3;
const STEPS_MAX: usize = 100;
/// A little pull towards changing nothing, so that separable samples do not run away to infinity.
const RIDGE: f64 = 1e-2;
const EDGE: f64 = 1e-6;

/// What a fit came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Fitted {
    pub calibration: Calibration,
    /// On the held-out part, before and after.
    pub brier_before: f64,
    pub brier_after: f64,
    pub held_out: Vec<(f64, bool)>,
}

/// Fits both methods and keeps the one that does better on what was held out; the simpler one on a tie, and nothing at
/// all where both make it worse. `None`: too few samples.
#[must_use]
pub fn fit(pairs: &[(f64, bool)]) -> Option<Fitted> {
    if pairs.len() < SAMPLES_MIN * PAIRS_PER_SAMPLE {
        return None;
    }
    let (mut train, mut held_out) = (Vec::new(), Vec::new());
    for (n, sample) in pairs.chunks(PAIRS_PER_SAMPLE).enumerate() {
        if n % 3 == 2 { held_out.extend_from_slice(sample) } else { train.extend_from_slice(sample) }
    }
    let score = |calibration: &Calibration| {
        let calibrated: Vec<(f64, bool)> = held_out.iter().map(|(p, y)| (calibration.apply(*p), *y)).collect();
        brier(&calibrated)
    };
    let temperature = newton(&train, CalibrationMethod::Temperature);
    let platt = newton(&train, CalibrationMethod::Platt);
    let better = if score(&platt) < score(&temperature) { platt } else { temperature };
    let calibration = if score(&better) > brier(&held_out) { Calibration::IDENTITY } else { better };
    Some(Fitted { brier_before: brier(&held_out), brier_after: score(&calibration), calibration, held_out })
}

/// Maximises the likelihood of `sigmoid(scale · logit(p) + shift)`; without a shift for temperature.
fn newton(pairs: &[(f64, bool)], method: CalibrationMethod) -> Calibration {
    let points: Vec<(f64, f64)> = pairs
        .iter()
        .map(|(p, y)| {
            let p = p.clamp(EDGE, 1.0 - EDGE);
            ((p / (1.0 - p)).ln(), f64::from(u8::from(*y)))
        })
        .collect();
    let (mut scale, mut shift) = (1.0_f64, 0.0_f64);
    for _ in 0..STEPS_MAX {
        let (mut ga, mut gb) = (RIDGE * (scale - 1.0), RIDGE * shift);
        let (mut haa, mut hab, mut hbb) = (RIDGE, 0.0, RIDGE);
        for (x, y) in &points {
            let q = 1.0 / (1.0 + (-(scale * x + shift)).exp());
            let (error, weight) = (q - y, q * (1.0 - q));
            ga += error * x;
            gb += error;
            haa += weight * x * x;
            hab += weight * x;
            hbb += weight;
        }
        let (da, db) = match method {
            CalibrationMethod::Temperature => (ga / haa, 0.0),
            CalibrationMethod::Platt => {
                let determinant = haa * hbb - hab * hab;
                ((hbb * ga - hab * gb) / determinant, (haa * gb - hab * ga) / determinant)
            }
        };
        // Far from the optimum a full step may overshoot.
        scale = (scale - da.clamp(-1.0, 1.0)).clamp(0.05, 20.0);
        shift -= db.clamp(-1.0, 1.0);
        if da.abs() < 1e-9 && db.abs() < 1e-9 {
            break;
        }
    }
    Calibration { method, scale, shift }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Predictions that claim more than comes true: the true logit is half of what is said.
    fn overconfident(samples: u32) -> Vec<(f64, bool)> {
        let mut chance = 7_u32;
        let mut pairs = Vec::new();
        for n in 0..samples * 3 {
            let said = 0.02 + 0.96 * f64::from(n % 49) / 48.0;
            let truth = 1.0 / (1.0 + (-(said / (1.0 - said)).ln() / 2.0).exp());
            chance = chance.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            pairs.push((said, f64::from(chance >> 8) / f64::from(1_u32 << 24) < truth));
        }
        pairs
    }

    #[test]
    fn an_overconfident_judge_is_softened_and_does_better_on_what_it_has_not_seen() {
        let fitted = fit(&overconfident(600)).unwrap();
        assert!((fitted.calibration.scale - 0.5).abs() < 0.12, "{fitted:?}");
        assert!(fitted.brier_after < fitted.brier_before - 0.005, "{} {}", fitted.brier_before, fitted.brier_after);
    }

    #[test]
    fn a_judge_that_is_right_is_left_alone() {
        let pairs: Vec<(f64, bool)> = (0..900).map(|n| (0.75, n % 4 != 0)).collect();
        let fitted = fit(&pairs).unwrap();
        assert!((fitted.calibration.apply(0.75) - 0.75).abs() < 0.02, "{fitted:?}");
    }

    #[test]
    fn a_fit_that_makes_it_worse_changes_nothing() {
        // Wrong wherever it is learnt from, right wherever it is looked at.
        let pairs: Vec<(f64, bool)> =
            (0..30).flat_map(|n| [(0.9, n % 3 == 2), (0.05, false), (0.05, n % 3 != 2)]).collect();
        assert_eq!(fit(&pairs).unwrap().calibration, Calibration::IDENTITY);
    }

    #[test]
    fn ten_samples_are_the_least_and_separable_ones_stay_finite() {
        assert_eq!(fit(&overconfident(9)), None);
        let all_wrong: Vec<(f64, bool)> =
            (0..30).map(|n| if n % 3 == 0 { (0.9, false) } else { (0.05, n % 3 == 1) }).collect();
        let fitted = fit(&all_wrong).unwrap();
        assert!(fitted.calibration.scale.is_finite() && fitted.calibration.shift.is_finite());
        assert!(fitted.brier_after < fitted.brier_before);
    }
}
