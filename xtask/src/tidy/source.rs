//! Rust source with the parts blanked that are not code, so that a check can search it as text.
//!
//! Every byte keeps its line and column: what is blanked becomes spaces, newlines stay.

/// Which parts to blank.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Blank {
    Comments,
    CommentsAndStrings,
}

/// Blanks comments, and string and character literals too if asked. A literal keeps a quote at either end.
pub fn blank(text: &str, what: Blank) -> String {
    let mut output = Output { text: String::with_capacity(text.len()), what };
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let (length, kind) = next_part(rest, first, ends_in_word(&output.text));
        let (part, after) = rest.split_at(length);
        output.push(part, kind);
        rest = after;
    }
    output.text
}

/// The number of the line that holds byte `offset`, from one.
pub fn line_of(text: &str, offset: usize) -> usize {
    text.as_bytes()[..offset].iter().filter(|byte| **byte == b'\n').count() + 1
}

/// Offsets at which `word` stands on its own, not as a part of a longer name.
pub fn find_word<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    text.match_indices(word).map(|(offset, _)| offset).filter(move |offset| {
        let before = text[..*offset].chars().next_back();
        let after = text[offset + word.len()..].chars().next();
        !before.is_some_and(is_word) && (!word.ends_with(is_word) || !after.is_some_and(is_word))
    })
}

pub fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

#[derive(Clone, Copy)]
enum Kind {
    Code,
    Comment,
    Literal,
}

struct Output {
    text: String,
    what: Blank,
}

impl Output {
    fn push(&mut self, part: &str, kind: Kind) {
        match kind {
            Kind::Code => self.text.push_str(part),
            Kind::Literal if self.what == Blank::Comments => self.text.push_str(part),
            Kind::Comment => self.push_blank(part.as_bytes()),
            Kind::Literal => {
                let inner = part.len().saturating_sub(2);
                self.text.push('"');
                self.push_blank(&part.as_bytes()[1..1 + inner]);
                self.text.push_str(if part.len() > 1 { "\"" } else { "" });
            }
        }
    }

    fn push_blank(&mut self, part: &[u8]) {
        self.text.extend(part.iter().map(|byte| if *byte == b'\n' { '\n' } else { ' ' }));
    }
}

/// The length and kind of what stands at the start of `rest`.
fn next_part(rest: &str, first: char, inside_word: bool) -> (usize, Kind) {
    if rest.starts_with("//") {
        return (rest.find('\n').unwrap_or(rest.len()), Kind::Comment);
    }
    if rest.starts_with("/*") {
        return (block_comment_length(rest), Kind::Comment);
    }
    if first == '"' {
        return (quoted_length(rest, '"').unwrap_or(rest.len()), Kind::Literal);
    }
    if first == 'r'
        && !inside_word
        && let Some(length) = raw_string_length(rest)
    {
        return (length, Kind::Literal);
    }
    if first == '\''
        && let Some(length) = character_length(rest)
    {
        return (length, Kind::Literal);
    }
    (first.len_utf8(), Kind::Code)
}

/// A `b` or `c` before a raw string is part of the literal, not of a word.
fn ends_in_word(text: &str) -> bool {
    let mut before = text.chars().rev();
    match before.next() {
        Some('b' | 'c') => before.next().is_some_and(is_word),
        Some(last) => is_word(last),
        None => false,
    }
}

/// Rust's block comments nest.
fn block_comment_length(rest: &str) -> usize {
    let bytes = rest.as_bytes();
    let (mut depth, mut at) = (0_usize, 0_usize);
    while at + 1 < bytes.len() {
        match &bytes[at..at + 2] {
            b"/*" => (depth, at) = (depth + 1, at + 2),
            b"*/" => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    rest.len()
}

fn quoted_length(rest: &str, quote: char) -> Option<usize> {
    let mut characters = rest.char_indices().skip(1);
    while let Some((at, character)) = characters.next() {
        if character == '\\' {
            characters.next();
        } else if character == quote {
            return Some(at + quote.len_utf8());
        }
    }
    None
}

fn raw_string_length(rest: &str) -> Option<usize> {
    let hashes = rest[1..].bytes().take_while(|byte| *byte == b'#').count();
    let body = 1 + hashes + 1;
    if rest.as_bytes().get(1 + hashes) != Some(&b'"') {
        return None;
    }
    let end = format!("\"{}", "#".repeat(hashes));
    Some(rest[body..].find(&end).map_or(rest.len(), |at| body + at + end.len()))
}

/// `'a'` is a character and `'a` a lifetime: only the first has its quote after one character or an escape.
fn character_length(rest: &str) -> Option<usize> {
    let mut characters = rest.char_indices().skip(1);
    let (_, first) = characters.next()?;
    if first == '\\' {
        return quoted_length(rest, '\'');
    }
    characters.next().filter(|(_, second)| *second == '\'').map(|(at, _)| at + 1)
}

#[cfg(test)]
mod tests {
    use super::Blank::{Comments, CommentsAndStrings};
    use super::{blank, find_word, line_of};

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(blank(text, CommentsAndStrings), expected);
    }

    #[test]
    fn blanks_what_is_not_code() {
        check("a // b\nc", "a     \nc");
        check("a /* b /* c */ d */ e", "a                   e");
        check(r#"f("x\"y")"#, r#"f("    ")"#);
        check("let c = '\"'; d", "let c = \" \"; d");
        check("let c = '\\''; d", "let c = \"  \"; d");
        check("fn f<'a>(x: &'a str)", "fn f<'a>(x: &'a str)");
    }

    #[test]
    fn blanks_raw_strings_with_all_their_hashes() {
        let blanked = blank("x(r#\"todo \" now\"#) y", CommentsAndStrings);
        assert!(!blanked.contains("todo") && !blanked.contains("now"), "{blanked}");
        assert!(blanked.ends_with(") y"), "{blanked}");
        assert!(!blank("br\"todo\"", CommentsAndStrings).contains("todo"));
    }

    #[test]
    fn keeps_length_and_lines() {
        let text = "a \"é\n\" /* ü\n */ r#\"b\n\"# c\n";
        let blanked = blank(text, CommentsAndStrings);
        assert_eq!(blanked.len(), text.len());
        assert_eq!(line_of(&blanked, blanked.rfind('c').unwrap()), 4);
    }

    #[test]
    fn can_leave_strings_alone() {
        assert_eq!(blank("\"A\" // \"B\"", Comments), "\"A\"       ");
    }

    #[test]
    fn finds_whole_words_only() {
        assert_eq!(find_word("mod a; submod b; model", "mod").collect::<Vec<_>>(), [0]);
    }
}
