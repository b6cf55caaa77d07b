//! The block model: two looks at a page, and how sure they are. Its trees are made by `scripts/train-extraction.py`.

use std::sync::LazyLock;

use super::blocks::Blocks;
use super::context;
use super::features::{self, PageFacts, count};
use super::trees::Trees;

/// A block with at least this probability is main text.
pub const KEEP: f32 = 0.5;

/// Columns of the first look; the second has `context::COLUMNS` more.
const FIRST_COLUMNS: usize = 149;

struct Looks {
    first: Trees,
    second: Trees,
}

/// A model that does not parse is a defect of the build; `tests::the_model_is_sound` fails then. Without it every page
/// would go to the other extractor.
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
    /// 0: every block is clear; 0.5: it might as well have thrown dice.
    pub doubt: f32,
}

/// Looks at a page twice.
#[must_use]
pub fn judge(page: &Blocks, facts: &PageFacts<'_>) -> Verdict {
    let Some(looks) = LOOKS.as_ref() else {
        return Verdict { probabilities: vec![0.0; page.blocks.len()], doubt: 0.5 };
    };
    let mut rows = features::rows(page, facts);
    let first: Vec<f32> = rows.iter().map(|row| looks.first.probability(row)).collect();
    for (row, more) in rows.iter_mut().zip(context::rows(page, &first)) {
        row.extend(more);
    }
    let probabilities: Vec<f32> = rows.iter().map(|row| looks.second.probability(row)).collect();
    let doubt = doubt(page, &probabilities);
    Verdict { probabilities, doubt }
}

/// How unclear the blocks are that may be main text, weighted by their length.
fn doubt(page: &Blocks, probabilities: &[f32]) -> f32 {
    let (mut unclear, mut considered) = (0.0, 1.0);
    for (block, p) in page.blocks.iter().zip(probabilities) {
        let chars = count(block.text.chars().count());
        unclear += chars * p.min(1.0 - p);
        considered += if *p > 0.15 { chars } else { 0.0 };
    }
    unclear / considered
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_is_sound() {
        assert!(LOOKS.is_some());
        let page = Blocks::of(&dom_query::Document::from("<p>x</p>"));
        let facts = PageFacts { title: "", description: "", second_opinion: "", declared_types: "" };
        assert_eq!(features::rows(&page, &facts)[0].len(), FIRST_COLUMNS);
    }
}
