//! The features of a claim and a passage. `scripts/train-judge.py` reads them through this code; their order is part of
//! the weights.

use std::collections::HashSet;

use matsu_core::research::closeness::terms;
use matsu_core::research::query::fold;
use matsu_core::research::sentences::{is_wide, sentences};

use super::cues::Cue;

/// How many features a row has.
pub const COLUMNS: usize = 31;

/// Words this near to two words of the claim count as being about it.
const NEAR: usize = 6;
/// A denial turns around the words that come this soon behind it: `does not reduce`, `no clear effect`.
const REACH: usize = 3;

/// A text in words, with what each is.
struct Words {
    words: Vec<String>,
    stems: Vec<String>,
    cues: Vec<Cue>,
    inside: Cue,
}

impl Words {
    fn of(text: &str) -> Self {
        let words = terms(text);
        let stems = words.iter().map(|word| stem(word)).collect();
        let cues = words.iter().map(|word| Cue::of(word)).collect();
        let folded = fold(text);
        let inside = if folded.chars().any(is_wide) { Cue::inside(&folded) } else { Cue::default() };
        Self { words, stems, cues, inside }
    }

    fn content(&self) -> impl Iterator<Item = &str> {
        self.stems
            .iter()
            .zip(&self.cues)
            .filter(|(_, cue)| !cue.is_common && !cue.denies)
            .map(|(stem, _)| stem.as_str())
    }

    fn count(&self, what: fn(&Cue) -> bool) -> f64 {
        number(self.cues.iter().filter(|cue| what(cue)).count() + usize::from(what(&self.inside)))
    }

    /// Whether a denial stands right before a word that is wanted. Scripts without spaces say it inside the word.
    fn denies_any_of(&self, wanted: &HashSet<&str>) -> bool {
        let is_wanted = |at: usize| wanted.contains(self.stems[at].as_str());
        let reached = |at: usize| self.cues[at.saturating_sub(REACH)..at].iter().any(|cue| cue.denies);
        self.inside.denies || (0..self.stems.len()).any(|at| is_wanted(at) && reached(at))
    }

    fn numbers(&self) -> HashSet<&str> {
        self.words.iter().map(String::as_str).filter(|word| word.chars().any(|c| c.is_ascii_digit())).collect()
    }
}

/// English endings that do not change what a word is about; other words stay as they are.
fn stem(word: &str) -> String {
    const ENDINGS: [&str; 13] =
        ["ations", "ation", "ingly", "ments", "ment", "edly", "ings", "ing", "ies", "ed", "es", "s", "ly"];
    let ending =
        ENDINGS.iter().find(|ending| word.is_ascii() && word.ends_with(**ending) && word.len() >= ending.len() + 4);
    let bare = ending.map_or(word, |ending| &word[..word.len() - ending.len()]);
    // `reduce`, `reduces` and `reduced` are one word.
    bare.strip_suffix('e').filter(|rest| word.is_ascii() && rest.len() >= 4).unwrap_or(bare).to_owned()
}

/// The two neighbouring sentences of a passage that share most with the claim; short passages are taken whole.
fn closest_part<'a>(claim: &HashSet<&str>, passage: &'a str) -> &'a str {
    let parts = sentences(passage);
    let scored = parts.windows(2.min(parts.len().max(1))).filter_map(|pair| {
        let part = &passage[pair.first()?.start..pair.last()?.end];
        let found: HashSet<String> = terms(part).iter().map(|word| stem(word)).collect();
        Some((claim.iter().filter(|word| found.contains(**word)).count(), part))
    });
    // The first of equals: `max_by_key` would take the last.
    scored.rev().max_by_key(|(shared, _)| *shared).map_or(passage, |(_, part)| part)
}

/// One row for a claim and a passage.
#[must_use]
pub fn row(claim: &str, passage: &str) -> [f64; COLUMNS] {
    let claim = Words::of(claim);
    let wanted: HashSet<&str> = claim.content().collect();
    let evidence = Words::of(closest_part(&wanted, passage));
    let there: HashSet<&str> = evidence.stems.iter().map(String::as_str).collect();
    let shared = Shared::of(&claim, &evidence, &wanted, &there);
    let near = Near::of(&evidence, &wanted);

    let (denied, denies) = (claim.count(|c| c.denies), evidence.count(|c| c.denies));
    let (up, down) = (claim.count(|c| c.goes_up), claim.count(|c| c.goes_down));
    let (evidence_up, evidence_down) = (evidence.count(|c| c.goes_up), evidence.count(|c| c.goes_down));
    let near_denies = near.denies + number(usize::from(evidence.inside.denies));
    let way = sign(up - down);
    let evidence_way = sign(evidence_up - evidence_down);
    let near_way = sign(near.up - near.down);
    let is_turned =
        (up > 0.0 && near.down > 0.0 && near.up == 0.0) || (down > 0.0 && near.up > 0.0 && near.down == 0.0);
    let odd = flag((denied > 0.0) != (denies > 0.0));
    let odd_reach = flag(claim.denies_any_of(&wanted) != evidence.denies_any_of(&wanted));
    let odd_near = flag((denied > 0.0) != (near_denies > 0.0));
    [
        shared.words,
        shared.weight,
        shared.beginnings,
        shared.pairs,
        shared.numbers,
        flag(shared.has_numbers && shared.numbers == 0.0),
        flag(shared.has_numbers),
        flag(denied > 0.0),
        flag(denies > 0.0),
        odd,
        odd_near,
        flag(near_denies > 0.0),
        way * evidence_way,
        way * near_way,
        flag(way * evidence_way < 0.0),
        flag(is_turned),
        number(evidence.words.len()).ln_1p(),
        number(claim.words.len()).ln_1p(),
        number(wanted.len() - shared.count),
        shared.weight * flag(denied > 0.0),
        shared.weight * flag(near_denies > 0.0),
        shared.weight * odd_near,
        flag((up > 0.0 && evidence_up > 0.0) || (down > 0.0 && evidence_down > 0.0)),
        way,
        evidence_way,
        shared.weight * shared.weight,
        denies.min(4.0),
        shared.weight * way * near_way,
        odd_reach,
        odd_reach * shared.weight,
        odd_reach * shared.pairs,
    ]
}

struct Shared {
    count: usize,
    words: f64,
    weight: f64,
    beginnings: f64,
    pairs: f64,
    numbers: f64,
    has_numbers: bool,
}

impl Shared {
    fn of(claim: &Words, evidence: &Words, wanted: &HashSet<&str>, there: &HashSet<&str>) -> Self {
        let hits: Vec<&&str> = wanted.iter().filter(|word| there.contains(**word)).collect();
        let weigh = |word: &str| number(word.chars().count()).ln_1p();
        let all: f64 = wanted.iter().map(|word| weigh(word)).sum();
        let begins = |word: &str| {
            let head: String = word.chars().take(5).collect();
            there.contains(word) || (word.len() >= 5 && there.iter().any(|other| other.starts_with(&head)))
        };
        let (asked, given) = (claim.numbers(), evidence.numbers());
        let claim_pairs = pairs(claim.content());
        let evidence_pairs = pairs(evidence.content());
        Self {
            count: hits.len(),
            words: share(hits.len(), wanted.len()),
            weight: hits.iter().map(|word| weigh(word)).sum::<f64>() / all.max(1e-9),
            beginnings: share(wanted.iter().filter(|word| begins(word)).count(), wanted.len()),
            pairs: share(claim_pairs.intersection(&evidence_pairs).count(), claim_pairs.len()),
            numbers: share(asked.intersection(&given).count(), asked.len()),
            has_numbers: !asked.is_empty(),
        }
    }
}

fn pairs<'a>(words: impl Iterator<Item = &'a str>) -> HashSet<(&'a str, &'a str)> {
    let words: Vec<&str> = words.collect();
    words.windows(2).map(|pair| (pair[0], pair[1])).collect()
}

/// Cues that stand among words of the claim.
#[derive(Default)]
struct Near {
    denies: f64,
    up: f64,
    down: f64,
}

impl Near {
    fn of(evidence: &Words, wanted: &HashSet<&str>) -> Self {
        let mut near = Self::default();
        let is_wanted: Vec<bool> = evidence.stems.iter().map(|stem| wanted.contains(stem.as_str())).collect();
        for (at, cue) in evidence.cues.iter().enumerate() {
            let around = &is_wanted[at.saturating_sub(NEAR)..(at + NEAR + 1).min(is_wanted.len())];
            if around.iter().filter(|is| **is).count() >= 2 {
                near.denies += flag(cue.denies);
                near.up += flag(cue.goes_up);
                near.down += flag(cue.goes_down);
            }
        }
        near
    }
}

fn flag(is: bool) -> f64 {
    f64::from(u8::from(is))
}

fn sign(value: f64) -> f64 {
    if value > 0.0 {
        1.0
    } else if value < 0.0 {
        -1.0
    } else {
        0.0
    }
}

fn share(part: usize, whole: usize) -> f64 {
    if whole == 0 { 0.0 } else { number(part) / number(whole) }
}

fn number(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}
