//! The headings of a passage: those above its beginning, and those that begin inside it. A short section does not fill a
//! passage, so one passage may have the text of several.

use serde::{Serialize, Serializer};

use super::passages::HEADING_DIVIDER;
use super::sentences::is_wide;

/// What divides the headings of a passage from each other where they are stored.
const STORED_DIVIDER: char = '\n';

/// Each is a path: the outermost heading first, joined by ` › `.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Headings {
    above: String,
    /// Byte offset in the passage's text, and the path from there on. In the order of the text.
    inside: Vec<(usize, String)>,
}

impl Headings {
    #[must_use]
    pub fn new(above: String, inside: Vec<(usize, String)>) -> Self {
        Self { above, inside }
    }

    /// The path above the beginning of the passage.
    #[must_use]
    pub fn above(&self) -> &str {
        &self.above
    }

    /// The path above a byte of the passage's text.
    #[must_use]
    pub fn at(&self, at: usize) -> &str {
        self.inside.iter().rev().find(|(start, _)| *start <= at).map_or(&self.above, |(_, path)| path)
    }

    /// The path above a quote. `context` begins with the path under which it was found: the same words may stand under
    /// several headings of one passage.
    #[must_use]
    pub fn of_quote(&self, text: &str, quote: &str, context: &str) -> &str {
        if self.inside.is_empty() {
            return &self.above;
        }
        let mut paths = text.match_indices(quote).map(|(at, _)| self.at(at));
        let first = paths.next().unwrap_or(&self.above);
        let is_meant = |path: &&str| path_of(context, path);
        std::iter::once(first).chain(paths).find(is_meant).unwrap_or(first)
    }

    /// Every path once, that of the beginning first.
    pub fn all(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.above.as_str()).chain(self.inside.iter().map(|(_, path)| path.as_str()))
    }

    /// As it is stored: the first line is the path above the beginning, each other line an offset and a path.
    #[must_use]
    pub fn to_stored(&self) -> String {
        let mut stored = one_line(&self.above);
        for (at, path) in &self.inside {
            stored.push(STORED_DIVIDER);
            stored.push_str(&format!("{at} {}", one_line(path)));
        }
        stored
    }

    #[must_use]
    pub fn from_stored(stored: &str) -> Self {
        let mut lines = stored.split(STORED_DIVIDER);
        let above = lines.next().unwrap_or_default().to_owned();
        let inside = lines.filter_map(|line| {
            let (at, path) = line.split_once(' ')?;
            Some((at.parse().ok()?, path.to_owned()))
        });
        Self { above, inside: inside.collect() }
    }
}

impl From<&str> for Headings {
    fn from(above: &str) -> Self {
        Self { above: above.to_owned(), inside: Vec::new() }
    }
}

impl Serialize for Headings {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.above)
    }
}

/// A sentence of fewer words says nothing without its heading: `Default: 1 MiB.`
const WORDS_ALONE_MIN: usize = 8;

/// Whether a sentence is too short to be understood without its heading.
#[must_use]
pub fn needs_heading(sentence: &str) -> bool {
    sentence.split_whitespace().nth(WORDS_ALONE_MIN - 1).is_none() && !sentence.chars().any(is_wide)
}

/// What a claim is about beyond its own words: nothing, or for a short one what its context ends with. Two claims with
/// the same words and other subjects are not the same.
#[must_use]
pub fn subject<'a>(claim: &str, context: &'a str) -> &'a str {
    if needs_heading(claim) { innermost(context) } else { "" }
}

/// The innermost heading of a path.
#[must_use]
pub fn innermost(path: &str) -> &str {
    path.rsplit(HEADING_DIVIDER).next().unwrap_or_default().trim()
}

/// Whether a context is this path, or goes on behind it.
fn path_of(context: &str, path: &str) -> bool {
    context.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with(HEADING_DIVIDER))
}

fn one_line(path: &str) -> String {
    path.replace(['\n', '\r'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "Age\nDefault: 0.\nPath\nDefault: 0.\nThe path of it.";

    fn headings() -> Headings {
        Headings::new("Settings › Age".to_owned(), vec![(TEXT.find("Path").unwrap(), "Settings › Path".to_owned())])
    }

    #[test]
    fn each_place_has_the_headings_above_it() {
        let headings = headings();
        for (quote, context, path) in [
            ("The path of it.", "", "Settings › Path"),
            ("Default: 0.", "", "Settings › Age"),
            ("Default: 0.", "Settings › Age", "Settings › Age"),
            ("Default: 0.", "Settings › Path › By default:", "Settings › Path"),
            ("Default: 0.", "Settings › Pathology", "Settings › Age"),
            ("not there", "", "Settings › Age"),
        ] {
            assert_eq!(headings.of_quote(TEXT, quote, context), path, "{quote} {context}");
        }
        assert_eq!(innermost(headings.at(TEXT.len())), "Path");
    }

    #[test]
    fn a_short_claim_is_about_its_heading() {
        assert_eq!(subject("Default: 0.", "Settings › Age"), "Age");
        assert_eq!(subject("The age of the cookie in seconds is 0 by default.", "Settings › Age"), "");
        assert_eq!(subject("既定値は零である。", "設定 › 年齢"), "");
    }

    #[test]
    fn they_are_read_as_they_were_stored() {
        for one in [headings(), Headings::from("Guide › 3 steps"), Headings::default()] {
            assert_eq!(Headings::from_stored(&one.to_stored()), one);
        }
        let broken = Headings::new("a\nb".to_owned(), vec![(7, "a\n9 c".to_owned())]);
        assert_eq!(
            Headings::from_stored(&broken.to_stored()),
            Headings::new("a b".to_owned(), vec![(7, "a 9 c".to_owned())])
        );
    }
}
