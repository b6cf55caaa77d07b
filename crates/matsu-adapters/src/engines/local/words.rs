//! How text becomes what the full-text index stores, and a question what it looks up.
//!
//! Words are stored as their stems, so that `bear` finds `bears`. Scripts without spaces, and Korean with its endings,
//! are cut into every pair of neighbouring letters, so a word of two letters is one entry wherever it stands. The last
//! letter of a run stands alone too: a question of a single letter is then answered by every entry that begins with it.

use matsu_core::research::query::fold;
use matsu_core::research::ranking::language;
use matsu_core::research::ranking::words::{Run, is_hiragana, runs};

/// Terms of one question that are looked up; what follows adds cost and no meaning.
const TERMS_MAX: usize = 48;

/// The entries of a text, divided by spaces.
#[must_use]
pub fn index_form(text: &str) -> String {
    let mut form = String::with_capacity(text.len() + text.len() / 8);
    let stems = language::Stems::of(text);
    for run in runs(&fold(text)) {
        match run {
            Run::Word(word) => push(&mut form, &stems.stem(&word)),
            Run::Wide(letters) => {
                for pair in letters.windows(2) {
                    push(&mut form, &pair.iter().collect::<String>());
                }
                if let Some(last) = letters.last() {
                    push(&mut form, &last.to_string());
                }
            }
        }
    }
    form
}

fn push(form: &mut String, entry: &str) {
    if !form.is_empty() {
        form.push(' ');
    }
    form.push_str(entry);
}

/// One thing a question asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Term {
    /// The entries to find, one after another; of a word's forms any one.
    pub entries: Vec<String>,
    pub kind: TermKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TermKind {
    /// The stems of a word in several languages: any of them.
    Any,
    /// Neighbouring pairs of letters, all in a row.
    Row,
    /// What begins with the entry.
    Beginning,
}

impl Term {
    /// In the index's own language; entries hold letters and digits only, so nothing can break out of the quotes.
    #[must_use]
    pub fn expression(&self) -> String {
        match self.kind {
            TermKind::Any => self.entries.iter().map(|entry| format!("\"{entry}\"")).collect::<Vec<_>>().join(" OR "),
            TermKind::Row => format!("\"{}\"", self.entries.join(" ")),
            TermKind::Beginning => format!("\"{}\"*", self.entries.join(" ")),
        }
    }
}

/// The terms of a question, each once. A question without spaces is asked for by its pairs of letters, and once more by
/// its words as far as they show: stretches without hiragana.
#[must_use]
pub fn terms(question: &str) -> Vec<Term> {
    let mut found: Vec<Term> = Vec::new();
    for run in runs(&fold(question)) {
        match run {
            Run::Word(word) => found.push(Term { entries: language::stems_in_all(&word), kind: TermKind::Any }),
            Run::Wide(letters) => wide(&letters, &mut found),
        }
    }
    let mut once: Vec<Term> = Vec::new();
    for term in found {
        if !once.contains(&term) && once.len() < TERMS_MAX {
            once.push(term);
        }
    }
    once
}

fn wide(letters: &[char], found: &mut Vec<Term>) {
    let text = |letters: &[char]| letters.iter().collect::<String>();
    if letters.len() == 1 {
        found.push(Term { entries: vec![text(letters)], kind: TermKind::Beginning });
        return;
    }
    let pairs = |letters: &[char]| letters.windows(2).map(text).collect::<Vec<String>>();
    for stretch in letters.split(|c| is_hiragana(*c)).filter(|stretch| stretch.len() > 2) {
        found.push(Term { entries: pairs(stretch), kind: TermKind::Row });
    }
    // Particles and endings stand everywhere; they count only where nothing else is asked for.
    let tells = |pair: &&[char]| !pair.iter().all(|c| is_hiragana(*c));
    let has_telling = letters.windows(2).any(|pair| tells(&pair));
    for pair in letters.windows(2).filter(|pair| !has_telling || tells(pair)) {
        found.push(Term { entries: vec![text(pair)], kind: TermKind::Row });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_into_words_and_pairs() {
        for (text, form) in [
            ("Long-Polling, ２ times", "long poll 2 time"),
            ("待ち行列", "待ち ち行 行列 列"),
            ("서울에서 MCP接続", "서울 울에 에서 서 mcp 接続 続"),
            ("ﾃﾞｰﾀ", "デー ータ タ"),
            ("木", "木"),
            ("", ""),
        ] {
            assert_eq!(index_form(text), form, "{text}");
        }
    }

    #[test]
    fn questions_ask_for_words_pairs_and_beginnings() {
        let expressions = |text: &str| terms(text).iter().map(Term::expression).collect::<Vec<_>>();
        let any = |text: &str| expressions(text).join(" ");
        assert!(any("Long polling long").starts_with("\"long\""), "{}", any("Long polling long"));
        assert!(any("bears").contains("\"bear\"") && any("Häuser").contains("\"haus\""), "{}", any("Häuser"));
        assert_eq!(expressions("行列"), ["\"行列\""]);
        assert_eq!(expressions("待ち行列"), ["\"待ち\"", "\"ち行\"", "\"行列\""]);
        assert_eq!(expressions("ゾウガメの寿命")[0], "\"ゾウ ウガ ガメ\"");
        assert!(expressions("ゾウガメの寿命").contains(&"\"寿命\"".to_owned()));
        assert_eq!(expressions("木"), ["\"木\"*"]);
        assert!(any("a\" OR b* NEAR(").chars().all(|c| c != '*' && c != '('), "{}", any("a\" OR b* NEAR("));
        assert!(expressions("?!\"").is_empty());
    }
}
