//! The blocks of Markdown and plain text, one a line: a line that only the width of the file has broken is joined again,
//! list items begin with `- `, rows of tables with `| `, lines of code with four spaces.

use matsu_core::research::document::{Document, Heading};
use matsu_core::research::ranking::candidates::{CODE_MARK, ITEM_MARK, ROW_MARK};
use matsu_core::research::sentences::push_line;

use crate::inline::{inline, is_link};

/// A line of plain text that is shorter than this share of its paragraph's longest ends a block by itself.
const SHORT_LINE_SHARE: usize = 2;

/// Writes blocks into a document.
struct Blocks<'a> {
    document: &'a mut Document,
    /// The lines of the paragraph or list item that is open.
    open: String,
    is_item: bool,
    /// Whether what is written must be freed of marks.
    has_marks: bool,
}

impl<'a> Blocks<'a> {
    fn of(document: &'a mut Document, has_marks: bool) -> Self {
        Self { document, open: String::new(), is_item: false, has_marks }
    }

    fn words(&self, text: &str) -> String {
        if self.has_marks { inline(text) } else { text.trim().to_owned() }
    }

    fn line(&mut self, mark: &str, text: &str) {
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
        let text = self.words(&open);
        let mark = match self.is_item {
            // An item that is nothing but a link is a row of a menu.
            true if self.has_marks && is_link(&open) => ROW_MARK,
            true => ITEM_MARK,
            false => "",
        };
        self.line(mark, &text);
        self.is_item = false;
    }

    fn heading(&mut self, level: usize, text: &str) {
        let text = self.words(text);
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

/// Blocks of Markdown, by the rules of `CommonMark` as far as they decide where a sentence ends.
pub fn markdown(source: &str, document: &mut Document) {
    let mut blocks = Blocks::of(document, true);
    let (mut fence, mut is_comment, mut was_blank, mut was_item) = (None, false, true, false);
    for line in source.lines() {
        let trimmed = line.trim();
        if let Some(mark) = fence {
            if trimmed.starts_with(mark) {
                fence = None;
            } else {
                blocks.line(CODE_MARK, line.trim_end());
            }
            continue;
        }
        let is_comment_line = is_comment || trimmed.starts_with("<!--");
        if is_comment_line {
            is_comment = !trimmed.contains("-->");
            blocks.close();
            continue;
        }
        fence = ["```", "~~~"].into_iter().find(|mark| trimmed.starts_with(mark));
        let is_indented = line.starts_with("    ") || line.starts_with('\t');
        if fence.is_some() || trimmed.is_empty() {
            blocks.close();
        } else if is_indented && was_blank && !was_item {
            blocks.line(CODE_MARK, line.trim_end());
            continue;
        } else {
            was_item = markdown_line(&mut blocks, trimmed, was_item && (is_indented || !was_blank));
        }
        was_blank = trimmed.is_empty();
    }
    blocks.close();
}

/// Whether the line belongs to a list item.
fn markdown_line(blocks: &mut Blocks<'_>, line: &str, was_item: bool) -> bool {
    let is_rule = |mark: char| line.chars().all(|c| c == mark);
    if !blocks.open.is_empty() && !blocks.is_item && (is_rule('=') || is_rule('-')) {
        let text = std::mem::take(&mut blocks.open);
        blocks.heading(if is_rule('=') { 1 } else { 2 }, &text);
        return false;
    }
    let level = line.bytes().take_while(|byte| *byte == b'#').count();
    if (1..=6).contains(&level) && (line.len() == level || line[level..].starts_with(' ')) {
        blocks.close();
        blocks.heading(level, line[level..].trim().trim_end_matches('#'));
        return false;
    }
    if line.chars().all(|c| matches!(c, '-' | '=' | '|' | ':' | ' ' | '*' | '_' | '+')) {
        blocks.close();
        return false;
    }
    if let Some(row) = line.strip_prefix('|') {
        blocks.close();
        let row = inline(row);
        blocks.line(ROW_MARK, &row);
        return false;
    }
    // A numbered item ends a paragraph only if it is the first: else "1990." at a line's beginning would.
    let may_number = blocks.open.is_empty() || blocks.is_item;
    if let Some(text) = item(line, may_number) {
        blocks.item(text);
        return true;
    }
    let text = line.trim_start_matches(['>', ' ']);
    push_line(&mut blocks.open, text);
    blocks.is_item || was_item
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
    let mut blocks = Blocks::of(document, false);
    let mut paragraph: Vec<&str> = Vec::new();
    for line in source.lines().chain(std::iter::once("")) {
        let code = line.strip_prefix(CODE_MARK).filter(|_| has_code);
        if line.trim().is_empty() || code.is_some() {
            text_paragraph(&mut blocks, &paragraph);
            paragraph.clear();
            blocks.line(CODE_MARK, code.unwrap_or_default().trim_end());
        } else {
            paragraph.push(line.trim());
        }
    }
}

fn text_paragraph(blocks: &mut Blocks<'_>, lines: &[&str]) {
    let chars = |line: &str| line.chars().count();
    let longest = lines.iter().map(|line| chars(line)).max().unwrap_or(0);
    for (n, line) in lines.iter().copied().enumerate() {
        let is_underline = chars(line) >= 3 && line.chars().all(|c| matches!(c, '=' | '-' | '~' | '^' | '*' | '#'));
        if is_underline {
            let text = std::mem::take(&mut blocks.open);
            blocks.heading(if line.starts_with('=') { 1 } else { 2 }, &text);
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
        if !blocks.is_item && chars(line) * SHORT_LINE_SHARE < longest && begins_new && !is_rule(next) {
            blocks.close();
        }
    }
    blocks.close();
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
    fn wrapped_markdown_is_joined_again() {
        for (source, expected) in [
            (
                "# Nodes\n\nThe node controller\nadds taints. Pods on the\nunreachable [node\nhere](x.md) go.\n\nNext.",
                "Nodes\nThe node controller adds taints. Pods on the unreachable node here go.\nNext.",
            ),
            ("东京是日本的\n首都，\n人口很多。", "东京是日本的首都，人口很多。"),
            ("It began in\n1990. It ended in\n12. May.", "It began in 1990. It ended in 12. May."),
            (
                "States:\n- ready to\n  take pods\n- lost\n\n1. first\n2. second",
                "States:\n- ready to take pods\n- lost\n- first\n- second",
            ),
            ("Title\n=====\ntext\n\n    code(1)\n\n```\nlet x;\n```", "Title\ntext\n        code(1)\n    let x;"),
            ("> quoted\n> words\n\n|a|b|\n|--|--|\n|1|2|", "quoted words\n| a|b|\n| 1|2|"),
            ("- [one page](a.md)\n- [two](b.md) says more", "| one page\n- two says more"),
            ("<!-- a\nnote -->\nThe A* search and 2 * 3.", "The A* search and 2 * 3."),
        ] {
            assert_eq!(read(markdown, source), expected, "{source}");
        }
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
