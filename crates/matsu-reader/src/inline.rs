//! Marks inside a line of Markdown: emphasis, code, links and images are reduced to their words.

/// Text without marks. A mark that nothing closes stays.
pub fn inline(source: &str) -> String {
    let mut text = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(at) = rest.find(['[', '!', '*', '`', '_', '\\', '<']) {
        text.push_str(&rest[..at]);
        rest = &rest[at..];
        if let Some((words, after)) = link(rest.strip_prefix('!').unwrap_or(rest)) {
            text.push_str(&inline(words));
            rest = after;
            continue;
        }
        let mark = rest.chars().next().unwrap_or(' ');
        if let Some((inner, after)) = pair(&text, rest, mark) {
            if mark == '`' {
                text.push_str(inner);
            } else {
                text.push_str(&inline(inner));
            }
            rest = after;
            continue;
        }
        let escaped = rest[mark.len_utf8()..].chars().next().filter(|c| mark == '\\' && c.is_ascii_punctuation());
        if let Some(escaped) = escaped {
            text.push(escaped);
            rest = &rest[2..];
            continue;
        }
        text.push(mark);
        rest = &rest[mark.len_utf8()..];
    }
    text.push_str(rest);
    text.trim().to_owned()
}

/// What a mark of emphasis or code at the beginning encloses, and what follows its end.
fn pair<'a>(before: &str, text: &'a str, mark: char) -> Option<(&'a str, &'a str)> {
    if !matches!(mark, '*' | '_' | '`') {
        return None;
    }
    let run = text.len() - text.trim_start_matches(mark).len();
    let (open, inside) = text.split_at(run);
    if inside.is_empty() || (mark != '`' && inside.starts_with(char::is_whitespace)) {
        return None;
    }
    if mark == '_' && before.ends_with(char::is_alphanumeric) {
        return None;
    }
    let end = inside.match_indices(open).map(|(at, _)| at).find(|at| {
        let after = &inside[at + run..];
        let is_word_end = mark != '_' || !after.starts_with(char::is_alphanumeric);
        let is_closer = mark == '`' || !inside[..*at].ends_with(char::is_whitespace);
        is_closer && is_word_end && !after.starts_with(mark)
    })?;
    Some((&inside[..end], &inside[end + run..]))
}

/// `[words](address)`, `[words][name]` or `<https://address>` at the beginning; its words and what follows it.
fn link(text: &str) -> Option<(&str, &str)> {
    if let Some(address) = text.strip_prefix('<') {
        let end = address.find('>')?;
        return address[..end].contains("://").then(|| (&address[..end], &address[end + 1..]));
    }
    let inner = text.strip_prefix('[')?;
    let mut depth = 1;
    let end = inner.char_indices().find_map(|(at, c)| {
        depth += i32::from(c == '[') - i32::from(c == ']');
        (depth == 0).then_some(at)
    })?;
    let after = &inner[end + 1..];
    let close = match after.chars().next() {
        Some('(') => after.find(')')?,
        Some('[') => after.find(']')?,
        _ => return None,
    };
    Some((&inner[..end], &after[close + 1..]))
}

/// Whether a text is one link and nothing else.
pub fn is_link(text: &str) -> bool {
    let text = text.trim().trim_start_matches(['*', '_', '`']);
    link(text).is_some_and(|(_, after)| !after.contains(char::is_alphanumeric))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_go_and_words_stay() {
        for (source, expected) in [
            ("Some **bold** and *soft* [words](http://x) and `code_name`.", "Some bold and soft words and code_name."),
            ("snake_case and __dunder__ and A* and 2 * 3", "snake_case and dunder and A* and 2 * 3"),
            ("![a picture](i.png) of [it][ref] at <https://x.org/>", "a picture of it at https://x.org/"),
            ("[`Send`](../send.md) is **[here](x)**", "Send is here"),
            ("an [aside] stays, \\*as is\\*", "an [aside] stays, *as is*"),
            ("`a * b` is *c*", "a * b is c"),
        ] {
            assert_eq!(inline(source), expected);
        }
    }
}
