//! What a judge may not overlook: a passage whose closest sentence gives another number, unit, date or name than the
//! claim, or that denies what the claim affirms, does not support it, however alike the two are.

mod amounts;
mod denial;
mod facts;
mod language;
mod names;
mod number_words;
mod swapped;
mod units;

use std::collections::BTreeSet;

use super::ranking::candidates::{ITEM_MARK, ROW_MARK};
use super::ranking::language::is_same;
use super::sentences::sentences;
pub use denial::denies;
use facts::Facts;
use swapped::Aligned;

/// Two statements are the same if they share this part of their words, have the same facts, and differ in no place by
/// another word.
const SAME_SHARE: f64 = 0.9;

/// Whether a passage can support a claim. Its sentence that is closest to the claim has no other number, unit, date or
/// name in the place of the claim's, and denies as the claim does; what this sentence leaves open, the passage has.
#[must_use]
pub fn can_support(claim: &str, passage: &str) -> bool {
    let passage = passage.replace('\n', " ");
    let sentence = closest_sentence(claim, &passage);
    Facts::of(claim).are_in(&Facts::of(sentence), &Facts::of(&passage))
        && denies_alike(claim, sentence)
        && Aligned::of(claim).other_name(&Aligned::of(sentence)).is_none()
}

/// Whether texts of others have every figure of a sentence, and, in the same language, every name of it. A name may stand
/// in the question instead.
#[must_use]
pub fn has_facts_of(sentence: &str, others: &str, question: &str) -> bool {
    let (facts, theirs) = (Facts::of(sentence), Facts::of(others));
    if !facts.figures_are_in(&theirs) {
        return false;
    }
    if !is_same(sentence, others) {
        return true;
    }
    let named = Facts::of(&format!("{others}\n{question}"));
    let closest = Aligned::of(closest_sentence(sentence, others));
    let is_other = |name: String| !named.has_word_like(&name);
    facts.names_without_trace(&named).next().is_none()
        && !Aligned::of(sentence).other_name(&closest).is_some_and(is_other)
}

/// Words and marks between two statements of one sentence, of which one may deny and the other not.
const BETWEEN_CLAUSES: [&str; 9] =
    [";", "；", " but ", " whereas ", " aber ", " sondern ", " mais ", " pero ", " sino "];

/// Whether the part of a sentence that shares most words with a claim denies as the claim does. If two parts share as
/// many, both have to.
fn denies_alike(claim: &str, sentence: &str) -> bool {
    let mut clauses = vec![sentence];
    for mark in BETWEEN_CLAUSES {
        clauses = clauses.into_iter().flat_map(|clause| clause.split(mark)).collect();
    }
    let wanted = super::closeness::terms(claim);
    let shared = |clause: &str| {
        let has = super::closeness::terms(clause);
        wanted.iter().filter(|term| has.contains(term)).count()
    };
    let most = clauses.iter().map(|clause| shared(clause)).max().unwrap_or(0);
    let is_denied = denies(claim);
    clauses.into_iter().filter(|clause| shared(clause) == most).all(|clause| denies(clause) == is_denied)
}

/// The sentence of a passage that shares most of its words with a claim; of equals the first. A passage without marks of
/// a sentence is one sentence.
#[must_use]
pub fn closest_sentence<'a>(claim: &str, passage: &'a str) -> &'a str {
    let wanted = super::closeness::terms(claim);
    let shared = |text: &str| {
        let has = super::closeness::terms(text);
        wanted.iter().filter(|term| has.contains(term)).count()
    };
    let spans = sentences(passage);
    let best = spans.iter().rev().max_by_key(|span| shared(&passage[span.start..span.end]));
    let best = best.map_or(passage, |span| passage[span.start..span.end].trim());
    [ITEM_MARK, ROW_MARK].iter().find_map(|mark| best.strip_prefix(mark)).unwrap_or(best)
}

/// A statement as others are compared with it.
#[derive(Clone, Debug)]
pub struct Statement {
    terms: BTreeSet<String>,
    facts: Facts,
    denies: bool,
    words: Aligned,
}

impl Statement {
    #[must_use]
    pub fn of(text: &str) -> Self {
        Self {
            terms: super::closeness::terms(text).into_iter().collect(),
            facts: Facts::of(text),
            denies: denies(text),
            words: Aligned::of(text),
        }
    }

    /// Whether the two say the same in nearly the same words.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        self.shares_words(&other.terms)
            && self.denies == other.denies
            && self.facts == other.facts
            && !self.words.has_other_word(&other.words)
    }

    /// The same for a text of which only its words are looked at, unless it shares most of them: that is much cheaper.
    #[must_use]
    pub fn is_same_as(&self, text: &str) -> bool {
        self.shares_words(&super::closeness::terms(text).into_iter().collect()) && self.is_same(&Self::of(text))
    }

    fn shares_words(&self, terms: &BTreeSet<String>) -> bool {
        let number = |count: usize| f64::from(u32::try_from(count).unwrap_or(u32::MAX));
        let shared = number(self.terms.intersection(terms).count());
        let all = number(self.terms.union(terms).count());
        all > 0.0 && shared / all >= SAME_SHARE
    }
}

#[cfg(test)]
mod tests;
