//! Markdown and plain text: already their own main text. Front matter is read for what it declares, markup that only
//! draws is taken away, headings are noted.

use matsu_core::research::document::{Document, Heading};

/// A Markdown document.
#[must_use]
pub fn markdown(source: &str) -> Document {
    let (matter, body) = front_matter(source);
    let mut document = Document { declared_url: matter.url, year: matter.year, ..Document::default() };
    let mut is_code = false;
    for line in body.lines() {
        let trimmed = line.trim();
        if trimmed.starts_with("```") || trimmed.starts_with("~~~") {
            is_code = !is_code;
            continue;
        }
        let level = if is_code { 0 } else { trimmed.bytes().take_while(|b| *b == b'#').count() };
        let is_heading = (1..=6).contains(&level) && trimmed[level..].starts_with(' ');
        let text = if is_code {
            line.trim_end().to_owned()
        } else {
            inline(trimmed[if is_heading { level } else { 0 }..].trim())
        };
        if text.is_empty() || text.chars().all(|c| matches!(c, '-' | '=' | '|' | ':' | ' ' | '*' | '_')) {
            continue;
        }
        if !document.text.is_empty() {
            document.text.push('\n');
        }
        if is_heading {
            let level = u8::try_from(level).unwrap_or(6);
            document.headings.push(Heading { at: document.text.len(), level, text: text.clone() });
        }
        document.text.push_str(&text);
    }
    document.title = matter.title.or_else(|| document.headings.first().map(|h| h.text.clone())).unwrap_or_default();
    document.authors = matter.author.into_iter().collect();
    document
}

/// A plain text; its first line is its title if it is short.
#[must_use]
pub fn text(source: &str) -> Document {
    let mut lines = Vec::new();
    for line in source.lines().map(str::trim).filter(|line| !line.is_empty()) {
        lines.push(line);
    }
    let title =
        lines.first().filter(|line| line.chars().count() <= 120 && !line.ends_with('.')).copied().unwrap_or_default();
    Document { title: title.to_owned(), text: lines.join("\n"), ..Document::default() }
}

/// What a document says about itself before it begins.
#[derive(Default)]
struct Matter {
    title: Option<String>,
    author: Option<String>,
    url: Option<String>,
    year: Option<i32>,
}

fn front_matter(source: &str) -> (Matter, &str) {
    let none = (Matter::default(), source);
    let Some(rest) = source.trim_start_matches('\u{feff}').strip_prefix("---") else { return none };
    let Some(end) = rest.find("\n---") else { return none };
    let mut matter = Matter::default();
    for line in rest[..end].lines() {
        let Some((key, value)) = line.split_once(':') else { continue };
        let value = value.trim().trim_matches(['"', '\'']).to_owned();
        if value.is_empty() {
            continue;
        }
        match key.trim().to_ascii_lowercase().as_str() {
            "title" => matter.title = Some(value),
            "author" => matter.author = Some(value),
            "url" | "source" | "canonical" | "canonical_url" | "link" if value.starts_with("http") => {
                matter.url = Some(value)
            }
            "date" | "year" | "published" => matter.year = value.get(..4).and_then(|year| year.parse().ok()),
            _ => {}
        }
    }
    (matter, rest[end + 4..].trim_start_matches('-'))
}

/// Text without marks of emphasis, links and images reduced to their words.
fn inline(line: &str) -> String {
    let line = line.trim_start_matches(['>', ' ']);
    let line = ["- ", "* ", "+ "].iter().find_map(|mark| line.strip_prefix(mark)).unwrap_or(line);
    let mut text = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find(['[', '!', '*', '`', '_']) {
        text.push_str(&rest[..at]);
        rest = &rest[at..];
        if let Some((words, after)) = link(rest.trim_start_matches('!')) {
            text.push_str(words);
            rest = after;
            continue;
        }
        let mark = rest.chars().next().unwrap_or(' ');
        let is_inside_word =
            mark == '_' && text.ends_with(char::is_alphanumeric) && rest[1..].starts_with(char::is_alphanumeric);
        let run = rest.len() - rest.trim_start_matches(mark).len();
        let is_lonely = mark == '*' && run == 1 && text.ends_with(' ') && rest[1..].starts_with(' ');
        if is_inside_word || matches!(mark, '[' | '!') || is_lonely {
            text.push(mark);
            rest = &rest[mark.len_utf8()..];
        } else {
            rest = &rest[run..];
        }
    }
    text.push_str(rest);
    text.trim().to_owned()
}

/// `[words](address)` at the beginning; its words and what follows it.
fn link(text: &str) -> Option<(&str, &str)> {
    let inner = text.strip_prefix('[')?;
    let end = inner.find(']')?;
    let after = inner[end + 1..].strip_prefix('(')?;
    let close = after.find(')')?;
    Some((&inner[..end], &after[close + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markdown_becomes_text_with_headings() {
        let source = "---\ntitle: \"On waiting\"\nurl: https://example.org/w\ndate: 2024-05-01\n---\n# Waiting\n\nSome **bold** [words](http://x) and `code_name`, snake_case.\n\n- one\n- two ![alt](i.png)\n\n## Second\n```\nlet x = 1; # no heading\n```\n| a | b |\n|---|---|\n";
        let document = markdown(source);
        assert_eq!(document.title, "On waiting");
        assert_eq!(document.declared_url.as_deref(), Some("https://example.org/w"));
        assert_eq!(document.year, Some(2024));
        assert_eq!(
            document.text,
            "Waiting\nSome bold words and code_name, snake_case.\none\ntwo alt\nSecond\nlet x = 1; # no heading\n| a | b |"
        );
        for heading in &document.headings {
            assert!(document.text[heading.at..].starts_with(&heading.text));
        }
        assert_eq!(document.headings.iter().map(|h| h.level).collect::<Vec<_>>(), [1, 2]);
    }

    proptest::proptest! {
        #[test]
        fn no_text_breaks_it(source in "(\\PC|\n|[\\[\\]()*_`#!>-]){0,200}") {
            let document = markdown(&source);
            for heading in &document.headings {
                proptest::prop_assert!(document.text.is_char_boundary(heading.at));
            }
            let _ = text(&source);
        }
    }
}
