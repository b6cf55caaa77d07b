//! The second look: what the first look made of a block's neighbours and of everything that encloses it. A lone
//! paragraph among links, and a line of links in the middle of an article, are distinguished only so.

use foldhash::HashMap;

use crate::blocks::Blocks;
use crate::centre;
use crate::numbers::{count, log};
use crate::shingles::word_hashes;

/// Columns that the second look adds to a row.
pub const COLUMNS: usize = OWN + LIKE + centre::COLUMNS;

const OWN: usize = 18;
const LIKE: usize = 4;

/// First-look probability above which a block with some words marks the main part.
const SURE: f32 = 0.6;
const SOME_WORDS: usize = 5;
const WINDOW: usize = 6;

struct Page<'a> {
    first: &'a [f32],
    /// Sums of characters, and of characters weighted by the first look, before each block.
    chars_to: Vec<f32>,
    weight_to: Vec<f32>,
    scope_chars: Vec<f32>,
    scope_weight: Vec<f32>,
    sure: Option<(usize, usize)>,
    sure_count: usize,
}

/// The added columns for each block, from the probabilities of the first look.
#[must_use]
pub fn rows(blocks: &Blocks, first: &[f32]) -> Vec<[f32; COLUMNS]> {
    let page = Page::of(blocks, first);
    let places = centre::rows(blocks, first);
    let likes = Likes::of(blocks, first);
    let row = |at: usize| {
        let mut row = [0.0; COLUMNS];
        row[..OWN].copy_from_slice(&page.row(blocks, at));
        row[OWN..OWN + LIKE].copy_from_slice(&likes.row(blocks, at));
        row[OWN + LIKE..].copy_from_slice(&places[at]);
        row
    };
    (0..blocks.blocks.len()).map(row).collect()
}

/// Blocks that a page makes from one template, such as every price of a list of goods: they stand or fall together.
struct Likes {
    sums: HashMap<(u64, u64), Sum>,
}

#[derive(Clone, Copy, Default)]
struct Sum {
    blocks: f32,
    chars: f32,
    weight: f32,
    first: f32,
}

impl Likes {
    fn of(blocks: &Blocks, first: &[f32]) -> Self {
        let mut sums: HashMap<_, Sum> = HashMap::default();
        for (block, p) in blocks.blocks.iter().zip(first) {
            let sum = sums.entry(blocks.template(block)).or_default();
            let chars = count(block.text.len());
            sum.blocks += 1.0;
            sum.chars += chars;
            sum.weight += chars * p;
            sum.first += p;
        }
        Self { sums }
    }

    fn row(&self, blocks: &Blocks, at: usize) -> [f32; LIKE] {
        let sum = self.sums.get(&blocks.template(&blocks.blocks[at])).copied().unwrap_or_default();
        [log(sum.blocks), sum.weight / sum.chars.max(1.0), sum.first / sum.blocks.max(1.0), log(sum.chars)]
    }
}

impl<'a> Page<'a> {
    fn of(blocks: &Blocks, first: &'a [f32]) -> Self {
        let (mut chars_to, mut weight_to) = (vec![0.0], vec![0.0]);
        let (mut sure, mut sure_count): (Option<(usize, usize)>, usize) = (None, 0);
        for (at, (block, p)) in blocks.blocks.iter().zip(first).enumerate() {
            let chars = count(block.text.chars().count());
            chars_to.push(chars_to[at] + chars);
            weight_to.push(weight_to[at] + chars * p);
            if *p > SURE && word_hashes(&block.text).len() >= SOME_WORDS {
                sure = Some((sure.map_or(at, |(first, _)| first), at));
                sure_count += 1;
            }
        }
        let lengths = || blocks.blocks.iter().map(|block| count(block.text.chars().count()));
        let scope_chars = blocks.sums(lengths());
        let scope_weight = blocks.sums(lengths().zip(first).map(|(length, p)| length * p));
        Self { first, chars_to, weight_to, scope_chars, scope_weight, sure, sure_count }
    }

    fn row(&self, blocks: &Blocks, at: usize) -> [f32; OWN] {
        let n = self.first.len();
        let near =
            |shift: isize| at.checked_add_signed(shift).and_then(|at| self.first.get(at)).copied().unwrap_or(-1.0);
        let ids: Vec<usize> = blocks.chain_ids(blocks.blocks[at].scope).take(5).collect();
        let scope = |level: usize| {
            let id = ids.get(level).or(ids.last()).copied().unwrap_or(0);
            self.scope_weight[id] / self.scope_chars[id].max(1.0)
        };
        let (all, weight) = (self.chars_to[n], self.weight_to[n]);
        let distance = |to: Option<usize>| to.map_or(-50.0, |to| (count(at) - count(to)).clamp(-50.0, 50.0));
        [
            self.first[at],
            near(-1),
            near(1),
            near(-2),
            near(2),
            self.share(at.saturating_sub(WINDOW), at),
            self.share(at + 1, (at + 1 + WINDOW).min(n)),
            scope(0),
            scope(1),
            scope(2),
            scope(3),
            scope(4),
            weight / all.max(1.0),
            log(weight),
            self.weight_to[at] / weight.max(1.0),
            distance(self.sure.map(|(first, _)| first)),
            distance(self.sure.map(|(_, last)| last)),
            log(count(self.sure_count)),
        ]
    }

    fn share(&self, from: usize, to: usize) -> f32 {
        (self.weight_to[to] - self.weight_to[from]) / (self.chars_to[to] - self.chars_to[from]).max(1.0)
    }
}
