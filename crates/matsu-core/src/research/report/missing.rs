//! What a report did not find: words of the question that stand in no finding, searches without a claim, and an answer
//! that no sentence gives.

use std::collections::HashSet;

use super::super::closeness::terms;
use super::super::query::fold;
use super::super::ranking::asked::{is_question_word, numbers};
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

/// Words of the question, as it spells them, whose stem is in no finding. Of scripts without spaces only Japanese shows
/// words, in runs of one kind of letter; nothing is said about the others.
fn missing_words(question: &str, findings: &[Finding]) -> Vec<String> {
    if question.chars().any(is_wide) {
        let is_said = |word: &&str| !findings.iter().any(|one| one.text.contains(*word) || one.context.contains(*word));
        return japanese_words(question).into_iter().filter(is_said).map(str::to_owned).collect();
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

/// Runs of katakana or of Chinese characters in a Japanese question, each once: `ゾウガメ` and `寿命` in
/// `ゾウガメの寿命は何年か`. Without hiragana it may be Chinese, whose words do not show.
fn japanese_words(question: &str) -> Vec<&str> {
    let kind = |c: char| match u32::from(c) {
        0x30A1..=0x30FA | 0x30FC => 1,
        0x3005 | 0x3400..=0x4DBF | 0x4E00..=0x9FFF => 2,
        _ => 0,
    };
    let mut words: Vec<&str> = Vec::new();
    if !question.chars().any(|c| matches!(u32::from(c), 0x3041..=0x3096)) {
        return words;
    }
    let mut start = 0;
    let ends = question.char_indices().map(|(at, c)| (at, kind(c))).chain([(question.len(), 0)]);
    let mut before = 0;
    for (at, now) in ends {
        if now != before {
            let word = &question[start..at];
            let is_asking = word.contains(['何', '誰']);
            if before != 0 && word.chars().nth(1).is_some() && !is_asking && !words.contains(&word) {
                words.push(word);
            }
            (start, before) = (at, now);
        }
    }
    words
}

/// Whether a finding speaks of what a question is about.
pub struct Mentions {
    stems: Stems,
    /// Stems of the question's telling words. None, for a script without spaces.
    wanted: HashSet<String>,
    /// Words of a Japanese question, as pairs of letters.
    wanted_pairs: Vec<Vec<String>>,
    /// Whether a number of the question is in no finding: then all of them are about something else.
    is_number_missing: bool,
}

/// Digits of a number that is rarely written as a word.
const DIGITS_MIN: usize = 3;

/// Whether the question has a number of three digits or more that is in no finding, heading or title.
fn is_number_missing(question: &str, findings: &[Finding]) -> bool {
    let wanted: Vec<&str> = numbers(question).filter(|number| number.len() >= DIGITS_MIN).collect();
    if wanted.is_empty() {
        return false;
    }
    let mut said = HashSet::new();
    for finding in findings {
        let places = finding.origins.iter().flat_map(|place| [place.document.title.as_str(), place.heading.as_str()]);
        for text in [finding.text.as_str(), finding.context.as_str()].into_iter().chain(places) {
            said.extend(numbers(text).map(str::to_owned));
            // `12,500` is 12500.
            said.extend(numbers(&text.replace([',', '.', '\'', '\u{a0}', '\u{202f}'], "")).map(str::to_owned));
        }
    }
    wanted.into_iter().any(|number| !said.contains(number))
}

impl Mentions {
    pub fn of(question: &str, findings: &[Finding]) -> Self {
        let sample: String = findings.iter().take(SAMPLE).map(|finding| format!("{} ", finding.text)).collect();
        let stems = Stems::of_shown(&format!("{question} {sample}"));
        let is_wide_question = question.chars().any(is_wide);
        let words = if is_wide_question { Vec::new() } else { key_words(question) };
        let wanted = words.into_iter().map(|word| stems.stem(&fold(word))).collect();
        let wanted_pairs = japanese_words(question).into_iter().map(terms).collect();
        Self { stems, wanted, wanted_pairs, is_number_missing: is_number_missing(question, findings) }
    }

    /// Whether a sentence, its headings or the title of its document have two of five words of the question. Within a
    /// longer word counts too: a compound. In Japanese one of four words is enough, and half of a word's pairs.
    pub fn are_enough(&self, finding: &Finding) -> bool {
        if self.is_number_missing {
            return false;
        }
        let titles = finding.origins.iter().map(|place| format!("{} {} ", place.document.title, place.heading));
        let said = format!("{} {} {}", finding.text, finding.context, titles.collect::<String>());
        let said: HashSet<String> = terms(&said).iter().map(|word| self.stems.stem(word)).collect();
        let has_half =
            |pairs: &&Vec<String>| pairs.iter().filter(|pair| said.contains(*pair)).count() * 2 >= pairs.len();
        if self.wanted_pairs.iter().filter(has_half).count() < self.wanted_pairs.len().div_ceil(4) {
            return false;
        }
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
    fn a_finding_about_something_else_is_no_answer() {
        for (question, text, is_enough) in [
            ("ゾウガメの寿命は何年ですか", "ゾウガメは長生きする。", true),
            ("ゾウガメの食べ物は何ですか", "コンゴの平均寿命は54歳である。", false),
            ("東京都庁舎の高さは", "都庁舎は243メートルある。", true),
            ("What was repaired in 1234?", "The tower was repaired in 1874.", false),
            ("What was repaired in 1874?", "The tower was repaired in 1874.", true),
            ("What costs 12500 euros to be repaired?", "The tower was repaired for 12,500 euros.", true),
        ] {
            let findings = [Finding { text: text.to_owned(), ..Finding::default() }];
            assert_eq!(Mentions::of(question, &findings).are_enough(&findings[0]), is_enough, "{question}");
        }
    }

    #[test]
    fn words_that_no_finding_has_are_named() {
        let finding = |text: &str| Finding { text: text.to_owned(), context: "Bears".to_owned(), ..Finding::default() };
        for (question, missing) in [
            ("How long do bears sleep in Finland?", vec!["Finland"]),
            ("What do bears eat?", vec!["eat"]),
            ("Why does a bear sleep?", vec![]),
            ("クマは何を食べますか", vec!["クマ"]),
            ("熊吃什么", vec![]),
        ] {
            assert_eq!(missing_words(question, &[finding("A bear sleeps for a long time.")]), missing, "{question}");
        }
    }
}
