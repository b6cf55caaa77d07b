//! The weights that `scripts/train-judge.py` made: for each feature its mean, its spread, and one weight for each of
//! supports, refutes and neutral; the first line holds the three biases.

use std::sync::LazyLock;

use super::features::COLUMNS;

struct Weights {
    bias: [f64; 3],
    lines: Vec<[f64; 5]>,
}

static WEIGHTS: LazyLock<Option<Weights>> = LazyLock::new(|| parse(include_str!("weights.txt")));

fn parse(text: &str) -> Option<Weights> {
    let mut lines = text.lines().filter(|line| !line.starts_with('#'));
    let numbers = |line: &str| line.split(' ').map(|number| number.parse().ok()).collect::<Option<Vec<f64>>>();
    let bias = numbers(lines.next()?)?.try_into().ok()?;
    let lines = lines.map(|line| numbers(line)?.try_into().ok()).collect::<Option<Vec<[f64; 5]>>>()?;
    (lines.len() == COLUMNS).then_some(Weights { bias, lines })
}

/// Probabilities of supports, refutes, neutral. Without usable weights, which a test rules out, all neutral.
pub fn probabilities(row: &[f64; COLUMNS]) -> [f64; 3] {
    let Some(weights) = WEIGHTS.as_ref() else { return [0.0, 0.0, 1.0] };
    let mut scores = weights.bias;
    for (value, [mean, spread, of_labels @ ..]) in row.iter().zip(&weights.lines) {
        for (score, weight) in scores.iter_mut().zip(of_labels) {
            *score += weight * (value - mean) / spread;
        }
    }
    let top = scores.iter().copied().fold(f64::MIN, f64::max);
    let raised = scores.map(|score| (score - top).exp());
    let total: f64 = raised.iter().sum();
    raised.map(|value| value / total)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_weights_are_sound() {
        assert!(super::WEIGHTS.is_some());
    }
}
