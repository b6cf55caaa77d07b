//! How text becomes what the full-text index stores, and a question what it looks up.
//!
//! Scripts without spaces, and Korean with its endings, are cut into every pair of neighbouring letters, so a word of
//! two letters is one entry wherever it stands. The last letter of a run stands alone too: a question of a single
//! letter is then answered by every entry that begins with it.

use matsu_core::research::query::fold;
use matsu_core::research::sentences::is_wide;

/// Terms of one question that are looked up; what follows adds cost and no meaning.
const TERMS_MAX: usize = 24;

/// The entries of a text, divided by spaces.
#[must_use]
pub fn index_form(text: &str) -> String {
    let mut form = String::with_capacity(text.len() + text.len() / 8);
    for run in runs(&fold(text)) {
        match run {
            Run::Word(word) => push(&mut form, &word),
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
    /// The entries to find, one after another.
    pub entries: Vec<String>,
    /// The last entry may go on.
    pub is_prefix: bool,
}

impl Term {
    /// In the index's own language; entries hold letters and digits only, so nothing can break out of the quotes.
    #[must_use]
    pub fn expression(&self) -> String {
        format!("\"{}\"{}", self.entries.join(" "), if self.is_prefix { "*" } else { "" })
    }
}

/// The terms of a question, each once.
#[must_use]
pub fn terms(question: &str) -> Vec<Term> {
    let mut found: Vec<Term> = Vec::new();
    for run in runs(&fold(question)) {
        let term = match run {
            Run::Word(word) => Term { entries: vec![word], is_prefix: false },
            Run::Wide(letters) if letters.len() == 1 => {
                Term { entries: vec![letters.iter().collect()], is_prefix: true }
            }
            Run::Wide(letters) => {
                let entries = letters.windows(2).map(|pair| pair.iter().collect()).collect();
                Term { entries, is_prefix: false }
            }
        };
        if !found.contains(&term) && found.len() < TERMS_MAX {
            found.push(term);
        }
    }
    found
}

enum Run {
    Word(String),
    Wide(Vec<char>),
}

fn runs(folded: &str) -> Vec<Run> {
    let mut found = Vec::new();
    let mut run: Vec<char> = Vec::new();
    let mut was_wide = false;
    for c in folded.chars() {
        let is_letter = c.is_alphanumeric();
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

    #[test]
    fn text_is_cut_into_words_and_pairs() {
        for (text, form) in [
            ("Long-Polling, ２ times", "long polling 2 times"),
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
        assert_eq!(expressions("Long polling long"), ["\"long\"", "\"polling\""]);
        assert_eq!(expressions("行列"), ["\"行列\""]);
        assert_eq!(expressions("待ち行列"), ["\"待ち ち行 行列\""]);
        assert_eq!(expressions("木"), ["\"木\"*"]);
        assert_eq!(expressions("a\" OR b* NEAR("), ["\"a\"", "\"or\"", "\"b\"", "\"near\""]);
        assert!(expressions("?!\"").is_empty());
    }
}
