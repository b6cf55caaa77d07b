//! What each feature counts: learned from questions with known answers by `scripts/train-ranking.py`, and kept as text.

use super::features::{NAMES, Row};

/// The weights that ship.
const SHIPPED: &str = include_str!("weights.txt");

/// One weight for each feature, in scripts with spaces and in those without, and what makes a probability of a score.
#[derive(Clone, Debug, PartialEq)]
pub struct Weights {
    spaced: Row,
    wide: Row,
    scale: [f64; 2],
    offset: [f64; 2],
}

/// Why a text holds no weights.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WeightsError {
    #[error("line {0} is not a name and two numbers")]
    Line(usize),
    #[error("{0} is not a feature of the ranker")]
    Unknown(String),
    #[error("the feature {0} has no weight")]
    Missing(&'static str),
}

impl Weights {
    /// # Errors
    /// The weights in the binary do not fit its features: a defect, which a test finds.
    pub fn shipped() -> Result<Self, WeightsError> {
        Self::parse(SHIPPED)
    }

    /// A line for each feature: its name, its weight in scripts with spaces, its weight in scripts without. `scale` and
    /// `offset` make a probability of a score. Lines with `#` are comments.
    ///
    /// # Errors
    /// A line cannot be read, a feature is unknown or has no weight.
    pub fn parse(text: &str) -> Result<Self, WeightsError> {
        let mut found: [Option<[f64; 2]>; NAMES.len()] = [None; NAMES.len()];
        let (mut scale, mut offset) = (None, None);
        let lines = text.lines().enumerate().filter(|(_, line)| !line.starts_with('#') && !line.trim().is_empty());
        for (n, line) in lines {
            let error = || WeightsError::Line(n + 1);
            let parts: Vec<&str> = line.split_whitespace().collect();
            let [name, spaced, wide] = parts[..] else { return Err(error()) };
            let pair = [spaced.parse().map_err(|_| error())?, wide.parse().map_err(|_| error())?];
            match name {
                "scale" => scale = Some(pair),
                "offset" => offset = Some(pair),
                _ => {
                    let at = NAMES.iter().position(|known| *known == name);
                    found[at.ok_or_else(|| WeightsError::Unknown(name.to_owned()))?] = Some(pair);
                }
            }
        }
        let (mut rows, scripts) = ([[0.0; NAMES.len()]; 2], [0, 1]);
        for (at, (pair, name)) in found.into_iter().zip(NAMES).enumerate() {
            let pair = pair.ok_or(WeightsError::Missing(name))?;
            scripts.iter().for_each(|script| rows[*script][at] = pair[*script]);
        }
        let [spaced, wide] = rows;
        let scale = scale.ok_or(WeightsError::Missing("scale"))?;
        Ok(Self { spaced, wide, scale, offset: offset.ok_or(WeightsError::Missing("offset"))? })
    }

    #[must_use]
    pub fn score(&self, row: &Row, is_wide: bool) -> f64 {
        let weights = if is_wide { &self.wide } else { &self.spaced };
        weights.iter().zip(row).map(|(weight, value)| weight * value).sum()
    }

    /// How likely a sentence of this score answers its question, as learned from questions with known answers.
    #[must_use]
    pub fn probability(&self, score: f64, is_wide: bool) -> f64 {
        let script = usize::from(is_wide);
        1.0 / (1.0 + (-(self.scale[script] * score + self.offset[script])).exp())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shipped_weights_fit_the_features() {
        assert!(Weights::shipped().is_ok());
    }

    #[test]
    fn weights_that_do_not_fit_are_refused() {
        assert_eq!(Weights::parse("wings 3 4"), Err(WeightsError::Unknown("wings".to_owned())));
        assert_eq!(Weights::parse("# nothing"), Err(WeightsError::Missing(NAMES[0])));
        assert_eq!(Weights::parse(&format!("{} heavy 1", NAMES[0])), Err(WeightsError::Line(1)));
    }
}
