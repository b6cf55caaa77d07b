//! Quotes: a claim must show the span of its fragment that says it, or it is dropped.

/// The span of `fragment` that `quote` repeats, as the fragment spells it. White space may differ; nothing else may.
#[must_use]
pub fn find_quote<'a>(fragment: &'a str, quote: &str) -> Option<&'a str> {
    let wanted: Vec<&str> = quote.split_whitespace().collect();
    let first = *wanted.first()?;
    fragment.match_indices(first).find_map(|(start, _)| {
        let mut rest = &fragment[start..];
        for (n, word) in wanted.iter().enumerate() {
            if n > 0 {
                rest = rest.trim_start();
            }
            rest = rest.strip_prefix(*word)?;
        }
        Some(&fragment[start..fragment.len() - rest.len()])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_stands_there_is_a_quote() {
        let fragment = "Long polling\n  cuts token use. 待つのは速い。";
        for (quote, found) in [
            ("Long polling cuts token use.", Some("Long polling\n  cuts token use.")),
            ("待つのは速い。", Some("待つのは速い。")),
            ("cuts token", Some("cuts token")),
            ("long polling cuts", None),
            ("Long polling doubles token use.", None),
            ("", None),
            ("   ", None),
        ] {
            assert_eq!(find_quote(fragment, quote), found, "{quote}");
        }
    }
}
