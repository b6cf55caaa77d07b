//! When a search runs dry: fewer than a tenth of the last twenty fragments were new, twice in a row.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

/// Fragments that are looked back on.
pub const WINDOW: usize = 20;
/// Below this share of new fragments a look counts as dry.
pub const DRY_BELOW: f64 = 0.1;
/// Dry looks in a row that end a search.
pub const DRY_LOOKS: u32 = 2;

/// Whether recent fragments were new, and how often a look found them not to be. Part of a search's checkpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Novelty {
    recent: VecDeque<bool>,
    dry_looks: u32,
}

impl Novelty {
    pub fn note(&mut self, is_new: bool) {
        if self.recent.len() == WINDOW {
            self.recent.pop_front();
        }
        self.recent.push_back(is_new);
    }

    /// The share of new ones; 1 while there is nothing to look back on.
    #[must_use]
    pub fn share(&self) -> f64 {
        if self.recent.is_empty() {
            return 1.0;
        }
        let new = self.recent.iter().filter(|is_new| **is_new).count();
        f64::from(u32::try_from(new).unwrap_or(0)) / f64::from(u32::try_from(self.recent.len()).unwrap_or(1))
    }

    /// Called after each page. `true`: looking further is not worth it. `false` before a whole window is there.
    pub fn look(&mut self) -> bool {
        if self.recent.len() < WINDOW || self.share() >= DRY_BELOW {
            self.dry_looks = 0;
        } else {
            self.dry_looks += 1;
        }
        self.dry_looks >= DRY_LOOKS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(new: usize, old: usize) -> Novelty {
        let mut novelty = Novelty::default();
        (0..new).for_each(|_| novelty.note(true));
        (0..old).for_each(|_| novelty.note(false));
        novelty
    }

    #[test]
    fn two_dry_looks_in_a_row_end_a_search() {
        let mut novelty = after(0, 20);
        assert!(!novelty.look(), "one dry look is not enough");
        assert!(novelty.look());
        let mut wet_between = after(0, 20);
        assert!(!wet_between.look());
        (0..2).for_each(|_| wet_between.note(true));
        assert!(!wet_between.look(), "two of twenty are not below a tenth");
        (0..20).for_each(|_| wet_between.note(false));
        assert!(!wet_between.look(), "the count begins anew");
    }

    #[test]
    fn a_short_look_back_says_nothing() {
        let mut novelty = after(0, 19);
        assert!(!novelty.look());
        assert!(!novelty.look());
        assert_eq!(after(1, 19).share(), 0.05);
        assert_eq!(after(40, 19).share(), 0.05, "only the last twenty count");
    }
}
