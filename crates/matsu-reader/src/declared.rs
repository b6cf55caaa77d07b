//! What a page says about itself in its head: title, description, language, dates, authors, identifiers, types.

use dom_query::Document;
use serde_json::Value;

/// What a page declares.
#[derive(Clone, Debug, Default)]
pub struct Declared {
    pub title: String,
    pub description: String,
    pub language: Option<String>,
    pub year: Option<i32>,
    pub authors: Vec<String>,
    pub doi: Option<String>,
    pub url: Option<String>,
    /// `og:type` and the types of the structured data, in lower case, divided by spaces.
    pub types: String,
    /// The whole text, where the structured data carry it.
    pub body: Option<String>,
}

/// Structured data larger than this are left alone.
const JSON_BYTES_MAX: usize = 1024 * 1024;
/// And nested deeper than this.
const JSON_DEPTH_MAX: usize = 12;

impl Declared {
    #[must_use]
    pub fn of(document: &Document) -> Self {
        let mut found = Self::default();
        found.read_meta(document);
        for script in document.select("script[type='application/ld+json']").iter() {
            let text = script.text();
            if text.len() <= JSON_BYTES_MAX
                && let Ok(value) = serde_json::from_str::<Value>(text.trim())
            {
                found.read_json(&value, 0);
            }
        }
        if found.title.is_empty() {
            found.title = clean(&document.select_single("head title").text());
        }
        if found.title.is_empty() {
            found.title = clean(&document.select_single("h1").text());
        }
        found.language = found.language.take().or_else(|| attribute(document, "html", "lang"));
        found.url = attribute(document, "link[rel='canonical']", "href")
            .filter(|url| url.starts_with("http"))
            .or(found.url.take());
        found
    }

    fn read_meta(&mut self, document: &Document) {
        for meta in document.select("meta[content]").iter() {
            let Some(value) = meta.attr("content").map(|value| clean(&value)).filter(|value| !value.is_empty()) else {
                continue;
            };
            let Some(name) = meta.attr("property").or_else(|| meta.attr("name")) else { continue };
            match name.to_ascii_lowercase().as_str() {
                "og:title" | "citation_title" | "dc.title" => self.title = value,
                "og:description" | "description" | "twitter:description" if self.description.is_empty() => {
                    self.description = value
                }
                "og:type" => self.types.push_str(&format!("{} ", value.to_ascii_lowercase())),
                "og:url" if value.starts_with("http") => self.url = Some(value),
                "og:locale" => self.language = Some(value.replace('_', "-")),
                "author" | "citation_author" | "dc.creator"
                    if !self.authors.contains(&value) && !value.starts_with("http") =>
                {
                    self.authors.push(value)
                }
                "article:published_time" | "citation_publication_date" | "citation_date" | "dc.date" | "date" => {
                    self.year = self.year.or_else(|| year_in(&value));
                }
                "citation_doi" | "dc.identifier" if self.doi.is_none() => self.doi = doi_in(&value),
                _ => {}
            }
        }
    }

    fn read_json(&mut self, value: &Value, depth: usize) {
        if depth > JSON_DEPTH_MAX {
            return;
        }
        match value {
            Value::Array(items) => items.iter().for_each(|item| self.read_json(item, depth + 1)),
            Value::Object(fields) => {
                if let Some(kind) = fields.get("@type") {
                    self.types.push_str(&format!("{} ", kind.to_string().to_ascii_lowercase()));
                }
                if let Some(Value::String(body)) = fields.get("articleBody") {
                    self.body = Some(clean(body)).filter(|body| !body.is_empty());
                }
                if let Some(Value::String(date)) = fields.get("datePublished") {
                    self.year = self.year.or_else(|| year_in(date));
                }
                for key in ["@graph", "mainEntity", "mainEntityOfPage", "itemListElement"] {
                    if let Some(inner) = fields.get(key) {
                        self.read_json(inner, depth + 1);
                    }
                }
            }
            _ => {}
        }
    }
}

fn attribute(document: &Document, selector: &str, name: &str) -> Option<String> {
    document.select_single(selector).attr(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
}

fn clean(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn year_in(text: &str) -> Option<i32> {
    let digits: Vec<&str> = text.split(|c: char| !c.is_ascii_digit()).collect();
    digits
        .iter()
        .find(|part| part.len() == 4)
        .and_then(|year| year.parse().ok())
        .filter(|year| (1000..2200).contains(year))
}

/// The DOI in a text, as it stands there.
#[must_use]
pub fn doi_in(text: &str) -> Option<String> {
    let at = text.find("10.")?;
    let doi: String = text[at..].chars().take_while(|c| !c.is_whitespace() && !matches!(c, '"' | '<' | '>')).collect();
    let (prefix, suffix) = doi.split_once('/')?;
    (prefix.len() >= 7 && !suffix.is_empty()).then(|| doi.trim_end_matches(['.', ',', ';', ')']).to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read() {
        let html = r#"<html lang="en"><head><title>T | Site</title><meta property="og:title" content="On  waiting"><meta name="citation_author" content="A. Writer"><meta name="citation_doi" content="doi:10.1234/AbC.5."><link rel=canonical href="https://example.org/w"><script type="application/ld+json">{"@graph":[{"@type":"NewsArticle","datePublished":"2024-03-02","articleBody":"Text."}]}</script><script type="application/ld+json">{broken</script></head></html>"#;
        let declared = Declared::of(&Document::from(html));
        assert_eq!(declared.title, "On waiting");
        assert_eq!(declared.authors, ["A. Writer"]);
        assert_eq!(declared.doi.as_deref(), Some("10.1234/abc.5"));
        assert_eq!(declared.url.as_deref(), Some("https://example.org/w"));
        assert_eq!((declared.year, declared.language.as_deref()), (Some(2024), Some("en")));
        assert!(declared.types.contains("newsarticle"));
        assert_eq!(declared.body.as_deref(), Some("Text."));
    }
}
