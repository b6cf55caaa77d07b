//! Names of a text, as far as the way they are written shows them.

use std::collections::BTreeSet;

use super::super::query::fold;
use super::super::ranking::language::is_common;
use super::super::sentences::sentences;
use super::language;
use super::units::{month, unit};

/// After one of these the first word of a sentence is a name, if it is written with a capital.
const AFTER_A_NAME: &[&str] =
    &["is", "was", "has", "had", "became", "began", "won", "wrote", "founded", "died", "lives"];
/// Letters of katakana that make a name or a foreign word.
const KATAKANA_MIN: usize = 3;

/// Words that are written with a capital though no sentence begins with them, and long words of katakana. German writes
/// every noun so, which says nothing here; `swapped.rs` looks at those.
#[must_use]
pub fn names(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let is_german = matches!(language::of(text), rust_stemmers::Algorithm::German);
    for span in sentences(text) {
        let sentence = &text[span.start..span.end];
        let words: Vec<&str> = sentence.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
        for (at, word) in words.iter().enumerate() {
            let letters = word.chars().count();
            let is_capital = word.chars().next().is_some_and(char::is_uppercase) && letters > 1 && !is_german;
            let next = words.get(at + 1);
            let is_name_at_start = next.is_some_and(|next| AFTER_A_NAME.contains(next)) && letters > 2;
            let folded = fold(word);
            let is_listed = is_common(&folded) || month(&folded).is_some();
            if is_capital && (at > 0 || is_name_at_start) && !is_listed && !is_sign(&folded) {
                found.insert(folded);
            }
        }
    }
    let mut run = String::new();
    for c in text.chars().chain([' ']) {
        if matches!(u32::from(c), 0x30A1..=0x30FA | 0x30FC) {
            run.push(c);
            continue;
        }
        let word = std::mem::take(&mut run);
        if word.chars().count() >= KATAKANA_MIN && unit(&word).is_none() {
            found.insert(word);
        }
    }
    found
}

/// Units and currencies in capitals are compared with their numbers.
fn is_sign(folded: &str) -> bool {
    unit(folded).is_some()
}
