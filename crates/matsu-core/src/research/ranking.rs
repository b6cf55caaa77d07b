//! Which sentences of many passages answer a question: passages by BM25 first, then their sentences by a linear ranker
//! over features of sentence, passage, document and neighbours.

pub mod asked;
pub mod bm25;
pub mod candidates;
pub mod features;
pub mod language;
pub mod weights;
pub mod words;

use std::collections::{HashMap, HashSet};

use super::closeness::Closeness;
use super::headings::{Headings, innermost};
use super::sentences::{Sentence, is_wide};
use bm25::Statistics;
use candidates::{Candidate, LeadIn, candidates};
use features::{NAMES, Row};
use weights::Weights;
use words::{FORMS, Question, Terms};

/// Passages whose sentences are looked at; with more, those that BM25 finds closest.
const PASSAGES_MAX: usize = 600;
/// Of those that are left, the passages whose headings are closest are looked at too: the words of a question may stand
/// above a passage and not in it.
const BY_HEADING_MAX: usize = 100;
/// Characters of the passages by which their language is detected.
const SAMPLE_CHARS: usize = 400;

/// A passage to be ranked. Passages of one document stand together, in their order.
#[derive(Clone, Copy, Debug)]
pub struct Passage<'a> {
    /// The same for all passages of a document.
    pub document: usize,
    pub title: &'a str,
    pub headings: &'a Headings,
    pub text: &'a str,
}

/// A sentence with its score, and what the score was made of.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranked {
    /// Number of its passage.
    pub passage: usize,
    pub span: Sentence,
    pub lead_in: Option<LeadIn>,
    pub score: f64,
    /// How likely it answers the question.
    pub probability: f64,
    pub features: Row,
}

/// The sentences that answer best, best first; of equals the earlier one.
#[must_use]
pub fn rank(question: &str, passages: &[Passage<'_>], weights: &Weights, sentences_max: usize) -> Vec<Ranked> {
    let mut ranked = all(question, passages);
    let is_wide = is_wide_text(question);
    for one in &mut ranked {
        one.score = weights.score(&one.features, is_wide);
        one.probability = weights.probability(one.score, is_wide);
    }
    ranked.sort_by(|left, right| right.score.total_cmp(&left.score));
    ranked.truncate(sentences_max);
    ranked
}

/// All sentences that share something with the question, with their features and no score yet.
#[must_use]
pub fn all(question: &str, passages: &[Passage<'_>]) -> Vec<Ranked> {
    let pool = Pool::of(question, passages);
    let rows = features::rows(&pool);
    let kept = pool.sentences.into_iter().zip(rows).filter(|(_, row)| features::has_common(row));
    kept.map(|(one, features)| Ranked {
        passage: one.passage,
        span: one.candidate.span,
        lead_in: one.candidate.lead_in,
        score: 0.0,
        probability: 0.0,
        features,
    })
    .collect()
}

/// Whether a text is of a script without spaces, by a third of its letters.
fn is_wide_text(text: &str) -> bool {
    let letters = text.chars().filter(|c| c.is_alphanumeric()).count();
    text.chars().filter(|c| is_wide(*c)).count() * 3 > letters
}

/// The parts of a score by name: weight times value, the largest first.
#[must_use]
pub fn parts(question: &str, row: &Row, weights: &Weights) -> Vec<(&'static str, f64)> {
    let is_wide = is_wide_text(question);
    let mut found: Vec<(&'static str, f64)> = Vec::new();
    for (at, name) in NAMES.iter().enumerate() {
        let mut one = [0.0; NAMES.len()];
        one[at] = row[at];
        found.push((name, weights.score(&one, is_wide)));
    }
    found.retain(|(_, part)| part.abs() >= 0.005);
    found.sort_by(|left, right| right.1.abs().total_cmp(&left.1.abs()));
    found
}

/// A sentence of the pool.
struct One {
    passage: usize,
    document: usize,
    /// Number of the headings above it.
    headings: usize,
    candidate: Candidate,
    text: String,
    terms: Terms,
    /// Whether it is the first candidate of its passage.
    is_first: bool,
}

/// Everything that features are made from.
struct Pool {
    question: String,
    sentences: Vec<One>,
    passages: HashMap<usize, Terms>,
    headings: Vec<Terms>,
    documents: HashMap<usize, Terms>,
    by_sentence: [Statistics; 3],
    by_passage: [Statistics; 3],
    by_document: [Statistics; 3],
}

impl Pool {
    fn of(question: &str, passages: &[Passage<'_>]) -> Self {
        let mut words = Question::of(question, &sample(question, passages));
        let (mut sentences, mut of_passages, mut headings) = (Vec::new(), HashMap::new(), Vec::new());
        let mut documents: HashMap<usize, Terms> = HashMap::new();
        for at in closest(question, passages) {
            let passage = &passages[at];
            let names: Vec<&str> = passage.headings.all().map(innermost).collect();
            let mut path = None;
            let (mut whole, mut measured_to) = (words.measure(""), 0);
            for (n, candidate) in candidates(passage.text, &names).into_iter().enumerate() {
                let Sentence { start, end } = candidate.span;
                let text = passage.text[start..end].to_owned();
                let (terms, is_first) = (words.measure(&text), n == 0);
                whole.extend(&terms);
                whole.extend(&words.measure(&passage.text[measured_to..start]));
                measured_to = end;
                let above = passage.headings.at(start);
                if path.replace(above) != Some(above) {
                    headings.push(words.measure(&format!("{} {above}", passage.title)));
                }
                let (document, headings) = (passage.document, headings.len() - 1);
                sentences.push(One { passage: at, document, headings, candidate, text, terms, is_first });
            }
            whole.extend(&words.measure(&passage.text[measured_to..]));
            documents.entry(passage.document).or_insert_with(|| words.measure(passage.title)).extend(&whole);
            of_passages.insert(at, whole);
        }
        let by = |texts: Vec<&Terms>| FORMS.map(|form| Statistics::over(form, &texts));
        let by_sentence = by(sentences.iter().map(|one| &one.terms).collect());
        let (by_passage, by_document) = (by(of_passages.values().collect()), by(documents.values().collect()));
        let (question, passages) = (question.to_owned(), of_passages);
        Self { question, sentences, passages, headings, documents, by_sentence, by_passage, by_document }
    }
}

/// The passages to look at, in their order.
fn closest(question: &str, passages: &[Passage<'_>]) -> Vec<usize> {
    if passages.len() <= PASSAGES_MAX {
        return (0..passages.len()).collect();
    }
    let close = Closeness::over(passages.iter().map(|passage| passage.text));
    let headings: Vec<String> = passages.iter().map(|one| one.headings.all().collect::<Vec<_>>().join(" ")).collect();
    let by_heading = Closeness::over(headings.iter().map(String::as_str));
    let mut found: Vec<usize> = close.closest(question, PASSAGES_MAX).into_iter().map(|(at, _)| at).collect();
    let is_found: HashSet<usize> = found.iter().copied().collect();
    let headings = by_heading.closest(question, passages.len()).into_iter().map(|(at, _)| at);
    found.extend(headings.filter(|at| !is_found.contains(at)).take(BY_HEADING_MAX));
    found.sort_unstable();
    found
}

/// Enough of the passages to detect their language.
fn sample(question: &str, passages: &[Passage<'_>]) -> String {
    let mut text = question.to_owned();
    for passage in passages.iter().take(20) {
        text.push(' ');
        text.extend(passage.text.chars().take(SAMPLE_CHARS));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_passage_that_matches_only_by_its_heading_is_looked_at() {
        let texts: Vec<String> = (0..800).map(|n| format!("The lighthouse number {n} is described here.")).collect();
        let (coast, keeper) = (Headings::from("Coast"), Headings::from("Coast › Lighthouse keeper"));
        let mut passages: Vec<Passage<'_>> =
            texts.iter().map(|text| Passage { document: 0, title: "", headings: &coast, text }).collect();
        passages[700].headings = &keeper;
        passages[700].text = "Anna Smith had the post for forty years.";
        let found = closest("Who was the lighthouse keeper?", &passages);
        assert!(found.contains(&700) && found.len() <= PASSAGES_MAX + BY_HEADING_MAX, "{}", found.len());
    }
}
