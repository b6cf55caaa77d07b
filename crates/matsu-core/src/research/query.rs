//! When two queries are the same: after Unicode compatibility folding, case folding and space collapsing.

use unicode_normalization::UnicodeNormalization;

/// The form that queries are compared in. Upper case first, then lower, so that `ß` meets `SS` and every sigma its
/// sisters.
#[must_use]
pub fn fold(query: &str) -> String {
    let cased: String = query.nfkc().flat_map(char::to_uppercase).flat_map(char::to_lowercase).nfkc().collect();
    cased.split_whitespace().collect::<Vec<_>>().join(" ")
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
