//! Where sentences end, in scripts with spaces and without: Latin, Japanese, Korean, Chinese.

/// Marks that end a sentence wherever they stand.
const FULL_STOPS: &[char] = &['。', '！', '？', '｡', '．', '…', '‼', '⁇'];
/// Marks that end one only before a space, a line or the end of the text.
const STOPS: &[char] = &['.', '!', '?'];
/// What may follow a stop and still belongs to its sentence.
const CLOSERS: &[char] = &['"', '\'', ')', ']', '”', '’', '»', '」', '』', '）', '】', '〉', '》'];
/// Words whose full stop ends no sentence.
const ABBREVIATIONS: &[&str] = &[
    "mr", "mrs", "ms", "dr", "prof", "st", "vs", "etc", "e.g", "i.e", "al", "fig", "no", "vol", "pp", "cf", "inc",
    "ltd", "co", "jr", "sr", "approx", "dept", "est", "ca",
];

/// A sentence as a byte range of its text, without surrounding white space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sentence {
    pub start: usize,
    pub end: usize,
}

/// The sentences of a text in order. A line break always ends one. No range is empty.
#[must_use]
pub fn sentences(text: &str) -> Vec<Sentence> {
    let chars: Vec<(usize, char)> = text.char_indices().collect();
    let mut found = Vec::new();
    let mut start = 0;
    let mut at = 0;
    while at < chars.len() {
        let (offset, c) = chars[at];
        if c == '\n' {
            push(text, start, offset, &mut found);
            start = offset + 1;
        } else if ends_here(text, &chars, start, at) {
            // Repeated marks and closing quotes go with the sentence they close.
            while at + 1 < chars.len() && is_tail(chars[at + 1].1) {
                at += 1;
            }
            let end = chars.get(at + 1).map_or(text.len(), |(offset, _)| *offset);
            push(text, start, end, &mut found);
            start = end;
        }
        at += 1;
    }
    push(text, start, text.len(), &mut found);
    found
}

fn is_tail(c: char) -> bool {
    CLOSERS.contains(&c) || STOPS.contains(&c) || FULL_STOPS.contains(&c)
}

fn push(text: &str, start: usize, end: usize, found: &mut Vec<Sentence>) {
    let slice = &text[start..end];
    let trimmed = slice.trim_start();
    let start = start + (slice.len() - trimmed.len());
    let end = start + trimmed.trim_end().len();
    if start < end {
        found.push(Sentence { start, end });
    }
}

fn ends_here(text: &str, chars: &[(usize, char)], start: usize, at: usize) -> bool {
    let (offset, c) = chars[at];
    if FULL_STOPS.contains(&c) {
        return true;
    }
    if !STOPS.contains(&c) {
        return false;
    }
    let mut next = at + 1;
    while next < chars.len() && (CLOSERS.contains(&chars[next].1) || STOPS.contains(&chars[next].1)) {
        next += 1;
    }
    match chars.get(next) {
        None => true,
        // A stop right before a letter of a script without spaces ends a sentence; in `3.5` or `example.com` not.
        Some((_, following)) if !following.is_whitespace() => is_wide(*following),
        Some(_) => c != '.' || !is_abbreviation(&text[start..offset]),
    }
}

fn is_abbreviation(before: &str) -> bool {
    let word = before.rsplit(|c: char| c.is_whitespace() || c == '(').next().unwrap_or_default();
    let lower = word.to_lowercase();
    // An initial, as in "J. Smith".
    let is_initial = word.chars().count() == 1 && word.chars().all(char::is_uppercase);
    is_initial || ABBREVIATIONS.contains(&lower.as_str())
}

/// Letters of scripts that are written without spaces, and Korean syllables.
#[must_use]
pub fn is_wide(c: char) -> bool {
    matches!(u32::from(c),
        0x3040..=0x30FF | 0x31F0..=0x31FF | 0x3400..=0x4DBF | 0x4E00..=0x9FFF | 0xAC00..=0xD7A3 | 0xF900..=0xFAFF
        | 0xFF66..=0xFF9D | 0x20000..=0x2FA1F)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_end_where_readers_end_them() {
        let table: &[(&str, &[&str])] = &[
            ("One. Two! Three?", &["One.", "Two!", "Three?"]),
            (
                "Dr. Smith paid 3.5 euros at example.com. He left.",
                &["Dr. Smith paid 3.5 euros at example.com.", "He left."],
            ),
            ("J. Smith et al. wrote it. Yes.", &["J. Smith et al. wrote it.", "Yes."]),
            ("He said \"stop.\" Then he left.", &["He said \"stop.\"", "Then he left."]),
            (
                "待つことは速い。次の文です！「はい。」と言う",
                &["待つことは速い。", "次の文です！", "「はい。」", "と言う"],
            ),
            ("기다리는 것은 빠르다. 다음 문장이다!", &["기다리는 것은 빠르다.", "다음 문장이다!"]),
            ("等待很快。下一句？对", &["等待很快。", "下一句？", "对"]),
            ("a line\nanother line", &["a line", "another line"]),
            ("  \n \n", &[]),
            ("Really?! Yes...", &["Really?!", "Yes..."]),
        ];
        for (text, expected) in table {
            let got: Vec<&str> = sentences(text).iter().map(|s| &text[s.start..s.end]).collect();
            assert_eq!(&got, expected, "{text}");
        }
    }
}
