//! The main text of an HTML page.
//!
//! Our own block model decides, with `dom_smoothie`'s reading as one of the things it knows. That is quadratic in
//! nesting depth, so a page nested deeper than `DEPTH_MAX` is left to the model alone.

use std::panic::AssertUnwindSafe;

use dom_query::Document as Dom;
use dom_smoothie::{Config, Readability};
use matsu_core::ports::extractor::ExtractError;
use matsu_core::research::document::{Document, Heading, LineMark, MarkKind};
use matsu_core::research::ranking::candidates::CODE_MARK;

use crate::blocks::{Block, Blocks, DEPTH_MAX, Kind};
use crate::code::without_code;
use crate::declared::Declared;
use crate::features::PageFacts;
use crate::model;
pub use crate::model::Verdict;

/// Less text than this is no main text; what the page declares is tried.
const TEXT_MIN: usize = 250;
/// Pages beyond these are left to the model alone.
const SECOND_OPINION_BLOCKS_MAX: usize = 20_000;
/// Code has one mark in this many characters, or more.
const CODE_CHARS_PER_MARK: usize = 20;
/// Characters of a row of data.
const ROW_CHARS_MAX: usize = 300;
/// Equal blocks of at least this length are one block that the page shows twice.
const REPEATED_CHARS_MIN: usize = 60;

/// A page, flattened, with everything that is given to the model.
pub struct Reading {
    pub blocks: Blocks,
    pub declared: Declared,
    pub second_opinion: String,
}

impl Reading {
    #[must_use]
    pub fn of(html: &str) -> Self {
        // No text is in there, and what is not parsed takes no time.
        let html = without_code(html);
        let (mut dom, mut blocks) = flatten(&html);
        if html.contains("<noscript") && chars(&blocks) < TEXT_MIN {
            // Some sites have text only for clients that run no scripts.
            (dom, blocks) = flatten(&html.replace("<noscript", "<div").replace("</noscript", "</div"));
        }
        let declared = Declared::of(&dom);
        let may_ask = blocks.depth <= DEPTH_MAX && blocks.blocks.len() <= SECOND_OPINION_BLOCKS_MAX;
        let second_opinion = if may_ask { second_opinion(dom) } else { String::new() };
        Self { blocks, declared, second_opinion }
    }

    #[must_use]
    pub fn verdict(&self) -> Verdict {
        model::judge(&self.blocks, &self.facts())
    }

    #[must_use]
    pub fn facts(&self) -> PageFacts<'_> {
        PageFacts {
            title: &self.declared.title,
            description: &self.declared.description,
            second_opinion: &self.second_opinion,
            declared_body: self.declared.body.as_deref().unwrap_or_default(),
            declared_types: &self.declared.types,
        }
    }
}

fn second_opinion(dom: Dom) -> String {
    // What the structured data say is read by ourselves, and only the text is taken.
    let config = Config { disable_json_ld: true, keep_classes: true, ..Config::default() };
    let read =
        || Some(Readability::with_document(dom, None, Some(config)).ok()?.parse().ok()?.text_content.to_string());
    // A page that breaks the other extractor has no second opinion.
    std::panic::catch_unwind(AssertUnwindSafe(read)).ok().flatten().unwrap_or_default()
}

/// Reads a page.
///
/// # Errors
/// `Empty` if there is no text at all.
pub fn read(html: &str) -> Result<Document, ExtractError> {
    let reading = Reading::of(html);
    let verdict = reading.verdict();
    read_by(&verdict, reading)
}

/// The second half of reading a page: what its text is by this verdict. By itself for training, where the verdict is
/// that of a model which has not seen the page.
///
/// # Errors
/// `Empty` if there is no text at all.
pub fn read_by(verdict: &Verdict, reading: Reading) -> Result<Document, ExtractError> {
    let mut text = Text::kept(&reading.blocks, verdict);
    if text.body.chars().count() < TEXT_MIN
        && let Some(body) = &reading.declared.body
        && body.len() > text.body.len()
    {
        text = Text::of_lines(body, &reading.blocks);
    }
    if text.body.is_empty() {
        text = Text::of_lines(&reading.second_opinion, &reading.blocks);
    }
    if text.body.is_empty() {
        // A page of a few words has no main text apart from the rest: all of it is.
        let all = vec![1.0; reading.blocks.blocks.len()];
        text = Text::kept(&reading.blocks, &Verdict { probabilities: all, keep: 0.5 });
    }
    if text.body.is_empty() {
        return Err(ExtractError::Empty);
    }
    let declared = reading.declared;
    Ok(Document {
        title: declared.title,
        text: text.body,
        headings: text.headings,
        language: declared.language,
        year: declared.year,
        authors: declared.authors,
        doi: declared.doi,
        declared_url: declared.url,
        marks: text.marks,
    })
}

fn flatten(html: &str) -> (Dom, Blocks) {
    let dom = Dom::from(html);
    let blocks = Blocks::of(&dom);
    (dom, blocks)
}

fn chars(page: &Blocks) -> usize {
    page.blocks.iter().map(|block| block.text.chars().count()).sum()
}

/// A text that is being put together.
#[derive(Default)]
struct Text {
    body: String,
    headings: Vec<Heading>,
    /// Not written into the text: by that extraction is measured.
    marks: Vec<LineMark>,
}

impl Text {
    fn push(&mut self, line: &str, kind: Kind) {
        if !self.body.is_empty() {
            self.body.push('\n');
        }
        match kind {
            Kind::Heading(level) => {
                self.headings.push(Heading { at: self.body.len(), level, text: line.to_owned() });
            }
            // Code states nothing. Whole documents are set as preformatted text too, and those do.
            Kind::Code if is_code(line) => self.body.push_str(CODE_MARK),
            Kind::Item => self.marks.push(LineMark { at: self.body.len(), kind: MarkKind::Item }),
            // A longer row is the layout of a page, with its text inside.
            Kind::Row if line.chars().count() <= ROW_CHARS_MAX => {
                self.marks.push(LineMark { at: self.body.len(), kind: MarkKind::Row });
            }
            _ => {}
        }
        self.body.push_str(line);
    }

    fn push_block(&mut self, block: &Block) {
        self.push(&block.text, block.kind);
        // The text of a heading is kept beside the body, as it is.
        if matches!(block.kind, Kind::Heading(_)) {
            return;
        }
        let start = self.body.len() - block.text.len();
        let line_ends = block.line_ends.iter().map(|at| LineMark { at: start + at, kind: MarkKind::LineEnd });
        self.marks.extend(line_ends);
    }

    /// The blocks that are main text, each long one once.
    fn kept(page: &Blocks, verdict: &Verdict) -> Self {
        let mut text = Self::default();
        let mut seen = foldhash::HashSet::default();
        for (at, (block, p)) in page.blocks.iter().zip(&verdict.probabilities).enumerate() {
            let is_kept = *p > verdict.keep || (!text.body.is_empty() && heads_main_text(page, verdict, at));
            // Only what is kept counts as shown: the copy that is kept may be the second one.
            if is_kept && (block.text.len() < REPEATED_CHARS_MIN || seen.insert(block.text.as_str())) {
                text.push_block(block);
            }
        }
        text
    }

    /// A text of lines; those that are headings of the page are headings here.
    fn of_lines(lines: &str, page: &Blocks) -> Self {
        let headings: std::collections::HashMap<&str, Kind> = page
            .blocks
            .iter()
            .filter(|block| matches!(block.kind, Kind::Heading(_)))
            .map(|block| (block.text.as_str(), block.kind))
            .collect();
        let mut text = Self::default();
        for line in lines.lines() {
            let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
            if !line.is_empty() {
                text.push(&line, headings.get(line.as_str()).copied().unwrap_or(Kind::Other));
            }
        }
        text
    }
}

/// Whether a preformatted text is code, by its marks.
fn is_code(text: &str) -> bool {
    let marks = text.chars().filter(|c| "{}()[];=<>_$#&|\\/".contains(*c)).count();
    marks * CODE_CHARS_PER_MARK >= text.chars().count()
}

/// Whether a block is the heading of main text. Few words say little about themselves, so a heading goes where the block
/// below it goes.
fn heads_main_text(page: &Blocks, verdict: &Verdict, at: usize) -> bool {
    let is_heading = |at: usize| page.blocks.get(at).is_some_and(|block| matches!(block.kind, Kind::Heading(_)));
    is_heading(at)
        && !is_heading(at + 1)
        && verdict.probabilities.get(at + 1).is_some_and(|below| *below > verdict.keep)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_rows_and_broken_lines_are_marked_beside_the_text() {
        let long =
            "This paragraph has enough words to be the main text of a page about the nodes of a cluster. ".repeat(4);
        let html = format!(
            "<html><body><article><h1>Nodes</h1><p>{long}</p><p>A node can be in one of these states:</p>\
             <ul><li>Ready to take new pods</li><li>Unknown, which means lost</li></ul>\
             <table><tr><td>Name</td><td>Value</td></tr></table><p>東京は\n日本の首都で\n<b>あり</b>、Tokyo\nともいう。</p>\
             </article></body></html>"
        );
        // Which blocks are main text is not the matter here: all of them.
        let reading = Reading::of(&html);
        let probabilities = vec![1.0; reading.blocks.blocks.len()];
        let document = read_by(&Verdict { probabilities, keep: 0.5 }, reading).expect("a text");
        assert!(
            document.text.contains("\nReady to take new pods\n"),
            "the text itself has no marks: {}",
            document.text
        );
        let marked = document.with_marks().text;
        for line in [
            "- Ready to take new pods",
            "- Unknown, which means lost",
            "| Name Value",
            "東京は日本の首都であり、Tokyo ともいう。",
        ] {
            assert!(marked.lines().any(|one| one == line), "{line}: {marked}");
        }
    }
}
