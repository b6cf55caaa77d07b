//! Boosted trees as `scripts/train-extraction.py` writes them: one line a tree, nodes divided by `;`.
//! A split is `feature threshold left right`, where a child below zero is leaf `-child - 1`; leaves follow after `|`.
//!
//! No tree is walked. Leaves are numbered from left to right, and a set of bits holds those that a row may still end in.
//! Every split is asked, in any order: a row that goes right cannot end in the leaves to its left. The lowest bit that is
//! left is the row's leaf (QuickScorer: Lucchese and others, SIGIR 2015). So no step waits for the one before it, and
//! the compiler asks a split of four rows in one instruction.

mod wide;

/// A set of trees whose sum is the logarithm of the odds.
#[derive(Default)]
pub struct Trees {
    /// For each tree, how many splits and leaves it has.
    trees: Vec<(usize, usize)>,
    splits: Vec<Split>,
    /// Of each tree from left to right.
    leaves: Vec<f32>,
    /// How many values of a row are asked for.
    columns: usize,
}

#[derive(Clone, Copy)]
struct Split {
    threshold: f32,
    feature: u32,
    /// The leaves to the left: a row that goes right cannot end there.
    left: u32,
}

/// A split as it is written. A child below zero is leaf `-child - 1`.
struct Written {
    threshold: f32,
    feature: u32,
    left: i32,
    right: i32,
}

/// So many rows are asked side by side.
const LANES: usize = 16;
/// One bit for each leaf.
const LEAVES_MAX: usize = 32;

impl Trees {
    /// `None` if a line is not a tree that ends in leaves, has more than 32 of them, or asks for more than `features`.
    #[must_use]
    pub fn parse(text: &str, features: usize) -> Option<Self> {
        let mut trees = Self::default();
        for line in text.lines() {
            trees.add(line, u32::try_from(features).ok()?)?;
        }
        Some(trees)
    }

    /// Probability for each row. A value that a row does not have counts as zero.
    #[must_use]
    pub fn probabilities<R: AsRef<[f32]>>(&self, rows: &[R]) -> Vec<f32> {
        let mut columns = vec![[0.0; LANES]; self.columns];
        let mut found = Vec::with_capacity(rows.len());
        for rows in rows.chunks(LANES) {
            for (lane, row) in rows.iter().enumerate() {
                let values = row.as_ref().iter().chain(std::iter::repeat(&0.0));
                for (column, value) in columns.iter_mut().zip(values) {
                    column[lane] = *value;
                }
            }
            let odds = wide::as_wide_as_possible(self, &columns);
            found.extend(odds[..rows.len()].iter().map(|odds| 1.0 / (1.0 + (-odds).exp())));
        }
        found
    }

    /// Inlined, so that the compiler may use what the caller says that the processor has.
    #[inline(always)]
    fn odds(&self, columns: &[[f32; LANES]]) -> [f32; LANES] {
        let mut odds = [0.0; LANES];
        let (mut splits, mut leaves) = (self.splits.as_slice(), self.leaves.as_slice());
        for (split_count, leaf_count) in &self.trees {
            let of_tree;
            (of_tree, splits) = splits.split_at(*split_count);
            let ends = ends(of_tree, columns);
            for (odds, end) in odds.iter_mut().zip(ends) {
                *odds += leaves[end.trailing_zeros() as usize];
            }
            leaves = &leaves[*leaf_count..];
        }
        odds
    }

    fn add(&mut self, line: &str, features: u32) -> Option<()> {
        let (splits, leaves) = line.split_once('|')?;
        let splits =
            splits.split(';').filter(|part| !part.is_empty()).map(Written::parse).collect::<Option<Vec<_>>>()?;
        let leaves = leaves.split(' ').map(|leaf| leaf.parse().ok()).collect::<Option<Vec<f32>>>()?;
        // A child stands behind its parent, so every walk ends.
        let is_sound = splits.iter().enumerate().all(|(at, split)| {
            let leads_on = |child: i32| match usize::try_from(child) {
                Ok(child) => child > at && child < splits.len(),
                Err(_) => leaf_of(child) < leaves.len(),
            };
            split.feature < features && leads_on(split.left) && leads_on(split.right)
        });
        if !is_sound || leaves.is_empty() || leaves.len() > LEAVES_MAX || leaves.len() != splits.len() + 1 {
            return None;
        }
        let root = if splits.is_empty() { -1 } else { 0 };
        let mut order = Order { splits: &splits, leaves: Vec::new(), left: vec![0; splits.len()] };
        order.visit(root)?;
        self.leaves.extend(order.leaves.iter().map(|leaf| leaves[*leaf]));
        for (Written { threshold, feature, .. }, left) in splits.iter().zip(&order.left) {
            self.columns = self.columns.max(*feature as usize + 1);
            self.splits.push(Split { threshold: *threshold, feature: *feature, left: *left });
        }
        self.trees.push((splits.len(), leaves.len()));
        Some(())
    }
}

/// The leaves in which each row may end, after all splits of a tree.
#[inline(always)]
fn ends(splits: &[Split], columns: &[[f32; LANES]]) -> [u32; LANES] {
    let mut ends = [u32::MAX; LANES];
    for split in splits {
        let column = &columns[split.feature as usize];
        for (end, value) in ends.iter_mut().zip(column) {
            // All bits set if the value is above the threshold. Arithmetic, because the compiler asks a comparison of
            // each row by itself.
            let goes_right = (split.threshold - value).to_bits().cast_signed() >> 31;
            *end &= !(goes_right.cast_unsigned() & split.left);
        }
    }
    ends
}

/// Puts the leaves of a tree in order from left to right.
struct Order<'a> {
    splits: &'a [Written],
    leaves: Vec<usize>,
    /// For each split, [`Split::left`].
    left: Vec<u32>,
}

impl Order<'_> {
    /// `None` if a part of the tree is reached twice.
    fn visit(&mut self, child: i32) -> Option<()> {
        let Ok(at) = usize::try_from(child) else {
            self.leaves.push(leaf_of(child));
            return (self.leaves.len() <= self.splits.len() + 1).then_some(());
        };
        let split = &self.splits[at];
        let first = self.leaves.len();
        self.visit(split.left)?;
        self.left[at] = (first..self.leaves.len()).map(|leaf| 1 << leaf).sum();
        self.visit(split.right)
    }
}

/// Leaves are numbered from -1 downwards.
fn leaf_of(child: i32) -> usize {
    usize::try_from(-(child + 1)).unwrap_or(usize::MAX)
}

impl Written {
    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(' ');
        let split = Self {
            feature: parts.next()?.parse().ok()?,
            threshold: parts.next()?.parse().ok()?,
            left: parts.next()?.parse().ok()?,
            right: parts.next()?.parse().ok()?,
        };
        parts.next().is_none().then_some(split)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_are_walked_to_their_leaves() {
        let trees = Trees::parse("0 0.5 -1 1;1 2 -2 -3|-1 0 1\n|0.5", 2).expect("trees");
        let odds = |row: &[f32]| {
            let p = trees.probabilities(&[row])[0];
            (p / (1.0 - p)).ln()
        };
        assert!((odds(&[0.5, 9.0]) + 0.5).abs() < 1e-4);
        assert!((odds(&[1.0, 2.0]) - 0.5).abs() < 1e-4);
        assert!((odds(&[1.0, 3.0]) - 1.5).abs() < 1e-4);
    }

    #[test]
    fn many_rows_are_walked_as_one_is() {
        let trees = Trees::parse("0 0.5 -1 1;1 2 -2 2;0 3 -3 -4|-1 0 1 2\n1 0 -1 -2|-0.5 0.25", 2).expect("trees");
        let rows: Vec<[f32; 2]> = (0..2 * LANES as u8 + 3).map(|n| [f32::from(n % 5), f32::from(n % 4)]).collect();
        let alone: Vec<f32> = rows.iter().flat_map(|row| trees.probabilities(&[row])).collect();
        assert_eq!(trees.probabilities(&rows), alone);
        assert!(trees.probabilities::<[f32; 2]>(&[]).is_empty());
    }

    #[test]
    fn wide_instructions_find_the_same() {
        let trees = Trees::parse("0 0.5 -1 1;1 2 -2 2;0 3 -3 -4|-1 0 1 2\n1 0 -1 -2|-0.5 0.25", 2).expect("trees");
        let lanes = |times: u8| std::array::from_fn(|lane| f32::from(lane as u8 * times % 7) / 2.0);
        let columns: [[f32; LANES]; 2] = [lanes(3), lanes(5)];
        assert_eq!(wide::as_wide_as_possible(&trees, &columns), trees.odds(&columns));
    }

    #[test]
    fn what_cannot_be_walked_is_refused() {
        for text in [
            "0 0.5 0 -1|1",
            "0 0.5 -1 -3|1 2",
            "7 0.5 -1 -2|1 2",
            "0 x -1 -2|1 2",
            "0 1 -1 -2",
            "|",
            "0 1 1 1;0 2 -1 -2|1 2 3",
        ] {
            assert!(Trees::parse(text, 2).is_none(), "{text}");
        }
    }
}
