//! When two queries are the same: after Unicode compatibility folding, case folding and space collapsing.

use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfkc_quick};

/// The form that queries are compared in. Upper case first, then lower, so that `ß` meets `SS` and every sigma its
/// sisters.
#[must_use]
pub fn fold(query: &str) -> String {
    let mut folded = String::with_capacity(query.len());
    for word in query.split_whitespace() {
        if word.is_ascii() {
            push(&mut folded, &word.to_ascii_lowercase());
        } else {
            // A letter's compatible form may have a space in it.
            fold_word(word).split_whitespace().for_each(|part| push(&mut folded, part));
        }
    }
    folded
}

fn push(folded: &mut String, word: &str) {
    if !folded.is_empty() {
        folded.push(' ');
    }
    folded.push_str(word);
}

/// Most words have their compatible form already; to see that is much cheaper than to make it.
fn fold_word(word: &str) -> String {
    let case = |c: char| c.to_uppercase().flat_map(char::to_lowercase);
    if is_nfkc_quick(word.chars()) != IsNormalized::Yes {
        return word.nfkc().flat_map(case).nfkc().collect();
    }
    let cased: String = word.chars().flat_map(case).collect();
    if is_nfkc_quick(cased.chars()) == IsNormalized::Yes { cased } else { cased.nfkc().collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_queries_fold_to_the_same_text() {
        for (left, right) in [
            ("long polling tokens", "LONG polling  tokens"),
            ("  padded ", "padded"),
            ("ＡＢＣ　１２３", "abc 123"),
            ("ﾛﾝｸﾞﾎﾟｰﾘﾝｸﾞ", "ロングポーリング"),
            ("Straße", "STRASSE"),
            ("ΟΔΟΣ", "οδος"),
            ("cafe\u{301}", "café"),
            ("한국어", "한국어"),
            ("tab\tand\nline", "tab and line"),
        ] {
            assert_eq!(fold(left), fold(right), "{left} and {right}");
        }
        assert_ne!(fold("か"), fold("が"));
        assert_ne!(fold("a b"), fold("ab"));
    }
}
