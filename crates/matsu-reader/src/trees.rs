//! Boosted trees as `scripts/train-extraction.py` writes them: one line a tree, nodes divided by `;`.
//! A split is `feature threshold left right`, where a child below zero is leaf `-child - 1`; leaves follow after `|`.

/// A set of trees whose sum is the logarithm of the odds. All of them lie in one piece: they are walked for every block
/// of every page.
#[derive(Default)]
pub struct Trees {
    roots: Vec<i32>,
    splits: Vec<Split>,
    leaves: Vec<f32>,
}

/// A child below zero is leaf `-child - 1`.
#[derive(Clone, Copy)]
struct Split {
    threshold: f32,
    feature: u32,
    left: i32,
    right: i32,
}

impl Trees {
    /// `None` if a line is not a tree that ends in leaves, or asks for more than `features`.
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
        let mut odds = vec![0.0; rows.len()];
        // Tree by tree: one tree stays in the cache while it is walked for every row.
        for root in &self.roots {
            for (odds, row) in odds.iter_mut().zip(rows) {
                *odds += self.value(*root, row.as_ref());
            }
        }
        odds.into_iter().map(|odds: f32| 1.0 / (1.0 + (-odds).exp())).collect()
    }

    fn add(&mut self, line: &str, features: u32) -> Option<()> {
        let (splits, leaves) = line.split_once('|')?;
        let splits = splits.split(';').filter(|part| !part.is_empty()).map(Split::parse).collect::<Option<Vec<_>>>()?;
        let leaves = leaves.split(' ').map(|leaf| leaf.parse().ok()).collect::<Option<Vec<f32>>>()?;
        // A child stands behind its parent, so every walk ends.
        let is_sound = splits.iter().enumerate().all(|(at, split)| {
            let leads_on = |child: i32| match usize::try_from(child) {
                Ok(child) => child > at && child < splits.len(),
                Err(_) => leaf_of(child) < leaves.len(),
            };
            split.feature < features && leads_on(split.left) && leads_on(split.right)
        });
        if !is_sound || leaves.is_empty() {
            return None;
        }
        let (before, leaves_before) = (i32::try_from(self.splits.len()).ok()?, i32::try_from(self.leaves.len()).ok()?);
        let moved = |child: i32| if child < 0 { child - leaves_before } else { child + before };
        self.roots.push(moved(if splits.is_empty() { -1 } else { 0 }));
        self.splits.extend(splits.iter().map(|s| Split { left: moved(s.left), right: moved(s.right), ..*s }));
        self.leaves.extend(leaves);
        Some(())
    }

    fn value(&self, root: i32, row: &[f32]) -> f32 {
        let mut at = root;
        while let Ok(place) = usize::try_from(at) {
            let split = &self.splits[place];
            let value = row.get(split.feature as usize).copied().unwrap_or(0.0);
            at = if value <= split.threshold { split.left } else { split.right };
        }
        self.leaves[leaf_of(at)]
    }
}

/// Leaves are numbered from -1 downwards.
fn leaf_of(child: i32) -> usize {
    usize::try_from(-(child + 1)).unwrap_or(usize::MAX)
}

impl Split {
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
    fn what_cannot_be_walked_is_refused() {
        for text in ["0 0.5 0 -1|1", "0 0.5 -1 -3|1 2", "7 0.5 -1 -2|1 2", "0 x -1 -2|1 2", "0 1 -1 -2", "|"] {
            assert!(Trees::parse(text, 2).is_none(), "{text}");
        }
    }
}
