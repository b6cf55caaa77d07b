//! A report as one HTML file: no script, nothing loaded from elsewhere, every text escaped.

use std::fmt::Write as _;

use super::markdown::{how_it_was_made, place_of, search_line, skipped, weighed};
use super::{Citation, Report, Sentence};

const STYLE: &str = "body{font:16px/1.55 system-ui,sans-serif;max-width:46rem;margin:2rem auto;padding:0 1rem;color:#1b1b1b;\
background:#fff}h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2rem}.made,.weighed,.place{color:#595959;font-size:.875rem}\
blockquote{margin:.25rem 0;padding-left:.75rem;border-left:3px solid #c9c9c9}ol.sources{padding-left:2.5rem}\
li{margin:.4rem 0;overflow-wrap:anywhere}sup a{text-decoration:none}:target{background:#fff3bf}\
@media(prefers-color-scheme:dark){body{color:#e6e6e6;background:#161616}.made,.weighed,.place{color:#a8a8a8}a{color:#8ab4f8}\
:target{background:#4a3f00}}";

#[must_use]
pub fn html(report: &Report) -> String {
    let mut out = String::new();
    let title = escape(&report.question);
    // Writing to a string cannot fail.
    let _ = write!(
        out,
        "<!doctype html>\n<html>\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"generator\" content=\"Matsu\">\n<title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n\
         <h1>{title}</h1>\n<p class=\"made\">{}</p>\n",
        escape(&how_it_was_made(report))
    );
    for note in &report.notes {
        let _ = writeln!(out, "<p class=\"made\">Note: {}</p>", escape(note));
    }
    out.push_str("<h2>Answer</h2>\n");
    if report.answer.is_empty() {
        out.push_str("<p>No direct answer was found.</p>\n");
    }
    sentences(&mut out, &report.answer);
    for section in report.sections.iter().filter(|section| !section.sentences.is_empty()) {
        let _ = writeln!(out, "<h2>{}</h2>", escape(&section.title));
        sentences(&mut out, &section.sentences);
    }
    contested(&mut out, report);
    list(&mut out, "Not found", &report.not_found);
    list(&mut out, "Searched", &report.searched.iter().map(search_line).collect::<Vec<_>>());
    list(&mut out, "Skipped", &skipped(report));
    if !report.read.is_empty() {
        out.push_str("<h2>Read</h2>\n<ul>\n");
        for page in &report.read {
            let title = if page.title.is_empty() { &page.url } else { &page.title };
            let _ = writeln!(out, "<li>{}</li>", link(&page.url, title));
        }
        out.push_str("</ul>\n");
    }
    sources(&mut out, &report.citations);
    out.push_str("</body>\n</html>\n");
    out
}

fn sentences(out: &mut String, sentences: &[Sentence]) {
    if sentences.is_empty() {
        return;
    }
    out.push_str("<ul>\n");
    for sentence in sentences {
        let below = &sentence.below;
        let below = if below.is_empty() { String::new() } else { format!("<em>{}:</em> ", escape(below)) };
        let _ = writeln!(
            out,
            "<li>{below}{}{} <span class=\"weighed\">({})</span></li>",
            escape(&sentence.text),
            numbers(&sentence.citations),
            escape(&weighed(sentence.verification, sentence.confidence))
        );
    }
    out.push_str("</ul>\n");
}

fn contested(out: &mut String, report: &Report) {
    if report.contested.is_empty() {
        return;
    }
    out.push_str("<h2>Contested</h2>\n<ul>\n");
    for one in &report.contested {
        let _ = writeln!(
            out,
            "<li>{} — stated or supported by{}; refuted by{} <span class=\"weighed\">({})</span></li>",
            escape(&one.text),
            numbers(&one.supported_by),
            numbers(&one.refuted_by),
            escape(&weighed(one.verification, one.confidence))
        );
    }
    out.push_str("</ul>\n");
}

fn sources(out: &mut String, citations: &[Citation]) {
    if citations.is_empty() {
        return;
    }
    out.push_str("<h2>Sources</h2>\n<ol class=\"sources\">\n");
    for citation in citations {
        let _ = writeln!(
            out,
            "<li id=\"c{}\"><blockquote>{}</blockquote><p class=\"place\">{}, {}</p></li>",
            citation.number,
            escape(&citation.quote),
            escape(&place_of(citation)),
            link(&citation.document.url, &citation.document.url)
        );
    }
    out.push_str("</ol>\n");
}

fn list(out: &mut String, title: &str, lines: &[String]) {
    if lines.is_empty() {
        return;
    }
    let _ = writeln!(out, "<h2>{title}</h2>\n<ul>");
    for line in lines {
        let _ = writeln!(out, "<li>{}</li>", escape(line));
    }
    out.push_str("</ul>\n");
}

fn numbers(citations: &[usize]) -> String {
    citations.iter().map(|number| format!(" <sup><a href=\"#c{number}\">[{number}]</a></sup>")).collect()
}

/// Only addresses of the web become links: a page must not lead to a script or to a file.
fn link(url: &str, text: &str) -> String {
    let is_web = url.starts_with("https://") || url.starts_with("http://");
    if is_web {
        return format!("<a href=\"{}\" rel=\"noopener noreferrer\">{}</a>", escape(url), escape(text));
    }
    let shown = if url == text { String::new() } else { format!("{} ", escape(text)) };
    format!("{shown}<code>{}</code>", escape(url))
}

fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}
