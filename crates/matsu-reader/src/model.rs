//! The block model: which blocks of a page are main text. Its trees are made by `scripts/train-extraction.py`.

use std::sync::LazyLock;

use crate::blocks::Blocks;
use crate::features::{self, PageFacts};
use crate::numbers::count;
use crate::trees::Trees;

/// Columns of a row.
const COLUMNS: usize = 149 + 4 + crate::centre::COLUMNS + features::KIND;

/// A model that does not parse is a defect of the build; `tests::the_model_is_sound` fails then. Without it a page has
/// the text that `dom_smoothie` finds.
static TREES: LazyLock<Option<Trees>> = LazyLock::new(|| Trees::parse(include_str!("block_model.txt"), COLUMNS));

/// What the model makes of a page.
pub struct Verdict {
    /// One for each block.
    pub probabilities: Vec<f32>,
    /// A block above this is main text.
    pub keep: f32,
}

/// Judges every block of a page.
#[must_use]
pub fn judge(page: &Blocks, facts: &PageFacts<'_>) -> Verdict {
    let Some(trees) = TREES.as_ref() else {
        return Verdict { probabilities: vec![0.0; page.blocks.len()], keep: 0.5 };
    };
    Verdict::of(page, trees.probabilities(&features::rows(page, facts)))
}

impl Verdict {
    #[must_use]
    pub fn of(page: &Blocks, probabilities: Vec<f32>) -> Self {
        let keep = keep(page, &probabilities);
        Self { probabilities, keep }
    }
}

/// Where to draw the line so that the text to be expected is best, between too much and too little (F1, by length). On
/// a clear page that is near one half; where nothing is likely, the likeliest blocks are better than none.
fn keep(page: &Blocks, probabilities: &[f32]) -> f32 {
    let mut ranked: Vec<(f32, f32)> =
        page.blocks.iter().zip(probabilities).map(|(block, p)| (*p, count(block.text.len()))).collect();
    ranked.sort_by(|a, b| b.0.total_cmp(&a.0));
    let wanted: f32 = ranked.iter().map(|(p, length)| p * length).sum();
    let (mut right, mut taken, mut best) = (0.0, 0.0, (0.0, 0.5));
    for (at, (p, length)) in ranked.iter().enumerate() {
        right += p * length;
        taken += length;
        let f1 = 2.0 * right / (taken + wanted);
        if f1 > best.0 {
            let below = ranked.get(at + 1).map_or(0.0, |(p, _)| *p);
            best = (f1, f32::midpoint(*p, below));
        }
    }
    best.1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_is_sound() {
        assert!(TREES.is_some());
        let page = Blocks::of(&dom_query::Document::from("<p>x</p>"));
        let facts = PageFacts { title: "", description: "", second_opinion: "", declared_body: "", declared_types: "" };
        assert_eq!(features::rows(&page, &facts)[0].len(), COLUMNS);
    }

    #[test]
    fn the_line_falls_where_the_expected_text_is_best() {
        let html = "<p>aaaaaaaaaa</p><p>bbbbbbbbbb</p><p>cccccccccc</p>";
        let page = Blocks::of(&dom_query::Document::from(html));
        let kept = |probabilities: [f32; 3]| {
            let verdict = Verdict::of(&page, probabilities.to_vec());
            probabilities.map(|p| p > verdict.keep)
        };
        assert_eq!(kept([0.99, 0.97, 0.03]), [true, true, false]);
        // Beside clear text a doubtful block is left out; where nothing is clear, it is better than none.
        assert_eq!(kept([0.99, 0.35, 0.01]), [true, false, false]);
        assert_eq!(kept([0.35, 0.3, 0.01]), [true, true, false]);
    }
}
