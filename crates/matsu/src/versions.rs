//! The order of versions: which daemon gives way to which, and whether a release is newer than this program.

use std::cmp::Ordering;

/// A number sorts before a word.
type VersionPart<'a> = (bool, u64, &'a str);

/// By number, and by letter what is no number. What comes before a release (1.2.0-rc.1) is older than it. A text that
/// names no version is older than every version.
pub fn compare(one: &str, other: &str) -> Ordering {
    key(one).cmp(&key(other))
}

pub fn is_newer(version: &str, than: &str) -> bool {
    compare(version, than) == Ordering::Greater
}

fn key(version: &str) -> (bool, Vec<VersionPart<'_>>, bool, Vec<VersionPart<'_>>) {
    // What follows + is about the build.
    let version = version.split('+').next().unwrap_or(version);
    let (release, before) = version.split_once('-').unwrap_or((version, ""));
    (version.starts_with(|c: char| c.is_ascii_digit()), parts(release), before.is_empty(), parts(before))
}

fn parts(text: &str) -> Vec<VersionPart<'_>> {
    text.split('.').map(|part| part.parse().map_or((true, 0, part), |number| (false, number, ""))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_their_numbers() {
        let rising = ["", "0.1.0", "0.1.9", "0.2.0-rc.2", "0.2.0-rc.10", "0.2.0", "0.9.0", "0.10.0", "1.0.0", "9.9"];
        for (at, one) in rising.iter().enumerate() {
            for (other_at, other) in rising.iter().enumerate() {
                assert_eq!(compare(one, other), at.cmp(&other_at), "{one} {other}");
                assert_eq!(is_newer(one, other), at > other_at, "{one} {other}");
            }
        }
        assert_eq!(compare("1.0.0+a", "1.0.0+b"), Ordering::Equal);
    }
}
