//! Boosted trees as `scripts/train-extraction.py` writes them: one line a tree, nodes divided by `;`.
//! A split is `feature threshold left right`, where a child below zero is leaf `-child - 1`; leaves follow after `|`.

/// A set of trees whose sum is the logarithm of the odds. All of them lie in one piece: they are walked for every block
/// of every page.
#[derive(Default)]
pub struct Trees {
    trees: Vec<Tree>,
    nodes: Vec<Node>,
    /// The leaf of each node; zero at a split.
    values: Vec<f32>,
}

#[derive(Clone, Copy)]
struct Tree {
    root: u32,
    /// Steps from the root to the farthest leaf.
    depth: u32,
}

/// A split, or a leaf, which leads to itself: so every row can make the same number of steps.
#[derive(Clone, Copy)]
struct Node {
    threshold: f32,
    feature: u32,
    children: [u32; 2],
}

/// A child below zero is leaf `-child - 1`.
#[derive(Clone, Copy)]
struct Split {
    threshold: f32,
    feature: u32,
    left: i32,
    right: i32,
}

/// So many rows are walked side by side: while one waits for its node, the others go on.
const LANES: usize = 8;

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
        for tree in &self.trees {
            for (odds, rows) in odds.chunks_mut(LANES).zip(rows.chunks(LANES)) {
                self.add_values(*tree, rows, odds);
            }
        }
        odds.into_iter().map(|odds: f32| 1.0 / (1.0 + (-odds).exp())).collect()
    }

    /// Adds what the tree says of each row.
    fn add_values<R: AsRef<[f32]>>(&self, tree: Tree, rows: &[R], odds: &mut [f32]) {
        let mut at = [tree.root; LANES];
        for _ in 0..tree.depth {
            for (at, row) in at.iter_mut().zip(rows) {
                let node = &self.nodes[*at as usize];
                let value = row.as_ref().get(node.feature as usize).copied().unwrap_or(0.0);
                // By index and not by a condition: which way a row goes cannot be foreseen.
                let is_left = value <= node.threshold;
                *at = node.children[usize::from(!is_left)];
            }
        }
        for (odds, at) in odds.iter_mut().zip(at) {
            *odds += self.values[at as usize];
        }
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
        let before = u32::try_from(self.nodes.len()).ok()?;
        let count = u32::try_from(splits.len()).ok()?;
        // Leaves stand behind the splits.
        let place = |child: i32| match u32::try_from(child) {
            Ok(split) => Some(before + split),
            Err(_) => Some(before + count + u32::try_from(leaf_of(child)).ok()?),
        };
        for split in &splits {
            let children = [place(split.left)?, place(split.right)?];
            self.nodes.push(Node { threshold: split.threshold, feature: split.feature, children });
            self.values.push(0.0);
        }
        for leaf in &leaves {
            let own = u32::try_from(self.nodes.len()).ok()?;
            self.nodes.push(Node { threshold: 0.0, feature: 0, children: [own, own] });
            self.values.push(*leaf);
        }
        self.trees.push(Tree { root: before, depth: depth(&splits) });
        Some(())
    }
}

/// Steps from the root to the farthest leaf. A child stands behind its parent.
fn depth(splits: &[Split]) -> u32 {
    let mut depths = vec![0; splits.len()];
    for (at, split) in splits.iter().enumerate().rev() {
        let below = |child: i32| usize::try_from(child).map_or(0, |child| depths[child]);
        depths[at] = 1 + below(split.left).max(below(split.right));
    }
    depths.first().copied().unwrap_or(0)
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
    fn many_rows_are_walked_as_one_is() {
        let trees = Trees::parse("0 0.5 -1 1;1 2 -2 2;0 3 -3 -4|-1 0 1 2\n1 0 -1 -2|-0.5 0.25", 2).expect("trees");
        let rows: Vec<[f32; 2]> = (0..2 * LANES as u8 + 3).map(|n| [f32::from(n % 5), f32::from(n % 4)]).collect();
        let alone: Vec<f32> = rows.iter().flat_map(|row| trees.probabilities(&[row])).collect();
        assert_eq!(trees.probabilities(&rows), alone);
        assert!(trees.probabilities::<[f32; 2]>(&[]).is_empty());
    }

    #[test]
    fn what_cannot_be_walked_is_refused() {
        for text in ["0 0.5 0 -1|1", "0 0.5 -1 -3|1 2", "7 0.5 -1 -2|1 2", "0 x -1 -2|1 2", "0 1 -1 -2", "|"] {
            assert!(Trees::parse(text, 2).is_none(), "{text}");
        }
    }
}
