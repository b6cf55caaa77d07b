//! Markdown and plain text: already their own main text. Front matter is read for what it declares, markup that only
//! draws is taken away, headings are noted.

use matsu_core::research::document::Document;

use crate::{markdown, paragraphs, rst};

/// A Markdown document.
#[must_use]
pub fn markdown(source: &str) -> Document {
    let (matter, body) = front_matter(source);
    let mut document = Document { declared_url: matter.url, year: matter.year, ..Document::default() };
    markdown::markdown(body, &mut document);
    document.title = matter.title.or_else(|| document.headings.first().map(|h| h.text.clone())).unwrap_or_default();
    document.authors = matter.author.into_iter().collect();
    document
}

/// A plain text; its first line is its title if it is short.
#[must_use]
pub fn text(source: &str) -> Document {
    let mut document = Document::default();
    let without_marks = rst::is_rst(source).then(|| rst::plain(source));
    let has_code = without_marks.is_some();
    let source = without_marks.as_deref().unwrap_or(source);
    paragraphs::text(source, has_code, &mut document);
    let first = source.lines().map(str::trim).find(|line| line.contains(char::is_alphanumeric));
    let title = first
        .filter(|line| line.chars().count() <= 120 && !line.ends_with(['.', '。', '！', '？']))
        .unwrap_or_default();
    document.title = title.to_owned();
    document
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
            "Waiting\nSome bold words and code_name, snake_case.\n- one\n- two alt\nSecond\n    let x = 1; # no heading\n| a | b"
        );
        for heading in &document.headings {
            assert!(document.text[heading.at..].starts_with(&heading.text));
        }
        assert_eq!(document.headings.iter().map(|h| h.level).collect::<Vec<_>>(), [1, 2]);
    }

    #[test]
    fn a_first_line_that_is_a_sentence_is_no_title() {
        for (source, title) in [("Lights\n\nThey shine.", "Lights"), ("They shine.\n", ""), ("灯台は高い。\n", "")]
        {
            assert_eq!(text(source).title, title, "{source}");
        }
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
