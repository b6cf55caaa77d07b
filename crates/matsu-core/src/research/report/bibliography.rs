//! The cited documents as BibTeX and as CSL-JSON, each document once, in the order in which the report cites them.

use serde_json::{Value, json};

use super::{DocumentFacts, Report, one_line};

/// A document and the numbers under which the report cites it.
fn documents(report: &Report) -> Vec<(&DocumentFacts, Vec<usize>)> {
    let mut found: Vec<(&DocumentFacts, Vec<usize>)> = Vec::new();
    for citation in &report.citations {
        match found.iter_mut().find(|(document, _)| document.url == citation.document.url) {
            Some((_, numbers)) => numbers.push(citation.number),
            None => found.push((&citation.document, vec![citation.number])),
        }
    }
    found
}

/// The name of an entry: the same in both forms.
fn key(place: usize) -> String {
    format!("source{}", place + 1)
}

#[must_use]
pub fn bibtex(report: &Report) -> String {
    let mut out = String::new();
    for (place, (document, numbers)) in documents(report).into_iter().enumerate() {
        let cited: Vec<String> = numbers.iter().map(|number| format!("[{number}]")).collect();
        let mut fields = vec![("title", format!("{{{}}}", tex(title(document))))];
        if !document.authors.is_empty() {
            // Braces keep a name whole: whether it is a person's or an office's is not known.
            let names: Vec<String> = document.authors.iter().map(|name| format!("{{{}}}", tex(name))).collect();
            fields.push(("author", names.join(" and ")));
        }
        fields.extend(document.year.map(|year| ("year", year.to_string())));
        fields.extend(document.doi.as_ref().map(|doi| ("doi", address(doi))));
        fields.push(("url", address(&document.url)));
        fields.push(("urldate", day(document)));
        fields.push(("note", format!("Cited as {}", cited.join(", "))));
        let lines: Vec<String> = fields.iter().map(|(name, value)| format!("  {name} = {{{value}}}")).collect();
        out.push_str(&format!("@misc{{{},\n{}\n}}\n\n", key(place), lines.join(",\n")));
    }
    out
}

#[must_use]
pub fn csl(report: &Report) -> Value {
    let entries = documents(report).into_iter().enumerate().map(|(place, (document, numbers))| {
        let is_web = document.url.starts_with("http");
        let kind = match (&document.doi, is_web) {
            (Some(_), _) => "article",
            (None, true) => "webpage",
            (None, false) => "document",
        };
        let mut entry = json!({
            "id": key(place),
            "type": kind,
            "title": one_line(title(document)),
            "URL": document.url,
            "accessed": { "date-parts": [date_parts(document)] },
            "note": format!("Cited as {}", numbers.iter().map(|n| format!("[{n}]")).collect::<Vec<_>>().join(", ")),
        });
        if !document.authors.is_empty() {
            let names = document.authors.iter().map(|name| json!({ "literal": one_line(name) }));
            entry["author"] = names.collect();
        }
        if let Some(year) = document.year {
            entry["issued"] = json!({ "date-parts": [[year]] });
        }
        if let Some(doi) = &document.doi {
            entry["DOI"] = json!(doi);
        }
        entry
    });
    entries.collect()
}

fn title(document: &DocumentFacts) -> &str {
    if document.title.is_empty() { &document.url } else { &document.title }
}

/// The day on which it was read, as `2026-11-17`.
fn day(document: &DocumentFacts) -> String {
    document.read_at.to_string().chars().take(10).collect()
}

fn date_parts(document: &DocumentFacts) -> Vec<u32> {
    day(document).split('-').filter_map(|part| part.parse().ok()).collect()
}

/// Text in which no character is a command.
fn tex(text: &str) -> String {
    let mut out = String::new();
    for c in one_line(text).chars() {
        match c {
            '\\' => out.push_str("\\textbackslash{}"),
            '~' => out.push_str("\\textasciitilde{}"),
            '^' => out.push_str("\\textasciicircum{}"),
            '{' | '}' | '$' | '&' | '#' | '%' | '_' => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}

/// An address is printed as it stands; only braces and spaces could end the field.
fn address(url: &str) -> String {
    url.replace('{', "%7B").replace('}', "%7D").replace(char::is_whitespace, "%20").replace('\\', "%5C")
}
