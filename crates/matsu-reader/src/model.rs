//! The block model: two looks at a page. Its trees are made by `scripts/train-extraction.py`.

use std::sync::LazyLock;

use crate::blocks::Blocks;
use crate::context;
use crate::features::{self, PageFacts};
use crate::numbers::count;
use crate::trees::Trees;

/// Columns of the first look; the second has `context::COLUMNS` more.
const FIRST_COLUMNS: usize = 149 + 4 + crate::centre::COLUMNS + features::KIND;

struct Looks {
    first: Trees,
    second: Trees,
}

/// A model that does not parse is a defect of the build; `tests::the_model_is_sound` fails then. Without it a page has
/// the text that `dom_smoothie` finds.
static LOOKS: LazyLock<Option<Looks>> = LazyLock::new(|| {
    let (first, second) = include_str!("block_model.txt").split_once("---\n")?;
    Some(Looks {
        first: Trees::parse(first, FIRST_COLUMNS)?,
        second: Trees::parse(second, FIRST_COLUMNS + context::COLUMNS)?,
    })
});

/// What the model makes of a page.
pub struct Verdict {
    /// One for each block.
    pub probabilities: Vec<f32>,
    /// A block above this is main text.
    pub keep: f32,
}

/// Looks at a page twice.
#[must_use]
pub fn judge(page: &Blocks, facts: &PageFacts<'_>) -> Verdict {
    let Some(looks) = LOOKS.as_ref() else {
        return Verdict { probabilities: vec![0.0; page.blocks.len()], keep: 0.5 };
    };
    let mut rows = features::rows(page, facts);
    let first = looks.first.probabilities(&rows);
    for (row, more) in rows.iter_mut().zip(context::rows(page, &first)) {
        row.extend(more);
    }
    // The second look knows more and the first is misled by less: on pages that neither has seen, their mean is best.
    let second = looks.second.probabilities(&rows);
    Verdict::of(page, first.iter().zip(&second).map(|(first, second)| f32::midpoint(*first, *second)).collect())
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
        assert!(LOOKS.is_some());
        let page = Blocks::of(&dom_query::Document::from("<p>x</p>"));
        let facts = PageFacts { title: "", description: "", second_opinion: "", declared_body: "", declared_types: "" };
        assert_eq!(features::rows(&page, &facts)[0].len(), FIRST_COLUMNS);
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
