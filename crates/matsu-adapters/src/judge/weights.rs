//! The weights that `scripts/train-judge.py` made, a section for each language that there are pairs of. A section begins
//! with `[language]` and the probabilities above which it says supports and refutes (`off`: it never does); then the
//! three biases; then for each feature its mean, its spread, and one weight for each of supports, refutes and neutral.

use std::sync::LazyLock;

use super::features::COLUMNS;

/// The judge of one language.
pub struct Weights {
    pub language: &'static str,
    /// Above this probability it says supports; `None`: never.
    pub supports: Option<f64>,
    pub refutes: Option<f64>,
    bias: [f64; 3],
    lines: Vec<[f64; 5]>,
}

static WEIGHTS: LazyLock<Option<Vec<Weights>>> = LazyLock::new(|| parse(include_str!("weights.txt")));

fn parse(text: &'static str) -> Option<Vec<Weights>> {
    let mut found: Vec<Weights> = Vec::new();
    let mut lines = text.lines().filter(|line| !line.starts_with('#')).peekable();
    let numbers = |line: &str| line.split(' ').map(|number| number.parse().ok()).collect::<Option<Vec<f64>>>();
    while let Some(head) = lines.next() {
        let (language, thresholds) = head.strip_prefix('[')?.split_once("] ")?;
        let (supports, refutes) = thresholds.split_once(' ')?;
        let threshold = |text: &str| if text == "off" { Some(None) } else { text.parse().ok().map(Some) };
        let bias = numbers(lines.next()?)?.try_into().ok()?;
        let mut rows = Vec::new();
        while let Some(line) = lines.next_if(|line| !line.starts_with('[')) {
            rows.push(numbers(line)?.try_into().ok()?);
        }
        if rows.len() != COLUMNS {
            return None;
        }
        let (supports, refutes) = (threshold(supports)?, threshold(refutes)?);
        found.push(Weights { language, supports, refutes, bias, lines: rows });
    }
    Some(found)
}

/// The languages that there are weights for. Without usable weights, which a test rules out, none.
pub fn all() -> &'static [Weights] {
    WEIGHTS.as_deref().unwrap_or_default()
}

impl Weights {
    pub fn of(language: &str) -> Option<&'static Self> {
        all().iter().find(|weights| weights.language == language)
    }

    /// Probabilities of supports, refutes, neutral.
    pub fn probabilities(&self, row: &[f64; COLUMNS]) -> [f64; 3] {
        let mut scores = self.bias;
        for (value, [mean, spread, of_labels @ ..]) in row.iter().zip(&self.lines) {
            for (score, weight) in scores.iter_mut().zip(of_labels) {
                *score += weight * (value - mean) / spread;
            }
        }
        let top = scores.iter().copied().fold(f64::MIN, f64::max);
        let raised = scores.map(|score| (score - top).exp());
        let total: f64 = raised.iter().sum();
        raised.map(|value| value / total)
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_weights_are_sound() {
        assert!(super::WEIGHTS.is_some());
    }
}
