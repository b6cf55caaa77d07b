//! How close a passage is to a question or a claim: BM25 over words, and over character pairs where a script has no
//! spaces, so that a two-letter Japanese or Korean word is found.

use std::collections::HashMap;

use super::query::fold;
use super::sentences::is_wide;

const K1: f64 = 1.2;
const B: f64 = 0.75;

/// The terms of a text: folded words of letters and digits; of wide letters every neighbouring pair, or the letter
/// itself where it stands alone.
#[must_use]
pub fn terms(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for word in fold(text).split(|c: char| !c.is_alphanumeric()) {
        let mut run: Vec<char> = Vec::new();
        let mut wide = false;
        for c in word.chars() {
            if !run.is_empty() && is_wide(c) != wide {
                push_run(&run, wide, &mut found);
                run.clear();
            }
            wide = is_wide(c);
            run.push(c);
        }
        push_run(&run, wide, &mut found);
    }
    found
}

fn push_run(run: &[char], wide: bool, found: &mut Vec<String>) {
    match run {
        [] => {}
        [_, _, ..] if wide => found.extend(run.windows(2).map(|pair| pair.iter().collect())),
        _ => found.push(run.iter().collect()),
    }
}

/// Passages that can be asked which of them are close to a text.
pub struct Closeness {
    postings: HashMap<String, Vec<(usize, f64)>>,
    lengths: Vec<f64>,
    mean: f64,
}

impl Closeness {
    pub fn over<'a>(passages: impl IntoIterator<Item = &'a str>) -> Self {
        let mut postings: HashMap<String, Vec<(usize, f64)>> = HashMap::new();
        let mut lengths = Vec::new();
        for (at, passage) in passages.into_iter().enumerate() {
            let mut counts: HashMap<String, f64> = HashMap::new();
            let terms = terms(passage);
            lengths.push(f64::from(u32::try_from(terms.len()).unwrap_or(u32::MAX)));
            for term in terms {
                *counts.entry(term).or_default() += 1.0;
            }
            for (term, count) in counts {
                postings.entry(term).or_default().push((at, count));
            }
        }
        let mean = lengths.iter().sum::<f64>() / f64::from(u32::try_from(lengths.len().max(1)).unwrap_or(1));
        Self { postings, lengths, mean }
    }

    /// Places and scores of the passages that share a term with the text, closest first; of equals the earlier one.
    #[must_use]
    pub fn closest(&self, text: &str, places_max: usize) -> Vec<(usize, f64)> {
        let mut scores: HashMap<usize, f64> = HashMap::new();
        let mut wanted = terms(text);
        wanted.sort();
        wanted.dedup();
        let all = f64::from(u32::try_from(self.lengths.len()).unwrap_or(u32::MAX));
        for term in wanted {
            let Some(places) = self.postings.get(&term) else { continue };
            let with = f64::from(u32::try_from(places.len()).unwrap_or(u32::MAX));
            let rarity = (1.0 + (all - with + 0.5) / (with + 0.5)).ln();
            for (at, count) in places {
                let length = self.lengths.get(*at).copied().unwrap_or(1.0) / self.mean.max(1.0);
                *scores.entry(*at).or_default() += rarity * count * (K1 + 1.0) / (count + K1 * (1.0 - B + B * length));
            }
        }
        let mut ranked: Vec<(usize, f64)> = scores.into_iter().collect();
        ranked.sort_by(|left, right| right.1.total_cmp(&left.1).then(left.0.cmp(&right.0)));
        ranked.truncate(places_max);
        ranked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_scripts_are_cut_into_pairs() {
        assert_eq!(terms("Long-Polling ２"), ["long", "polling", "2"]);
        assert_eq!(terms("待ち行列"), ["待ち", "ち行", "行列"]);
        assert_eq!(terms("木 한국 MCP接続"), ["木", "한국", "mcp", "接続"]);
    }

    #[test]
    fn the_passage_with_the_rare_words_is_closest() {
        let passages = [
            "Waiting is what servers do.",
            "Long polling holds a request until something changes, so tokens are saved.",
            "東京の天気は晴れです。",
            "서울의 대기열은 길다.",
        ];
        let close = Closeness::over(passages);
        let first = |text: &str| close.closest(text, 2).first().map(|(at, _)| *at);
        assert_eq!(first("does long polling save tokens"), Some(1));
        assert_eq!(first("天気"), Some(2));
        assert_eq!(first("대기"), Some(3));
        assert_eq!(first("zebra"), None);
        assert_eq!(close.closest("waiting servers changes", 1).len(), 1);
    }
}
