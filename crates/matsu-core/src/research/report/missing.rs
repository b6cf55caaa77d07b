//! What a report did not find: words of the question that stand in no finding, searches without a claim, and an answer
//! that no sentence gives.

use std::collections::HashSet;

use super::super::closeness::terms;
use super::super::query::fold;
use super::super::ranking::asked::is_question_word;
use super::super::ranking::language::{Stems, is_common};
use super::super::sentences::is_wide;
use super::{Finding, Material, one_line};

/// Letters of a word that is worth naming.
const LETTERS_MIN: usize = 3;
/// Letters of a word that counts within another.
const COMPOUND_PART_MIN: usize = 4;
/// Findings by which the language is detected.
const SAMPLE: usize = 20;

pub fn not_found(material: &Material, has_no_answer: bool) -> Vec<String> {
    let mut notes = Vec::new();
    let is_searched = !material.searches.is_empty();
    if has_no_answer && is_searched {
        notes.push(if material.findings.is_empty() {
            "No sentence about the question was found.".to_owned()
        } else {
            "No sentence that was read clearly answers the question; the closest ones are listed.".to_owned()
        });
    }
    let words = missing_words(&material.question, &material.findings);
    if !words.is_empty() && !material.findings.is_empty() {
        notes.push(format!("No claim that was found mentions: {}.", words.join(", ")));
    }
    for search in &material.searches {
        let is_over = !matches!(search.status.as_str(), "queued" | "running" | "awaiting_auth");
        if is_over && search.claims == 0 {
            let why = search.error.as_deref().map(|why| format!(" ({})", one_line(why))).unwrap_or_default();
            notes.push(format!("The search “{}” found no claim{why}.", one_line(&search.query)));
        }
    }
    notes
}

/// Words of the question, as it spells them, whose stem is in no finding. A script without spaces shows no words, so
/// nothing is said about it.
fn missing_words(question: &str, findings: &[Finding]) -> Vec<String> {
    if question.chars().any(is_wide) {
        return Vec::new();
    }
    let said: String = findings.iter().map(|finding| format!("{} {} ", finding.text, finding.context)).collect();
    let stems = Stems::of_shown(&format!("{question} {said}"));
    let found: HashSet<String> = terms(&said).iter().map(|word| stems.stem(word)).collect();
    let is_missing = |word: &&str| !found.contains(&stems.stem(&fold(word)));
    key_words(question).into_iter().filter(is_missing).map(str::to_owned).collect()
}

/// The words of a question that say what it is about, each once.
fn key_words(question: &str) -> Vec<&str> {
    let words = question.split(|c: char| !c.is_alphanumeric()).filter(|word| word.chars().count() >= LETTERS_MIN);
    let mut telling: Vec<&str> = Vec::new();
    for word in words {
        let folded = fold(word);
        if !is_common(&folded) && !is_question_word(&folded) && !telling.contains(&word) {
            telling.push(word);
        }
    }
    telling
}

/// Whether a finding speaks of what a question is about.
pub struct Mentions {
    stems: Stems,
    /// Stems of the question's telling words. None, for a script without spaces.
    wanted: HashSet<String>,
}

impl Mentions {
    pub fn of(question: &str, findings: &[Finding]) -> Self {
        let sample: String = findings.iter().take(SAMPLE).map(|finding| format!("{} ", finding.text)).collect();
        let stems = Stems::of_shown(&format!("{question} {sample}"));
        let is_wide_question = question.chars().any(is_wide);
        let words = if is_wide_question { Vec::new() } else { key_words(question) };
        let wanted = words.into_iter().map(|word| stems.stem(&fold(word))).collect();
        Self { stems, wanted }
    }

    /// Whether a sentence, its headings or the title of its document have two of five words of the question. Within a
    /// longer word counts too: a compound.
    pub fn are_enough(&self, finding: &Finding) -> bool {
        let titles = finding.origins.iter().map(|place| format!("{} {} ", place.document.title, place.heading));
        let said = format!("{} {} {}", finding.text, finding.context, titles.collect::<String>());
        let said: HashSet<String> = terms(&said).iter().map(|word| self.stems.stem(word)).collect();
        let is_within =
            |word: &str| word.chars().count() >= COMPOUND_PART_MIN && said.iter().any(|one| one.contains(word));
        let found = self.wanted.iter().filter(|word| said.contains(*word) || is_within(word)).count();
        found >= (self.wanted.len() * 2).div_ceil(5)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_no_finding_has_are_named() {
        let finding = |text: &str| Finding { text: text.to_owned(), context: "Bears".to_owned(), ..Finding::default() };
        for (question, missing) in [
            ("How long do bears sleep in Finland?", vec!["Finland"]),
            ("What do bears eat?", vec!["eat"]),
            ("Why does a bear sleep?", vec![]),
            ("クマは何を食べますか", vec![]),
        ] {
            assert_eq!(missing_words(question, &[finding("A bear sleeps for a long time.")]), missing, "{question}");
        }
    }
}
