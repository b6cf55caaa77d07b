//! Where sentences end, in scripts with spaces and without: Latin, Japanese, Korean, Chinese.
//!
//! A line of the text is a block (a paragraph, a list item, a heading): readers join the lines that only the width of
//! a file has broken, so a line break always ends a sentence here.

/// Marks that end a sentence wherever they stand.
const FULL_STOPS: &[char] = &['。', '！', '？', '｡', '‼', '⁇'];
/// Marks that end one only before a space and a beginning, a line break or the end of the text.
const STOPS: &[char] = &['.', '!', '?', '．'];
/// What may follow a stop and still belongs to its sentence.
const CLOSERS: &[char] = &['"', '\'', ')', ']', '”', '’', '“', '»', '」', '』', '）', '】', '〉', '》'];
/// Words whose full stop ends no sentence.
const ABBREVIATIONS: &[&str] = &[
    "mr", "mrs", "ms", "dr", "prof", "st", "vs", "etc", "e.g", "i.e", "al", "fig", "no", "nr", "vol", "pp", "cf",
    "inc", "ltd", "co", "corp", "jr", "sr", "approx", "dept", "est", "ca", "bzw", "z.b", "d.h", "u.a", "o.ä", "chr",
    "gen", "col", "lt", "sgt", "rev", "hon", "jan", "feb", "mar", "apr", "jun", "jul", "aug", "sep", "sept", "oct",
    "nov", "dec", "u.s", "u.k", "d.c", "eq", "sec", "ver", "usw", "evtl", "ggf", "inkl", "max", "min", "mio", "mrd",
];
/// Digits of a number whose full stop makes it an ordinal, as in `3. Oktober`. A year ends a sentence.
const ORDINAL_DIGITS_MAX: usize = 3;

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
            while at + 1 < chars.len() && is_tail(chars[at + 1].1) && !opens_next(c, chars[at + 1].1) {
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

/// A mark that closes a German quotation opens a Chinese one.
fn opens_next(stop: char, mark: char) -> bool {
    mark == '“' && FULL_STOPS.contains(&stop)
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
    // A stop behind a space is part of an omission: "I am here to . . . submit".
    if !STOPS.contains(&c) || text[..offset].ends_with(' ') {
        return false;
    }
    let mut next = at + 1;
    while next < chars.len() && (CLOSERS.contains(&chars[next].1) || STOPS.contains(&chars[next].1)) {
        next += 1;
    }
    match chars.get(next) {
        None | Some((_, '\n')) => true,
        // A stop right before a letter of a script without spaces ends a sentence; in `3.5` or `example.com` not.
        Some((_, following)) if !following.is_whitespace() => {
            is_wide(*following) && !is_abbreviation(&text[start..offset])
        }
        Some(_) => begins_after(chars, next) && (c != '.' || !is_abbreviation(&text[start..offset])),
    }
}

/// Whether a sentence can begin behind this space: a small letter goes on with the one before.
fn begins_after(chars: &[(usize, char)], space: usize) -> bool {
    let mut rest = chars[space..].iter().map(|(_, c)| *c);
    let first = rest.find(|c| *c == '\n' || !(c.is_whitespace() || is_opener(*c)));
    first.is_none_or(|c| !c.is_lowercase())
}

fn is_opener(c: char) -> bool {
    matches!(c, '"' | '\'' | '“' | '‘' | '„' | '«' | '(' | '[' | '「' | '『')
}

fn is_abbreviation(before: &str) -> bool {
    let word = before.rsplit(|c: char| c.is_whitespace() || is_opener(c) || is_wide(c)).next().unwrap_or_default();
    // Initials, as in "J. Smith" and "E.I. du Pont".
    let is_letter = |part: &str| part.chars().count() == 1 && part.chars().all(|c| c.is_alphabetic() && !is_wide(c));
    let is_initial = !word.is_empty() && word.split('.').all(is_letter);
    let is_ordinal = (1..=ORDINAL_DIGITS_MAX).contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_digit());
    is_initial || is_ordinal || ABBREVIATIONS.contains(&word.to_lowercase().as_str())
}

/// Letters of scripts that are written without spaces, and Korean syllables.
#[must_use]
pub fn is_wide(c: char) -> bool {
    matches!(u32::from(c),
        0x3040..=0x30FF | 0x31F0..=0x31FF | 0x3400..=0x4DBF | 0x4E00..=0x9FFF | 0xAC00..=0xD7A3 | 0xF900..=0xFAFF
        | 0xFF66..=0xFF9D | 0x20000..=0x2FA1F)
}

/// Characters between which a broken line leaves no space: letters and marks of Chinese and Japanese, not Korean.
#[must_use]
pub fn joins_without_space(c: char) -> bool {
    let is_hangul = matches!(u32::from(c), 0xAC00..=0xD7A3);
    (is_wide(c) && !is_hangul) || matches!(u32::from(c), 0x3000..=0x303F | 0xFF01..=0xFF65)
}

/// Joins the next line of a paragraph: with a space, or with nothing between two Chinese or Japanese characters.
pub fn push_line(paragraph: &mut String, line: &str) {
    let is_tight = paragraph.chars().next_back().is_some_and(joins_without_space)
        && line.chars().next().is_some_and(joins_without_space);
    if !paragraph.is_empty() && !is_tight {
        paragraph.push(' ');
    }
    paragraph.push_str(line);
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
            ("拉瓦锡的学生E.I.杜邦创办了工厂。", &["拉瓦锡的学生E.I.杜邦创办了工厂。"]),
            ("\"Why?\" he asked. Nothing.", &["\"Why?\" he asked.", "Nothing."]),
            ("Am 3. Oktober 1990. Danach kam z.B. Bonn dran.", &["Am 3. Oktober 1990.", "Danach kam z.B. Bonn dran."]),
            (
                "待つことは速い。次の文です！「はい。」と言う",
                &["待つことは速い。", "次の文です！", "「はい。」", "と言う"],
            ),
            ("기다리는 것은 빠르다. 다음 문장이다!", &["기다리는 것은 빠르다.", "다음 문장이다!"]),
            ("等待很快。下一句？对", &["等待很快。", "下一句？", "对"]),
            ("灯塔由林德设计。“很高。”他说。", &["灯塔由林德设计。", "“很高。”", "他说。"]),
            ("Er sagte „Halt.“ Dann ging er.", &["Er sagte „Halt.“", "Dann ging er."]),
            ("a line\nanother line", &["a line", "another line"]),
            ("  \n \n", &[]),
            ("Really?! Yes...", &["Really?!", "Yes..."]),
        ];
        for (text, expected) in table {
            let got: Vec<&str> = sentences(text).iter().map(|s| &text[s.start..s.end]).collect();
            assert_eq!(&got, expected, "{text}");
        }
    }

    #[test]
    fn broken_lines_are_joined_as_their_script_is_written() {
        for (first, next, joined) in [
            ("one", "two", "one two"),
            ("東京は", "日本の首都", "東京は日本の首都"),
            ("東京は、", "首都", "東京は、首都"),
            ("東京の", "MCP", "東京の MCP"),
            ("서울은", "한국의", "서울은 한국의"),
            ("", "one", "one"),
        ] {
            let mut paragraph = first.to_owned();
            push_line(&mut paragraph, next);
            assert_eq!(paragraph, joined);
        }
    }
}
