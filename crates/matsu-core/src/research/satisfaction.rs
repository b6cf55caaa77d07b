//! When a search has found enough: three independent sources, or two with a primary one.

use super::confidence::round3;

/// The score at which a search is satisfied.
pub const SATISFIED_AT: f64 = 0.8;

/// `min(1, 0.8·min(1, n/3) + (primary ? 0.3 : 0))`, with `n` registrable domains.
#[must_use]
pub fn satisfaction(independent_domains: usize, has_primary: bool) -> f64 {
    let breadth = (f64::from(u32::try_from(independent_domains).unwrap_or(u32::MAX)) / 3.0).min(1.0);
    let primary = if has_primary { 0.3 } else { 0.0 };
    round3((0.8 * breadth + primary).min(1.0))
}

#[must_use]
pub fn is_satisfied(score: f64) -> bool {
    score >= SATISFIED_AT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_sources_or_two_with_a_primary_one() {
        for (domains, primary, score, satisfied) in [
            (0, false, 0.0, false),
            (0, true, 0.3, false),
            (1, false, 0.267, false),
            (1, true, 0.567, false),
            (2, false, 0.533, false),
            (2, true, 0.833, true),
            (3, false, 0.8, true),
            (3, true, 1.0, true),
            (9, false, 0.8, true),
        ] {
            let got = satisfaction(domains, primary);
            assert_eq!((got, is_satisfied(got)), (score, satisfied), "{domains} domains, primary {primary}");
        }
    }
}
