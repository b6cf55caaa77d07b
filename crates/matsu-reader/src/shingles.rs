//! How much of one text occurs in another, word for word. Order matters within four words, not beyond, so two
//! extractors that put the same paragraphs in another order agree.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

const WINDOW: usize = 4;

/// Hashes are already well mixed; hashing them again would only cost.
#[derive(Default)]
pub struct AsIs(u64);

impl Hasher for AsIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = value;
    }
}

type Set = HashSet<u64, BuildHasherDefault<AsIs>>;

/// The runs of one to four words of a text.
#[derive(Default)]
pub struct Shingles {
    by_length: [Set; WINDOW],
}

impl Shingles {
    pub fn of(text: &str) -> Self {
        let words = word_hashes(text);
        let mut shingles = Self::default();
        for (length, set) in shingles.by_length.iter_mut().enumerate() {
            set.extend(words.windows(length + 1).map(run_hash));
        }
        shingles
    }

    /// The share of `words` that lies in runs which this text has too, 0 to 1. A text shorter than the window counts
    /// as one run.
    pub fn share_of(&self, words: &[u64]) -> f32 {
        if words.is_empty() {
            return 0.0;
        }
        let length = words.len().min(WINDOW);
        let set = &self.by_length[length - 1];
        let mut covered = vec![false; words.len()];
        for (start, run) in words.windows(length).enumerate() {
            if set.contains(&run_hash(run)) {
                covered[start..start + length].fill(true);
            }
        }
        ratio(covered.iter().filter(|c| **c).count(), words.len())
    }
}

/// One number for each run of letters and digits, case folded; each ideograph is a word of its own.
pub fn word_hashes(text: &str) -> Vec<u64> {
    let mut words = Vec::with_capacity(text.len() / 6);
    let mut hash = 0u64;
    for c in text.chars() {
        let is_word = c.is_alphanumeric();
        let stands_alone = is_word && c >= '\u{2e80}';
        if (!is_word || stands_alone) && hash != 0 {
            words.push(mix(hash));
            hash = 0;
        }
        if stands_alone {
            words.push(mix(u64::from(u32::from(c))));
        } else if is_word {
            let folded = if c.is_ascii() { c.to_ascii_lowercase() } else { c.to_lowercase().next().unwrap_or(c) };
            hash = (hash ^ u64::from(u32::from(folded))).wrapping_mul(0x0100_0000_01b3) | 1;
        }
    }
    if hash != 0 {
        words.push(mix(hash));
    }
    words
}

/// Which runs of words of a page stand in more than one of its blocks.
pub struct Repeats {
    /// The first and the last block that has a run.
    ends: HashMap<u64, (usize, usize), BuildHasherDefault<AsIs>>,
}

impl Repeats {
    pub fn of<'a>(blocks: impl Iterator<Item = &'a [u64]>) -> Self {
        let mut ends = HashMap::default();
        for (at, words) in blocks.enumerate() {
            for run in runs(words) {
                ends.entry(run).or_insert((at, at)).1 = at;
            }
        }
        Self { ends }
    }

    /// The shares of a block's runs that stand in a block above it, and in one below.
    pub fn shares(&self, at: usize, words: &[u64]) -> [f32; 2] {
        let (mut above, mut below, mut all) = (0, 0, 0);
        for run in runs(words) {
            let (first, last) = self.ends.get(&run).copied().unwrap_or((at, at));
            above += usize::from(first < at);
            below += usize::from(last > at);
            all += 1;
        }
        [ratio(above, all), ratio(below, all)]
    }
}

/// The runs of four words; fewer words are one run.
fn runs(words: &[u64]) -> impl Iterator<Item = u64> {
    words.windows(words.len().clamp(1, WINDOW)).map(run_hash)
}

fn run_hash(run: &[u64]) -> u64 {
    run.iter().fold(0x9e37_79b9_7f4a_7c15, |hash, word| mix(hash.rotate_left(23) ^ word))
}

const fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 32)).wrapping_mul(0x9fb2_1c65_1e98_df25);
    value ^ (value >> 29)
}

#[expect(clippy::cast_precision_loss, reason = "counts of words, far below 2^24")]
fn ratio(part: usize, whole: usize) -> f32 {
    if whole == 0 { 0.0 } else { part as f32 / whole as f32 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_counted_in_words() {
        let page = Shingles::of("The quick brown fox jumps over the lazy dog.");
        assert!((page.share_of(&word_hashes("quick brown fox jumps")) - 1.0).abs() < 1e-6);
        assert!((page.share_of(&word_hashes("Lazy DOG")) - 1.0).abs() < 1e-6);
        assert!(page.share_of(&word_hashes("dog lazy")) < 1e-6);
        assert!((page.share_of(&word_hashes("quick brown fox jumps high above it all")) - 0.5).abs() < 1e-6);
    }

    #[test]
    fn a_text_that_stands_twice_is_seen_from_both_places() {
        let blocks = ["one two three four five", "something else", "One two, three four"].map(word_hashes);
        let repeats = Repeats::of(blocks.iter().map(Vec::as_slice));
        assert_eq!(repeats.shares(0, &blocks[0]), [0.0, 0.5]);
        assert_eq!(repeats.shares(1, &blocks[1]), [0.0, 0.0]);
        assert_eq!(repeats.shares(2, &blocks[2]), [1.0, 0.0]);
    }

    #[test]
    fn ideographs_are_words() {
        assert_eq!(word_hashes("長期待機 abc").len(), 5);
    }
}
