//! The blocks of Markdown, one a line. `pulldown-cmark` parses; what stands here says how each block is written down.

use matsu_core::research::document::Document;
use matsu_core::research::ranking::candidates::{CODE_MARK, ITEM_MARK, ROW_MARK};
use matsu_core::research::sentences::push_line;
use pulldown_cmark::{BrokenLink, CodeBlockKind, CowStr, Event, LinkType, Options, Parser, Tag, TagEnd};

use crate::paragraphs::Blocks;
use crate::rst;

/// HTML elements whose tags are left out of a line. Anything else in angle brackets is text, such as `Vec<String>`.
const ELEMENTS: [&str; 46] = [
    "a", "abbr", "b", "big", "br", "center", "cite", "code", "dd", "del", "details", "div", "dl", "dt", "em", "font",
    "h1", "h2", "h3", "h4", "hr", "i", "img", "input", "ins", "kbd", "li", "mark", "ol", "p", "picture", "pre", "q",
    "s", "samp", "small", "source", "span", "strong", "sub", "summary", "sup", "table", "td", "u", "ul",
];
/// HTML blocks that begin so are no text.
const NO_TEXT: [&str; 3] = ["<script", "<style", "<!--"];

/// Reads Markdown into a document: its text and its headings.
pub fn markdown(source: &str, document: &mut Document) {
    let source = without_containers(source);
    let mut writer = Writer::of(document);
    writer.read(&source);
    writer.close();
}

/// Some site generators mark a box by a line of colons with its kind. Those lines are no text.
fn without_containers(source: &str) -> std::borrow::Cow<'_, str> {
    if !source.contains(":::") {
        return source.into();
    }
    let line = |line| if str::trim_start(line).starts_with(":::") { "" } else { line };
    source.lines().map(line).collect::<Vec<_>>().join("\n").into()
}

/// Whether a fence is a directive whose lines are text, such as a note, and no code.
fn is_note(kind: &CodeBlockKind<'_>) -> bool {
    let CodeBlockKind::Fenced(info) = kind else { return false };
    let name = info.strip_prefix('{').and_then(|rest| rest.split_once('}')).map(|(name, _)| name);
    name.is_some_and(|name| rst::SPOKEN.contains(&name))
}

/// The lines of a note behind its settings.
fn note_text(source: &str) -> &str {
    let mut rest = source;
    while let Some((line, after)) = rest.split_once('\n').filter(|(line, _)| line.starts_with(':') && line.len() > 1) {
        if !line[1..].contains(':') {
            break;
        }
        rest = after;
    }
    rest
}

/// Whether a text is the name of a role, as in `{ref}`.
fn is_role(text: &str) -> bool {
    let name = text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap_or_default();
    !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || matches!(c, ':' | '-'))
}

struct Writer<'a> {
    blocks: Blocks<'a>,
    /// The text of the block that is open.
    open: String,
    /// A line of the source has ended: what follows is joined as its script is written.
    is_broken: bool,
    /// Of each list item that is open, whether nothing of it has been written yet.
    items: Vec<bool>,
    links: usize,
    /// Whether the open block has words outside of links.
    has_own_words: bool,
    is_code: bool,
    /// The source of the note that is open.
    note: Option<String>,
    is_in_note: bool,
    /// Whether the HTML block that is open is text; none is open: `None`.
    html_is_text: Option<bool>,
    cells: Option<Vec<String>>,
}

impl<'a> Writer<'a> {
    fn of(document: &'a mut Document) -> Self {
        Self {
            blocks: Blocks::of(document),
            open: String::new(),
            is_broken: false,
            items: Vec::new(),
            links: 0,
            has_own_words: false,
            is_code: false,
            note: None,
            is_in_note: false,
            html_is_text: None,
            cells: None,
        }
    }

    fn read(&mut self, source: &str) {
        let options = Options::ENABLE_TABLES
            | Options::ENABLE_FOOTNOTES
            | Options::ENABLE_STRIKETHROUGH
            | Options::ENABLE_TASKLISTS
            | Options::ENABLE_GFM
            | Options::ENABLE_HEADING_ATTRIBUTES;
        // A link to a name that is defined elsewhere is a link too. A single word in brackets stays as it is.
        let named = |link: BrokenLink<'_>| match link.link_type {
            LinkType::Shortcut | LinkType::ShortcutUnknown => None,
            _ => Some((CowStr::Borrowed(""), CowStr::Borrowed(""))),
        };
        for event in Parser::new_with_broken_link_callback(source, options, Some(named)) {
            self.event(event);
        }
    }

    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Text(text) if self.note.is_some() => self.note.get_or_insert_default().push_str(&text),
            Event::Start(tag) => self.start(&tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) if self.is_code => text.lines().for_each(|line| self.blocks.line(CODE_MARK, line)),
            Event::Text(text) => self.text(&text),
            Event::Code(text) => self.code(&text),
            Event::InlineHtml(tag) => self.tag(&tag),
            Event::Html(html) => self.html_line(&html),
            Event::SoftBreak | Event::HardBreak => self.is_broken = true,
            Event::Rule => self.close(),
            Event::FootnoteReference(_) | Event::TaskListMarker(_) | Event::InlineMath(_) | Event::DisplayMath(_) => {}
        }
    }

    fn start(&mut self, tag: &Tag<'_>) {
        match tag {
            Tag::Item => {
                self.close();
                self.items.push(true);
            }
            Tag::CodeBlock(kind) => {
                self.close();
                // A note inside a note is read as code: nothing may nest without end.
                if is_note(kind) && !self.is_in_note {
                    self.note = Some(String::new());
                } else {
                    self.is_code = true;
                }
            }
            Tag::TableHead | Tag::TableRow => self.cells = Some(Vec::new()),
            Tag::Link { .. } => self.links += 1,
            Tag::Emphasis | Tag::Strong | Tag::Strikethrough | Tag::Image { .. } | Tag::TableCell => {}
            _ => self.close(),
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Item => {
                self.close();
                self.items.pop();
            }
            TagEnd::CodeBlock => {
                self.is_code = false;
                if let Some(note) = self.note.take() {
                    self.is_in_note = true;
                    self.read(note_text(&note));
                    self.close();
                    self.is_in_note = false;
                }
            }
            TagEnd::HtmlBlock => {
                self.close();
                self.html_is_text = None;
            }
            TagEnd::Heading(level) => {
                let text = self.taken();
                self.blocks.heading(level as usize, &text);
            }
            TagEnd::TableCell => {
                let cell = self.taken();
                self.cells.get_or_insert_default().push(cell);
            }
            TagEnd::TableHead | TagEnd::TableRow => {
                let row = self.cells.take().unwrap_or_default().join(" | ");
                self.blocks.line(ROW_MARK, &row);
            }
            TagEnd::Link => self.links = self.links.saturating_sub(1),
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough | TagEnd::Image => {}
            _ => self.close(),
        }
    }

    fn text(&mut self, text: &str) {
        self.has_own_words |= self.links == 0 && text.contains(char::is_alphanumeric);
        if std::mem::take(&mut self.is_broken) {
            push_line(&mut self.open, text);
        } else {
            self.open.push_str(text);
        }
    }

    /// Code within a line. Behind the name of a role it is a reference: `{ref}` with words and their target.
    fn code(&mut self, text: &str) {
        let role = self.open.rfind('{').filter(|at| !self.is_broken && is_role(&self.open[*at..]));
        match role {
            Some(at) => {
                self.open.truncate(at);
                self.text(rst::words(text));
            }
            None => self.text(text),
        }
    }

    fn tag(&mut self, tag: &str) {
        let name = tag.trim_start_matches(['<', '/']);
        let name = name.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default().to_ascii_lowercase();
        if name == "br" {
            self.is_broken = true;
        } else if !tag.starts_with("<!--") && !ELEMENTS.contains(&name.as_str()) {
            self.text(tag);
        }
    }

    /// A line of an HTML block, without its tags.
    fn html_line(&mut self, html: &str) {
        let is_text = || !NO_TEXT.iter().any(|start| html.trim_start().starts_with(start));
        if !*self.html_is_text.get_or_insert_with(is_text) {
            return;
        }
        let mut rest = html.trim();
        self.is_broken = true;
        while let Some((before, after)) = rest.split_once('<') {
            if !before.is_empty() {
                self.text(before);
            }
            let Some((_, after)) = after.split_once('>') else { return };
            rest = after;
        }
        if !rest.is_empty() {
            self.text(rest);
        }
    }

    fn taken(&mut self) -> String {
        self.is_broken = false;
        self.has_own_words = false;
        std::mem::take(&mut self.open).replace('\u{ad}', "").split_whitespace().collect::<Vec<_>>().join(" ")
    }

    fn close(&mut self) {
        let is_menu = !self.has_own_words;
        let text = self.taken();
        if text.is_empty() {
            return;
        }
        let begins_item = self.items.last_mut().is_some_and(std::mem::take);
        let mark = match (begins_item, is_menu) {
            (false, _) => "",
            // An item that is nothing but a link is a row of a menu.
            (true, true) => ROW_MARK,
            (true, false) => ITEM_MARK,
        };
        self.blocks.line(mark, &text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_lines_and_marks_go() {
        for (source, expected) in [
            (
                "# Nodes\n\nThe node controller\nadds taints. Pods on the\nunreachable [node\nhere](x.md) go.\n\nNext.",
                "Nodes\nThe node controller adds taints. Pods on the unreachable node here go.\nNext.",
            ),
            ("东京是日本的\n首都，\n人口很多。", "东京是日本的首都，人口很多。"),
            ("It began in\n1990. It ended in\n12. May.", "It began in 1990. It ended in 12. May."),
            (
                "States:\n- ready to\n  take pods\n- lost\n\n1. first\n2. second\n\n   More of it.",
                "States:\n- ready to take pods\n- lost\n- first\n- second\nMore of it.",
            ),
            ("- outer\n  - inner\n- [x] done", "- outer\n- inner\n- done"),
            (
                "Title\n=====\ntext\n\n    code(1)\n\n```\nlet x;\n\n  y\n```",
                "Title\ntext\n    code(1)\n    let x;\n      y",
            ),
            ("> quoted\n> words\n\n|a|b|\n|--|--|\n|1|2|", "quoted words\n| a | b\n| 1 | 2"),
            ("> ```\n> The tower was built by code.\n> ```\n> Text.", "    The tower was built by code.\nText."),
            ("> [!NOTE]\n> Read this.", "Read this."),
            (":::tip\nRead this.\n:::", "Read this."),
            ("```{note}\n:class: x\nRead *this*\nfirst.\n```\nText.", "Read this first.\nText."),
            ("````{note}\n```{tip}\nx\n```\n````\n```{code} py\ny\n```", "    x\n    y"),
            ("- [one page](a.md)\n- [two](b.md) says more", "| one page\n- two says more"),
            ("<!-- a\nnote -->\nThe A* search and 2 * 3.", "The A* search and 2 * 3."),
            ("Some **bold** and *soft* [words](http://x) and `code_name`.", "Some bold and soft words and code_name."),
            (
                "See {ref}`the guide <x-y>` and {file}`/etc/pip.conf`, a {set} `x`.",
                "See the guide and /etc/pip.conf, a {set} x.",
            ),
            ("snake_case and __dunder__ and `a * b`", "snake_case and dunder and a * b"),
            ("![a picture](i.png) of [it][ref] at <https://x.org/>", "a picture of it at https://x.org/"),
            ("an [aside] stays, \\*as is\\*", "an [aside] stays, *as is*"),
            ("It ([wiki](https://x.org/Orvik_(island))), was ~~not~~ built.", "It (wiki), was not built."),
            (
                "It weighs 90&nbsp;tons &amp; was re&shy;built.[^1]\n\n[^1]: A note.",
                "It weighs 90 tons & was rebuilt.\nA note.",
            ),
            ("A <b>tall</b> tower.<br>It holds a Vec<String>.", "A tall tower. It holds a Vec<String>."),
            (
                "<p align=\"center\">\nA <b>tall</b> tower.\n</p>\n\n<style>\nb { }\n</style>\n\nEnd.",
                "A tall tower.\nEnd.",
            ),
            ("# The `send` call {#send}\n\nIt sends.", "The send call\nIt sends."),
        ] {
            let mut document = Document::default();
            markdown(source, &mut document);
            assert_eq!(document.text, expected, "{source}");
            for heading in &document.headings {
                assert!(document.text[heading.at..].starts_with(&heading.text), "{source}");
            }
        }
    }
}
