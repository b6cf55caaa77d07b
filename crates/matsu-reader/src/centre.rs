//! Where the main text of a page lies in its tree, by whatever hint there is of it, and how a block stands to that
//! place. Names and depths differ from site to site; that a comment lies in another branch than the article does not.

use crate::blocks::Blocks;
use crate::numbers::{count, log};

/// Columns for each block.
pub const COLUMNS: usize = 2 * OF_ONE;

const OF_ONE: usize = 7;
/// A centre is the deepest element that holds this share of the hinted text: a narrow one and a wide one.
const HELD: [f32; 2] = [0.6, 0.92];

/// What lies below each element: characters, and those of them that are hinted to be main text.
struct Held {
    chars: Vec<f32>,
    hinted: Vec<f32>,
}

/// How each block stands to the centres. `hints` says for each block which share of it seems to be main text.
#[must_use]
pub fn rows(page: &Blocks, hints: &[f32]) -> Vec<[f32; COLUMNS]> {
    let held = Held::of(page, hints);
    let mut rows = vec![[0.0; COLUMNS]; page.blocks.len()];
    for (n, share) in HELD.iter().enumerate() {
        let centre = Centre::of(page, &held, *share);
        let mut by_scope = vec![None; page.scopes.len()];
        for (at, (block, row)) in page.blocks.iter().zip(&mut rows).enumerate() {
            let place = *by_scope[block.scope].get_or_insert_with(|| centre.place(page, &held, block.scope));
            row[n * OF_ONE..(n + 1) * OF_ONE].copy_from_slice(&place);
            // Before it, in it, after it.
            row[n * OF_ONE] = if place[0] > 0.5 {
                0.0
            } else if at < centre.first_block {
                -1.0
            } else {
                1.0
            };
        }
    }
    rows
}

impl Held {
    fn of(page: &Blocks, hints: &[f32]) -> Self {
        let lengths = || page.blocks.iter().map(|block| count(block.text.len()));
        Self {
            chars: page.sums(lengths()),
            hinted: page.sums(lengths().zip(hints).map(|(length, hint)| length * hint)),
        }
    }
}

struct Centre {
    /// For each scope, how many steps lie between it and the centre, if the centre lies in it.
    around: Vec<Option<usize>>,
    first_block: usize,
    hinted: f32,
}

impl Centre {
    fn of(page: &Blocks, held: &Held, share: f32) -> Self {
        let mut around = vec![None; page.scopes.len()];
        let hinted = held.hinted.first().copied().unwrap_or(0.0);
        // Elements that hold more than half of it lie in one another, and the deepest was opened last.
        let holds = |id: &usize| hinted > 0.0 && held.hinted[*id] >= share * hinted;
        let centre = (0..page.scopes.len()).rev().find(holds).unwrap_or(0);
        if !page.scopes.is_empty() {
            for (steps, id) in page.chain_ids(centre).enumerate() {
                around[id] = Some(steps);
            }
        }
        let first_block = page.blocks.iter().position(|block| page.chain_ids(block.scope).any(|id| id == centre));
        Self { around, first_block: first_block.unwrap_or(0), hinted }
    }

    fn place(&self, page: &Blocks, held: &Held, scope: usize) -> [f32; OF_ONE] {
        let (mut branch, mut up) = (scope, 0_usize);
        let steps = loop {
            let Some(parent) = page.scopes[branch].parent else { break self.around[branch].unwrap_or(0) };
            if let Some(steps) = self.around[branch].or(self.around[parent]) {
                break steps;
            }
            (branch, up) = (parent, up + 1);
        };
        [
            f32::from(u8::from(steps == 0)),
            count(up),
            count(steps),
            held.hinted[branch] / held.chars[branch].max(1.0),
            log(held.chars[branch]),
            held.hinted[branch] / self.hinted.max(1.0),
            held.chars[branch] / held.chars[0].max(1.0),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_another_branch_is_distinguished_from_the_centre() {
        let html = "<header>Site</header><main><article><p>One long paragraph.</p><p>Another one.</p></article>\
                    <div><div><p>A comment.</p></div></div></main>";
        let page = Blocks::of(&dom_query::Document::from(html));
        let hints: Vec<f32> = page
            .blocks
            .iter()
            .map(|b| if b.text.contains("paragraph") || b.text.contains("one.") { 1.0 } else { 0.0 })
            .collect();
        let rows = rows(&page, &hints);
        let sides: Vec<f32> = rows.iter().map(|row| row[OF_ONE]).collect();
        assert_eq!(sides, [-1.0, 0.0, 0.0, 1.0]);
        assert!(rows[3][OF_ONE + 3] < 0.01 && rows[1][OF_ONE + 3] > 0.99);
    }

    #[test]
    fn a_page_without_hints_has_its_root_as_centre() {
        let page = Blocks::of(&dom_query::Document::from("<p>a</p><div><p>b</p></div>"));
        assert!(rows(&page, &[0.0, 0.0]).iter().flatten().all(|value| value.is_finite()));
    }
}
