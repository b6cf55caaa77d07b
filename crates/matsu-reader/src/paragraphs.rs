//! The blocks of plain text, one a line: a line that only the width of the file has broken is joined again, list items
//! begin with `- `, rows of tables with `| `, lines of code with four spaces.

use matsu_core::research::document::{Document, Heading};
use matsu_core::research::ranking::candidates::{CODE_MARK, ITEM_MARK};
use matsu_core::research::sentences::push_line;

/// A line of plain text that is shorter than this share of its paragraph's longest ends a block by itself.
const SHORT_LINE_SHARE: usize = 2;

/// Writes blocks into a document.
pub struct Blocks<'a> {
    document: &'a mut Document,
    /// The lines of the paragraph or list item that is open.
    open: String,
    is_item: bool,
}

impl<'a> Blocks<'a> {
    pub fn of(document: &'a mut Document) -> Self {
        Self { document, open: String::new(), is_item: false }
    }

    pub fn line(&mut self, mark: &str, text: &str) {
        if text.trim().is_empty() {
            return;
        }
        let whole = &mut self.document.text;
        if !whole.is_empty() {
            whole.push('\n');
        }
        whole.push_str(mark);
        whole.push_str(text);
    }

    fn close(&mut self) {
        let open = std::mem::take(&mut self.open);
        self.line(if self.is_item { ITEM_MARK } else { "" }, open.trim());
        self.is_item = false;
    }

    pub fn heading(&mut self, level: usize, text: &str) {
        let text = text.trim().to_owned();
        if text.is_empty() {
            return;
        }
        let at = self.document.text.len() + usize::from(!self.document.text.is_empty());
        let level = u8::try_from(level).unwrap_or(6);
        self.document.headings.push(Heading { at, level, text: text.clone() });
        self.line("", &text);
    }

    fn item(&mut self, text: &str) {
        self.close();
        self.is_item = true;
        self.open.push_str(text);
    }
}

/// The text of a list item, if the line begins one.
fn item(line: &str, may_number: bool) -> Option<&str> {
    let bullet = ["- ", "* ", "+ ", "• "].iter().find_map(|mark| line.strip_prefix(mark));
    if bullet.is_some() {
        return bullet.map(str::trim_start);
    }
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let is_number = (1..=3).contains(&digits) && (may_number || &line[..digits] == "1");
    let rest = line.get(digits..).filter(|_| is_number)?;
    rest.strip_prefix(". ").or_else(|| rest.strip_prefix(") ")).map(str::trim_start)
}

/// Blocks of plain text: paragraphs between blank lines, list items, headings that are underlined. With `has_code`,
/// lines of code are marked; without, what is indented may be anything.
pub fn text(source: &str, has_code: bool, document: &mut Document) {
    let mut blocks = Blocks::of(document);
    let mut paragraph: Vec<&str> = Vec::new();
    let mut styles = Vec::new();
    for line in source.lines().chain(std::iter::once("")) {
        let code = line.strip_prefix(CODE_MARK).filter(|_| has_code);
        if line.trim().is_empty() || code.is_some() {
            text_paragraph(&mut blocks, &paragraph, has_code, &mut styles);
            paragraph.clear();
            blocks.line(CODE_MARK, code.unwrap_or_default().trim_end());
        } else {
            paragraph.push(line.trim());
        }
    }
}

/// With `is_wrapped` only the width of the file breaks lines behind the first one, however short marks that were taken
/// away have left them. `styles`: how headings were underlined so far, the outermost first, and whether they had a line above them too.
fn text_paragraph(blocks: &mut Blocks<'_>, lines: &[&str], is_wrapped: bool, styles: &mut Vec<(Option<char>, bool)>) {
    let chars = |line: &str| line.chars().count();
    let longest = lines.iter().map(|line| chars(line)).max().unwrap_or(0);
    for (n, line) in lines.iter().copied().enumerate() {
        let is_underline = chars(line) >= 3 && line.chars().all(|c| matches!(c, '=' | '-' | '~' | '^' | '*' | '#'));
        if is_underline {
            let text = std::mem::take(&mut blocks.open);
            if !text.trim().is_empty() {
                let has_upper = n >= 2 && is_rule(lines[n - 2]);
                blocks.heading(level_of((line.chars().next(), has_upper), styles), &text);
            }
            continue;
        }
        if let Some(text) = item(line, blocks.open.is_empty() || blocks.is_item) {
            blocks.item(text);
            continue;
        }
        push_line(&mut blocks.open, line);
        // A title or an entry above a longer line, not a line that the file's width broke.
        let next = lines.get(n + 1).copied().unwrap_or_default();
        let begins_new = next.chars().next().is_some_and(|c| !c.is_lowercase());
        let is_short = chars(line) * SHORT_LINE_SHARE < longest && (n == 0 || !is_wrapped);
        if !blocks.is_item && is_short && begins_new && !is_rule(next) {
            blocks.close();
        }
    }
    blocks.close();
}

/// A heading that is underlined in a way that was not seen before is inside of all that were.
fn level_of(style: (Option<char>, bool), styles: &mut Vec<(Option<char>, bool)>) -> usize {
    let known = styles.iter().position(|one| *one == style);
    known.unwrap_or_else(|| {
        styles.push(style);
        styles.len() - 1
    }) + 1
}

fn is_rule(line: &str) -> bool {
    line.chars().all(|c| matches!(c, '=' | '-' | '~' | '^'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(read: fn(&str, &mut Document), source: &str) -> String {
        let mut document = Document::default();
        read(source, &mut document);
        for heading in &document.headings {
            assert!(document.text[heading.at..].starts_with(&heading.text));
        }
        document.text
    }

    #[test]
    fn a_line_that_lost_its_marks_goes_on_in_the_next() {
        let source = "It is possible to run parts of the migration inside of a transaction by using\natomic() or by passing it to\nRunPython.";
        let whole = source.replace('\n', " ");
        for (is_rst, expected) in [(true, whole.as_str()), (false, &whole.replace(" RunPython", "\nRunPython"))] {
            let mut document = Document::default();
            text(source, is_rst, &mut document);
            assert_eq!(document.text, expected);
        }
    }

    #[test]
    fn headings_of_a_text_nest_in_the_order_of_their_underlines() {
        let source = "=====\nTitle\n=====\n\nFirst\n=====\n\nInner\n-----\n\nText.\n\nSecond\n======\n\nText.";
        let mut document = Document::default();
        text(source, false, &mut document);
        let levels: Vec<(&str, u8)> = document.headings.iter().map(|one| (one.text.as_str(), one.level)).collect();
        assert_eq!(levels, [("Title", 1), ("First", 2), ("Inner", 3), ("Second", 2)]);
    }

    #[test]
    fn wrapped_text_is_joined_again_and_short_lines_stand_alone() {
        for (source, expected) in [
            (
                "A line that is broken by\nthe width of the file.\n\nAnother one.",
                "A line that is broken by the width of the file.\nAnother one.",
            ),
            (
                "Release notes\nThis version changes how long the program waits.",
                "Release notes\nThis version changes how long the program waits.",
            ),
            ("Title\n-----\nBody text.", "Title\nBody text."),
            ("Colours:\n* red\n* green and\n  blue", "Colours:\n- red\n- green and blue"),
            ("ゾウガメは\n長生きする。", "ゾウガメは長生きする。"),
        ] {
            assert_eq!(read(|source, document| text(source, false, document), source), expected, "{source}");
        }
    }
}
