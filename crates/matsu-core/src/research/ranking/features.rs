//! The features of a sentence, as numbers of about the same size. Their names are those of the weights' file.

use super::asked::{Asked, asked, fit, has_year};
use super::bm25::{Statistics, number};
use super::words::{Form, Terms, new_share};
use super::{One, Pool};

/// In the order of a row.
pub const NAMES: [&str; 30] = [
    "sentence_exact",
    "sentence_stem",
    "sentence_run",
    "covers_exact",
    "covers_stem",
    "covers_run",
    "passage_exact",
    "passage_stem",
    "passage_run",
    "document_stem",
    "document_run",
    "before_stem",
    "after_stem",
    "before_run",
    "after_run",
    "heading_stem",
    "with_context_stem",
    "with_context_run",
    "best_exact",
    "best_stem",
    "best_run",
    "best_passage",
    "in_a_row",
    "rarest",
    "length",
    "is_short",
    "first_in_passage",
    "fits_number",
    "fits_name",
    "says_new",
];

/// One number for each feature.
pub type Row = [f64; NAMES.len()];

/// The features of all sentences of the pool, in their order.
pub(super) fn rows(pool: &Pool) -> Vec<Row> {
    let own: Vec<[f64; 3]> = pool.sentences.iter().map(|one| scores(&pool.by_sentence, &one.terms)).collect();
    let of_passages: std::collections::HashMap<usize, [f64; 3]> =
        pool.passages.iter().map(|(at, terms)| (*at, scores(&pool.by_passage, terms))).collect();
    let of_documents: std::collections::HashMap<usize, [f64; 3]> =
        pool.documents.iter().map(|(at, terms)| (*at, scores(&pool.by_document, terms))).collect();
    let best = best_of(own.iter());
    let best_passage = best_of(of_passages.values());
    let best_document = best_of(of_documents.values());
    let kind = asked(&pool.question);
    let mut rows = Vec::with_capacity(own.len());
    for (at, one) in pool.sentences.iter().enumerate() {
        let passage = of_passages.get(&one.passage).copied().unwrap_or_default();
        let document = of_documents.get(&one.document).copied().unwrap_or_default();
        let near = |other: Option<usize>| {
            let other = other.and_then(|other| Some((pool.sentences.get(other)?, own.get(other)?)));
            other.filter(|(other, _)| other.document == one.document).map_or([0.0; 3], |(_, scores)| *scores)
        };
        let (before, after) = (near(at.checked_sub(1)), near(Some(at + 1)));
        let [exact, stem, run] = own[at];
        let covers = [0, 1, 2].map(|form| pool.by_sentence[form].coverage(&one.terms));
        let context = context(pool, at);
        let heading = covers_by(pool, 1, &pool.headings[one.headings]);
        let chars = number(one.text.chars().count());
        rows.push([
            exact,
            stem,
            run,
            covers[0],
            covers[1],
            covers[2],
            share(passage[0], best_passage[0]),
            share(passage[1], best_passage[1]),
            share(passage[2], best_passage[2]),
            share(document[1], best_document[1]),
            share(document[2], best_document[2]),
            before[1],
            after[1],
            before[2],
            after[2],
            heading,
            covers_by(pool, 1, &context),
            covers_by(pool, 2, &context),
            share(exact, best[0]),
            share(stem, best[1]),
            share(run, best[2]),
            yes(passage[2] >= best_passage[2]),
            in_a_row(&one.terms),
            rarest(&pool.by_sentence[1], &one.terms),
            (chars / 100.0).ln_1p(),
            yes(one.terms.length(Form::Run) < 30.0),
            yes(one.is_first),
            fits_number(kind, &pool.question, one),
            fits_name(kind, &pool.question, one),
            new_share(&one.terms),
        ]);
    }
    rows
}

/// The least share of the question's weight that a sentence or its context must have, by words or by runs of letters.
const COMMON_MIN: f64 = 0.1;

/// Whether the sentence has enough of the question to be an answer at all.
pub(super) fn has_common(row: &Row) -> bool {
    row[3] > 0.0 || row[4] >= COMMON_MIN || row[5] >= COMMON_MIN
}

fn scores(by: &[Statistics; 3], terms: &Terms) -> [f64; 3] {
    [0, 1, 2].map(|form| by[form].score(terms))
}

fn covers_by(pool: &Pool, form: usize, terms: &Terms) -> f64 {
    pool.by_sentence[form].coverage(terms)
}

fn best_of<'a>(all: impl Iterator<Item = &'a [f64; 3]>) -> [f64; 3] {
    all.fold([0.0; 3], |best, one| [best[0].max(one[0]), best[1].max(one[1]), best[2].max(one[2])])
}

fn share(value: f64, best: f64) -> f64 {
    if best > 0.0 { value / best } else { 0.0 }
}

fn yes(is_so: bool) -> f64 {
    f64::from(u8::from(is_so))
}

/// The sentence with the one before it and its headings: what a reader has in mind at it.
fn context(pool: &Pool, at: usize) -> Terms {
    let one = &pool.sentences[at];
    let mut terms = one.terms.clone();
    terms.extend(&pool.headings[one.headings]);
    let before = at.checked_sub(1).and_then(|before| pool.sentences.get(before));
    if let Some(before) = before.filter(|before| before.passage == one.passage) {
        terms.extend(&before.terms);
    }
    terms
}

/// How many of the question's stems stand in the sentence in the order of the question, each next to the other.
fn in_a_row(sentence: &Terms) -> f64 {
    let terms = sentence.counts(Form::Stem).len();
    let follows = |pair: &&[Option<usize>]| matches!(pair, [Some(first), Some(next)] if *next == first + 1);
    number(sentence.stems.windows(2).filter(follows).count()).min(number(terms)) / number(terms.max(1))
}

/// How rare the rarest term is that both have, next to the rarest of the question.
fn rarest(by: &Statistics, sentence: &Terms) -> f64 {
    let most = by.weights.iter().copied().fold(0.0, f64::max);
    let has = by.weights.iter().zip(sentence.counts(Form::Stem)).filter(|(_, count)| **count > 0.0);
    share(has.map(|(weight, _)| *weight).fold(0.0, f64::max), most)
}

fn fits_number(kind: Asked, question: &str, one: &One) -> f64 {
    match kind {
        Asked::Amount => fit(kind, question, &one.text) - 0.5,
        Asked::Time => fit(kind, question, &one.text) * if has_year(&one.text) { 1.0 } else { 0.7 } - 0.5,
        _ => 0.0,
    }
}

fn fits_name(kind: Asked, question: &str, one: &One) -> f64 {
    match kind {
        Asked::Name | Asked::Place | Asked::Reason | Asked::Way => fit(kind, question, &one.text) - 0.5,
        _ => 0.0,
    }
}
