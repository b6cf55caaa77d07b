//! The facts of a text: numbers with their units and currencies, months, names.

use std::collections::BTreeSet;

use rust_stemmers::Algorithm;

use super::super::query::fold;
use super::super::sentences::is_wide;
use super::amounts::{Amount, amounts_and_months};
use super::language;
use super::names::names;

/// Letters by which a name is known in other forms of its word.
const NAME_START: usize = 4;
/// Letters at the end of a name that change with its case, in languages that have cases.
const CASE_ENDING: usize = 2;

/// What a text states in figures and names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// In their order: from 5 to 10 is not from 10 to 5.
    amounts: Vec<Amount>,
    months: BTreeSet<usize>,
    names: BTreeSet<String>,
    /// Every word, for the names of another text.
    words: Words,
}

/// Compared only where names are looked up; two texts of the same facts may have other words.
#[derive(Clone, Debug, Default)]
struct Words {
    folded: String,
    has_cases: bool,
}

impl PartialEq for Words {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Words {}

impl Facts {
    #[must_use]
    pub fn of(text: &str) -> Self {
        let folded = fold(text);
        let language = language::of(text);
        let (amounts, months) = amounts_and_months(&folded, &language);
        let has_cases =
            matches!(language, Algorithm::Russian | Algorithm::Finnish | Algorithm::Hungarian | Algorithm::Turkish);
        let words = Words { folded: spaced(&folded), has_cases };
        Self { amounts, months, names: names(text), words }
    }

    /// Whether a passage has all of them. An amount that the closest sentence lacks may stand elsewhere in the passage,
    /// if that sentence has no other one of its kind. A name may stand anywhere; `swapped.rs` sees another in its place.
    #[must_use]
    pub fn are_in(&self, sentence: &Self, passage: &Self) -> bool {
        let has_amount = |amount: &Amount| {
            let is_rival = |theirs: &Amount| theirs.is_rival_of(amount) && !self.amounts.contains(theirs);
            amount.is_among(&sentence.amounts)
                || !sentence.amounts.iter().any(is_rival) && amount.is_among(&passage.amounts)
        };
        let months = if sentence.months.is_empty() { &passage.months } else { &sentence.months };
        let has_months = months.is_empty() || self.months.is_subset(months);
        let has_names = self.names.iter().all(|name| passage.words.has(name));
        self.amounts.iter().all(has_amount) && has_months && has_names
    }

    /// Whether another text has every number, unit and month.
    #[must_use]
    pub fn figures_are_in(&self, other: &Self) -> bool {
        let has_months = other.months.is_empty() || self.months.is_subset(&other.months);
        self.amounts.iter().all(|amount| amount.is_among(&other.amounts)) && has_months
    }

    /// Names for which a text has no word that begins alike: `Japanese` is there if `Japan` is. Names in scripts without
    /// spaces are not looked at, because every longer word of katakana would be one.
    pub fn names_without_trace<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = &'a str> {
        self.names
            .iter()
            .map(String::as_str)
            .filter(move |name| !name.chars().any(is_wide) && !other.has_word_like(name))
    }

    /// Whether the text has a word that begins as this folded one does.
    #[must_use]
    pub fn has_word_like(&self, word: &str) -> bool {
        if word.chars().all(is_wide) {
            return self.words.folded.contains(word);
        }
        let start: String = word.chars().take(NAME_START).collect();
        self.words.folded.contains(&format!(" {start}"))
    }
}

impl Words {
    fn has(&self, name: &str) -> bool {
        if name.chars().all(is_wide) {
            return self.folded.contains(name);
        }
        let letters = name.chars().count();
        if self.has_cases && letters > NAME_START {
            let stem: String = name.chars().take(NAME_START.max(letters - CASE_ENDING)).collect();
            return self.folded.contains(&format!(" {stem}"));
        }
        self.folded.contains(&format!(" {name} "))
    }
}

/// Folded, every mark a space, with a space at both ends.
fn spaced(folded: &str) -> String {
    let plain: String = folded.chars().map(|c| if c.is_alphanumeric() { c } else { ' ' }).collect();
    format!(" {} ", plain.split_whitespace().collect::<Vec<_>>().join(" "))
}
