//! Features of the sentences that could answer a question, made by the ranker's own code, for the script that trains it.

use std::fs;
use std::io::Write;

use anyhow::{Context, Result};
use matsu_core::research::document::Document;
use matsu_core::research::passages::{Passage as Piece, passages};
use matsu_core::research::ranking::bm25::Statistics;
use matsu_core::research::ranking::words::{Form, Question, Terms};
use matsu_core::research::ranking::{Passage, all};
use serde_json::{Value, json};

/// Documents that a question's sentences are taken from: as many as a search reads.
const DOCUMENTS: usize = 15;
/// Sentences kept for a question, those with most words in common with it.
const SENTENCES: usize = 80;

/// One line of `out` for each line of `questions`: the question's id, and its sentences with their features.
pub fn rows(folder: &str, questions: &str, out: &str) -> Result<()> {
    let mut files: Vec<_> = fs::read_dir(folder)?.collect::<Result<Vec<_>, _>>()?.iter().map(|e| e.path()).collect();
    files.sort();
    let mut documents: Vec<(Document, Vec<Piece>)> = Vec::new();
    for file in files {
        let document = matsu_reader::read(&fs::read(&file)?, "text/markdown")
            .with_context(|| format!("{} cannot be read", file.display()))?;
        let pieces = passages(&document);
        documents.push((document, pieces));
    }
    let sample: String = documents.iter().take(5).map(|(d, _)| d.text.chars().take(500).collect::<String>()).collect();
    let mut out = std::io::BufWriter::new(fs::File::create(out)?);
    for line in fs::read_to_string(questions)?.lines() {
        let asked: Value = serde_json::from_str(line)?;
        let question = asked["question"].as_str().context("a question without text")?;
        let candidates = sentences(question, &sample, &documents);
        writeln!(out, "{}", json!({"id": asked["id"], "candidates": candidates}))?;
    }
    Ok(())
}

fn sentences(question: &str, sample: &str, documents: &[(Document, Vec<Piece>)]) -> Vec<Value> {
    let mut words = Question::of(question, sample);
    let terms: Vec<Terms> = documents.iter().map(|(document, _)| words.measure(&document.text)).collect();
    let texts: Vec<&Terms> = terms.iter().collect();
    let exact = Statistics::over(Form::Exact, &texts);
    let mut ranked: Vec<(f64, usize)> = terms.iter().enumerate().map(|(at, terms)| (exact.score(terms), at)).collect();
    ranked.sort_by(|left, right| right.0.total_cmp(&left.0));
    let mut pool = Vec::new();
    for (_, at) in ranked.into_iter().take(DOCUMENTS) {
        let (document, pieces) = &documents[at];
        pool.extend(pieces.iter().map(|piece| Passage {
            document: at,
            title: &document.title,
            heading: &piece.heading,
            text: &piece.text,
        }));
    }
    let mut found = all(question, &pool);
    let common = |row: &[f64]| row[0] + row[1] + row[2] + 0.5 * row[8];
    found.sort_by(|left, right| common(&right.features).total_cmp(&common(&left.features)));
    found.truncate(SENTENCES);
    found
        .iter()
        .map(|one| json!([&pool[one.passage].text[one.span.start..one.span.end], one.features.to_vec()]))
        .collect()
}
