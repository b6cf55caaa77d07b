//! Phrases that sites say about themselves.

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind};

use crate::numbers::count;

/// How many of the stock phrases are in a text.
pub fn stock_phrases(text: &str) -> f32 {
    let seen = STOCK.as_ref().map_or(0_u64, |stock| {
        stock.find_overlapping_iter(text).fold(0, |seen, found| seen | 1 << found.pattern().as_u32())
    });
    count(seen.count_ones() as usize)
}

/// A set of words that cannot be searched is a defect of the build; `tests::the_stock_phrases_are_found` fails then.
static STOCK: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
    AhoCorasick::builder().ascii_case_insensitive(true).kind(Some(AhoCorasickKind::DFA)).build(STOCK_PHRASES).ok()
});

/// Things sites say about themselves rather than about their subject.
const STOCK_PHRASES: [&str; 34] = [
    "all rights reserved",
    "©",
    "copyright",
    "privacy policy",
    "terms of",
    "cookie",
    "subscribe",
    "newsletter",
    "sign up",
    "sign in",
    "log in",
    "share this",
    "share on",
    "follow us",
    "read more",
    "learn more",
    "click here",
    "view all",
    "see all",
    "show more",
    "load more",
    "add to cart",
    "advertisement",
    "sponsored",
    "leave a comment",
    "related",
    "you may also",
    "recommended",
    "minutes read",
    "min read",
    "skip to",
    "back to top",
    "contact us",
    "getty images",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stock_phrases_are_found() {
        for (text, phrases) in [
            ("© 2026, All rights reserved. ALL RIGHTS RESERVED", 2.0),
            ("Sign in or sign up for our Newsletter", 3.0),
            ("Nothing of that kind", 0.0),
        ] {
            assert!((stock_phrases(text) - phrases).abs() < 1e-6, "{text}");
        }
        assert!(STOCK_PHRASES.len() <= 64);
    }
}
