//! A report as Markdown for a file, or as plain text for a terminal. Text of pages is data: none of it becomes structure.

use super::{Citation, Method, Report, Searched, Sentence, Verification, one_line};

/// Characters of a quote in the list of sources.
const QUOTE_SHOWN_MAX: usize = 400;
/// Pages that are listed as read; of more the number is given.
const PAGES_LISTED_MAX: usize = 40;

/// What becomes of text that pages and people wrote.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Text {
    /// Marks are escaped.
    Markdown,
    /// As it stands, on one line.
    Plain,
}

impl Text {
    fn of(self, text: &str) -> String {
        let line = one_line(text);
        if self == Self::Plain {
            return line;
        }
        let mut out = String::with_capacity(line.len());
        for c in line.chars() {
            if matches!(c, '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '|' | '~' | '$') {
                out.push('\\');
            }
            out.push(c);
        }
        // A line that begins with one of these would be a heading, a list or a rule.
        let is_mark = |c: char| matches!(c, '#' | '-' | '+' | '=');
        if out.starts_with(is_mark) {
            out.insert(0, '\\');
        }
        out
    }

    /// An address: no mark in it may end the link.
    fn address(self, url: &str) -> String {
        let plain: String = url.chars().filter(|c| !c.is_control() && !c.is_whitespace()).collect();
        match self {
            Self::Plain => plain,
            Self::Markdown => format!("<{}>", plain.replace('<', "%3C").replace('>', "%3E")),
        }
    }
}

/// The whole report as Markdown.
#[must_use]
pub fn markdown(report: &Report) -> String {
    Page { text: Text::Markdown, out: String::new() }.whole(report)
}

/// The whole report for a terminal.
#[must_use]
pub fn plain(report: &Report) -> String {
    Page { text: Text::Plain, out: String::new() }.whole(report)
}

/// How the sentences were made, in one sentence. Every form of a report has it.
#[must_use]
pub fn how_it_was_made(report: &Report) -> String {
    let claims = format!("{} of {} claims", report.claims_used, report.claims_total);
    match (report.method, &report.model) {
        (Method::Model, Some(model)) => format!(
            "Written by the model {model} from {claims}. Sentences that their claims do not support were removed: {}.",
            report.sentences_removed
        ),
        _ => {
            let removed = match report.sentences_removed {
                0 => String::new(),
                count => {
                    format!(" A model wrote {count} sentences; none was supported by its claims, so none is shown.")
                }
            };
            format!(
                "Extractive: no model wrote this report. It shows sentences of the documents, word for word ({claims}).{removed}"
            )
        }
    }
}

/// What was found out about a sentence by other sources, in a few words.
#[must_use]
pub fn weighed(verification: Verification, confidence: Option<f64>) -> String {
    match (verification, confidence) {
        (Verification::Unverified, _) | (_, None) => verification.to_string(),
        (_, Some(confidence)) => format!("{verification}, confidence {confidence:.3}"),
    }
}

fn count(number: u32, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// The outcome of a search, on one line.
#[must_use]
pub fn search_line(search: &Searched) -> String {
    let mut line = format!(
        "{}: {}, {} read, {}",
        one_line(&search.query),
        search.status,
        count(search.pages_read, "page"),
        count(search.claims, "claim")
    );
    if !search.engines.is_empty() {
        line.push_str(&format!(", engines {}", search.engines.join(", ")));
    }
    if search.pages_failed > 0 {
        line.push_str(&format!(", {} could not be read", count(search.pages_failed, "page")));
    }
    if search.pages_left > 0 {
        line.push_str(&format!(
            ", {} found and not opened (the page limit was reached, or further pages had nothing new)",
            count(search.pages_left, "page")
        ));
    }
    if let Some(error) = &search.error {
        line.push_str(&format!(" ({})", one_line(error)));
    }
    line
}

/// Everything that was not searched or read, each with its reason.
#[must_use]
pub fn skipped(report: &Report) -> Vec<String> {
    let engines = report.searched.iter().flat_map(|search| &search.engines_failed);
    let mut lines: Vec<String> = engines.map(|failure| format!("engine {}", one_line(failure))).collect();
    lines.extend(report.searched.iter().flat_map(|search| &search.skipped).map(|line| one_line(line)));
    let mut seen: Vec<String> = Vec::new();
    lines.retain(|line| {
        let is_new = !seen.contains(line);
        if is_new {
            seen.push(line.clone());
        }
        is_new
    });
    lines
}

/// Where a quote stands: document, headings, passage.
#[must_use]
pub fn place_of(citation: &Citation) -> String {
    let document = &citation.document;
    let title = if document.title.is_empty() { &document.url } else { &document.title };
    // The outermost heading is often the title itself.
    let inner = citation.heading.strip_prefix(title.as_str()).unwrap_or(&citation.heading);
    let inner = inner.trim_start_matches(super::super::passages::HEADING_DIVIDER).trim();
    let heading = if inner.is_empty() { String::new() } else { format!(", {inner}") };
    let year = document.year.map(|year| format!(" ({year})")).unwrap_or_default();
    format!("{}{year}{heading}, passage {}", one_line(title), citation.passage)
}

struct Page {
    text: Text,
    out: String,
}

impl Page {
    fn whole(mut self, report: &Report) -> String {
        let made = how_it_was_made(report);
        self.heading(1, &report.question);
        self.paragraph(&made);
        for note in &report.notes {
            self.paragraph(&format!("Note: {note}"));
        }
        self.heading(2, "Answer");
        if report.answer.is_empty() {
            self.line("No direct answer was found.");
        }
        for sentence in &report.answer {
            self.sentence(sentence);
        }
        for section in report.sections.iter().filter(|section| !section.sentences.is_empty()) {
            self.heading(2, &section.title);
            for sentence in &section.sentences {
                self.sentence(sentence);
            }
        }
        if !report.contested.is_empty() {
            self.heading(2, "Contested");
        }
        for one in &report.contested {
            let (text, weighed) = (self.text.of(&one.text), weighed(one.verification, one.confidence));
            self.out.push_str(&format!(
                "- {text} — stated or supported by {}; refuted by {} ({weighed})\n",
                numbers(&one.supported_by),
                numbers(&one.refuted_by)
            ));
        }
        self.list("Not found", &report.not_found);
        self.work(report);
        self.sources(&report.citations);
        self.out
    }

    fn work(&mut self, report: &Report) {
        let searches: Vec<String> = report.searched.iter().map(search_line).collect();
        self.list("Searched", &searches);
        self.list("Skipped", &skipped(report));
        if report.read.is_empty() {
            return;
        }
        self.heading(2, "Read");
        for page in report.read.iter().take(PAGES_LISTED_MAX) {
            let title = if page.title.is_empty() { String::new() } else { format!("{} ", self.text.of(&page.title)) };
            let line = format!("- {title}{}\n", self.text.address(&page.url));
            self.out.push_str(&line);
        }
        if report.read.len() > PAGES_LISTED_MAX {
            self.line(&format!("- and {} more", report.read.len() - PAGES_LISTED_MAX));
        }
    }

    fn sources(&mut self, citations: &[Citation]) {
        if citations.is_empty() {
            return;
        }
        self.heading(2, "Sources");
        for citation in citations {
            let quote = crate::job::end::clip(&citation.quote, QUOTE_SHOWN_MAX);
            let line = format!(
                "[{}] “{}” — {}, {}\n\n",
                citation.number,
                self.text.of(&quote),
                self.text.of(&place_of(citation)),
                self.text.address(&citation.document.url)
            );
            // Markdown would read the number as a link without a mark before it.
            let line = if self.text == Text::Markdown { format!("\\{line}") } else { line };
            self.out.push_str(&line);
        }
    }

    fn sentence(&mut self, sentence: &Sentence) {
        let line = format!(
            "- {}{} {} ({})\n",
            self.below(&sentence.below),
            self.text.of(&sentence.text),
            numbers(&sentence.citations),
            weighed(sentence.verification, sentence.confidence)
        );
        self.out.push_str(&line);
    }

    fn below(&self, heading: &str) -> String {
        match self.text {
            _ if heading.is_empty() => String::new(),
            Text::Markdown => format!("*{}:* ", self.text.of(heading)),
            Text::Plain => format!("{}: ", self.text.of(heading)),
        }
    }

    fn list(&mut self, title: &str, lines: &[String]) {
        if lines.is_empty() {
            return;
        }
        self.heading(2, title);
        for line in lines {
            let line = format!("- {}\n", self.text.of(line));
            self.out.push_str(&line);
        }
    }

    fn heading(&mut self, level: usize, text: &str) {
        if !self.out.is_empty() && !self.out.ends_with("\n\n") {
            self.out.push('\n');
        }
        let text = self.text.of(text);
        self.out.push_str(&format!("{} {text}\n\n", "#".repeat(level)));
    }

    fn paragraph(&mut self, text: &str) {
        let text = self.text.of(text);
        self.out.push_str(&format!("{text}\n\n"));
    }

    fn line(&mut self, text: &str) {
        self.out.push_str(text);
        self.out.push('\n');
    }
}

fn numbers(citations: &[usize]) -> String {
    citations.iter().map(|number| format!("[{number}]")).collect()
}
