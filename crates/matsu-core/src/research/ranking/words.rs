//! What texts are compared by, in three forms: exact words, stems, and runs of letters inside words.
//!
//! Scripts without spaces have no words to see: their exact form is every pair of neighbouring letters, their stems are
//! the letters that carry meaning, and their runs are three letters long.
//!
//! Of a text only the question's terms are counted, so that a pool of thousands of sentences is measured in
//! milliseconds.

use std::collections::HashMap;

use rust_stemmers::Stemmer;

use super::super::query::fold;
use super::super::sentences::is_wide;
use super::bm25::number;
use super::language;

/// Letters in a run of a word; a compound shares its runs with the words that it is made of.
const RUN: usize = 4;
/// Letters in a run of a script without spaces.
const RUN_WIDE: usize = 3;

/// The forms of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Exact,
    Stem,
    Run,
}

pub const FORMS: [Form; 3] = [Form::Exact, Form::Stem, Form::Run];

/// How often each of the question's terms stands in a text, and how long the text is, by form.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Terms {
    counts: [Vec<f64>; 3],
    lengths: [f64; 3],
    /// The stems in order: the number of the question's term, or nothing.
    pub stems: Vec<Option<usize>>,
}

impl Terms {
    /// One count for each of the question's terms.
    #[must_use]
    pub fn counts(&self, form: Form) -> &[f64] {
        &self.counts[form as usize]
    }

    #[must_use]
    pub fn length(&self, form: Form) -> f64 {
        self.lengths[form as usize]
    }

    /// Adds what another text has.
    pub fn extend(&mut self, other: &Self) {
        for (mine, more) in self.counts.iter_mut().zip(&other.counts) {
            mine.resize(more.len().max(mine.len()), 0.0);
            mine.iter_mut().zip(more).for_each(|(mine, more)| *mine += more);
        }
        self.lengths.iter_mut().zip(other.lengths).for_each(|(mine, more)| *mine += more);
    }
}

/// The terms of a question, each once, and the words of its language.
pub struct Question {
    numbers: [HashMap<u64, usize>; 3],
    stems: HashMap<String, u64>,
    stemmer: Stemmer,
}

impl Question {
    /// With the stemmer of the language that the sample is written in; of English if it does not show.
    #[must_use]
    pub fn of(question: &str, sample: &str) -> Self {
        let stemmer = Stemmer::create(language::of(sample));
        let mut this = Self { numbers: Default::default(), stems: HashMap::new(), stemmer };
        let mut found: Vec<(Form, u64)> = Vec::new();
        this.each_term(question, &mut |form, term| found.push((form, term)));
        for (form, term) in found {
            let numbers = &mut this.numbers[form as usize];
            let next = numbers.len();
            numbers.entry(term).or_insert(next);
        }
        this
    }

    /// What of the question a text has.
    pub fn measure(&mut self, text: &str) -> Terms {
        let mut terms = Terms::default();
        for form in FORMS {
            terms.counts[form as usize] = vec![0.0; self.numbers[form as usize].len()];
        }
        let numbers = std::mem::take(&mut self.numbers);
        self.each_term(text, &mut |form, term| {
            let at = numbers[form as usize].get(&term).copied();
            if let Some(at) = at {
                terms.counts[form as usize][at] += 1.0;
            }
            terms.lengths[form as usize] += 1.0;
            if form == Form::Stem {
                terms.stems.push(at);
            }
        });
        self.numbers = numbers;
        terms
    }

    fn each_term(&mut self, text: &str, take: &mut dyn FnMut(Form, u64)) {
        for run in runs(&fold(text)) {
            match run {
                Run::Word(word) => self.word(&word, take),
                Run::Wide(letters) => wide(&letters, take),
            }
        }
    }

    fn word(&mut self, word: &str, take: &mut dyn FnMut(Form, u64)) {
        take(Form::Exact, hash(word.chars()));
        let stem = match self.stems.get(word) {
            Some(stem) => *stem,
            None => {
                let stem = hash(self.stemmer.stem(word).chars());
                self.stems.insert(word.to_owned(), stem);
                stem
            }
        };
        take(Form::Stem, stem);
        let letters: Vec<char> = word.chars().collect();
        for run in letters.windows(RUN.min(letters.len())) {
            take(Form::Run, hash(run.iter().copied()));
        }
    }
}

fn wide(letters: &[char], take: &mut dyn FnMut(Form, u64)) {
    for pair in letters.windows(2.min(letters.len())) {
        take(Form::Exact, hash(pair.iter().copied()));
    }
    for run in letters.windows(RUN_WIDE) {
        take(Form::Run, hash(run.iter().copied()));
    }
    // Hiragana are endings and particles; a run of katakana is one foreign word; every other letter means something.
    let mut foreign: Vec<char> = Vec::new();
    for c in letters.iter().copied().chain(std::iter::once(' ')) {
        if is_katakana(c) {
            foreign.push(c);
            continue;
        }
        if !foreign.is_empty() {
            take(Form::Stem, hash(foreign.drain(..)));
        }
        if c != ' ' && !is_hiragana(c) {
            take(Form::Stem, hash(std::iter::once(c)));
        }
    }
}

/// FNV-1a over letters.
fn hash(letters: impl Iterator<Item = char>) -> u64 {
    letters.fold(0xcbf2_9ce4_8422_2325, |hash, c| (hash ^ u64::from(u32::from(c))).wrapping_mul(0x0100_0000_01b3))
}

/// The share of a text's stems that are not the question's.
#[must_use]
pub fn new_share(text: &Terms) -> f64 {
    let new = text.stems.iter().filter(|stem| stem.is_none()).count();
    number(new) / number(text.stems.len().max(1))
}

/// Whether a letter is one of particles and endings.
#[must_use]
pub fn is_hiragana(c: char) -> bool {
    matches!(u32::from(c), 0x3040..=0x309F)
}

fn is_katakana(c: char) -> bool {
    matches!(u32::from(c), 0x30A0..=0x30FF | 0x31F0..=0x31FF)
}

/// A stretch of letters and digits of one kind of script.
pub enum Run {
    Word(String),
    Wide(Vec<char>),
}

/// The stretches of a folded text.
#[must_use]
pub fn runs(folded: &str) -> Vec<Run> {
    let mut found = Vec::new();
    let mut run: Vec<char> = Vec::new();
    let mut was_wide = false;
    for c in folded.chars() {
        let is_letter = c.is_alphanumeric() || (c == 'ー' && was_wide);
        let wide = is_wide(c);
        if !run.is_empty() && (!is_letter || wide != was_wide) {
            found.push(close(&mut run, was_wide));
        }
        if is_letter {
            run.push(c);
            was_wide = wide;
        }
    }
    if !run.is_empty() {
        found.push(close(&mut run, was_wide));
    }
    found
}

fn close(run: &mut Vec<char>, is_wide: bool) -> Run {
    let letters = std::mem::take(run);
    if is_wide { Run::Wide(letters) } else { Run::Word(letters.into_iter().collect()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shared(form: Form, left: &str, right: &str) -> usize {
        let mut question = Question::of(left, &format!("{left} {right}"));
        question.measure(right).counts(form).iter().filter(|count| **count > 0.0).count()
    }

    #[test]
    fn inflected_words_compounds_and_scripts_without_spaces_meet() {
        assert_eq!(shared(Form::Exact, "the bear is brown", "bears"), 0);
        assert_eq!(shared(Form::Stem, "the bear is brown", "bears"), 1);
        assert_eq!(shared(Form::Stem, "das Haus und der Garten", "die Häuser"), 1);
        assert!(shared(Form::Run, "Hauptstadt", "Hauptstadtfunktion") >= 6);
        assert!(shared(Form::Exact, "ゾウガメの寿命", "ゾウガメは長生きで、寿命は百年を超える。") >= 4);
        assert_eq!(shared(Form::Stem, "ゾウガメの寿命", "寿命の長いゾウガメ"), 3);
    }
}
