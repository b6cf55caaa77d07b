//! A page as a list of text blocks in reading order, each under its chain of enclosing elements.
//!
//! Everything that decides about text looks at these two flat lists; the tree itself is walked once, with a stack of
//! our own, and no deeper than `DEPTH_MAX`: what is nested deeper counts as lying at that depth.

use dom_query::{Document, NodeRef};
use matsu_core::research::sentences::joins_without_space;

use crate::marks::{Marks, marks_of};

/// Nesting beyond this adds no meaning to a page, and costs the extractors quadratic time.
pub const DEPTH_MAX: usize = 120;

/// What kind of element holds a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Paragraph,
    Heading(u8),
    Item,
    Row,
    Quote,
    Code,
    Caption,
    Term,
    Control,
    Other,
}

/// An element that encloses blocks.
#[derive(Clone, Debug)]
pub struct Scope {
    pub parent: Option<usize>,
    pub tag: Tag,
    pub marks: Marks,
    /// Equal for elements that look alike: same tag, same class.
    pub likeness: u64,
    pub depth: usize,
    pub is_hidden: bool,
}

/// The enclosing elements that mean something by themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tag {
    Article,
    Main,
    Aside,
    Nav,
    Footer,
    Header,
    Form,
    Section,
    List,
    Table,
    Figure,
    Details,
    Dialog,
    Other,
}

pub const TAGS: usize = 14;

/// A run of text between two block borders.
#[derive(Clone, Debug)]
pub struct Block {
    /// White space collapsed, never empty.
    pub text: String,
    pub kind: Kind,
    pub scope: usize,
    pub link_chars: usize,
    pub links: usize,
    pub bold_chars: usize,
    /// Where the text has a space for the end of a line between two Chinese or Japanese characters, which are written
    /// without one.
    pub line_ends: Vec<usize>,
}

/// A page, flattened.
#[derive(Clone, Debug, Default)]
pub struct Blocks {
    pub blocks: Vec<Block>,
    pub scopes: Vec<Scope>,
    pub depth: usize,
}

impl Blocks {
    pub fn of(document: &Document) -> Self {
        let mut walk = Walk::default();
        if let Some(body) = document.body() {
            walk.run(&body);
        }
        walk.finish()
    }

    /// The scope and those around it, inmost first.
    pub fn chain(&self, scope: usize) -> impl Iterator<Item = &Scope> {
        self.chain_ids(scope).map(|id| &self.scopes[id])
    }

    /// What a block's element and the one around it look like: equal for blocks that a page makes from one template.
    pub fn template(&self, block: &Block) -> (u64, u64) {
        let scope = &self.scopes[block.scope];
        (scope.likeness, scope.parent.map_or(0, |id| self.scopes[id].likeness))
    }

    /// For each scope, the sum over all blocks in it. `of_blocks` has one number for each block.
    pub fn sums(&self, of_blocks: impl Iterator<Item = f32>) -> Vec<f32> {
        let mut sums = vec![0.0; self.scopes.len()];
        for (block, value) in self.blocks.iter().zip(of_blocks) {
            sums[block.scope] += value;
        }
        // A scope is opened after the one around it, so one pass from the back adds up the tree.
        for id in (0..sums.len()).rev() {
            if let Some(parent) = self.scopes[id].parent {
                sums[parent] += sums[id];
            }
        }
        sums
    }

    pub fn chain_ids(&self, scope: usize) -> impl Iterator<Item = usize> {
        std::iter::successors(Some(scope), |id| self.scopes[*id].parent)
    }
}

enum TreeStep<'a> {
    Enter(NodeRef<'a>),
    Leave { was: Frame, is_block: bool, is_apart: bool },
}

/// What holds at one place of the tree.
#[derive(Clone, Copy, Default)]
struct Frame {
    scope: Option<usize>,
    kind: Option<Kind>,
    in_link: bool,
    in_bold: bool,
    depth: usize,
}

#[derive(Default)]
struct Walk {
    out: Blocks,
    at: Frame,
    text: String,
    link_chars: usize,
    bold_chars: usize,
    links: usize,
    line_ends: Vec<usize>,
    /// The space at the end of the text stands for the end of a line.
    is_after_line: bool,
}

impl Walk {
    fn run(&mut self, body: &NodeRef<'_>) {
        let mut steps = vec![TreeStep::Enter(*body)];
        while let Some(step) = steps.pop() {
            match step {
                TreeStep::Enter(node) if node.is_text() => self.take_text(&node.text()),
                TreeStep::Enter(node) => self.enter(node, &mut steps),
                TreeStep::Leave { was, is_block, is_apart } => {
                    if is_block {
                        self.flush();
                    }
                    self.at = was;
                    if is_apart {
                        self.take_text(" ");
                    }
                }
            }
        }
        self.flush();
    }

    fn enter<'a>(&mut self, node: NodeRef<'a>, steps: &mut Vec<TreeStep<'a>>) {
        let Some(name) = node.node_name() else { return };
        let name: &str = &name;
        if is_never_text(name) {
            return;
        }
        if name == "a" && is_permalink(&node) {
            return;
        }
        let is_apart = name == "label" || (self.at.kind == Some(Kind::Code) && is_line_of_code(&node, name));
        if is_apart || matches!(name, "br" | "hr" | "td" | "th") {
            self.take_text(" ");
        }
        let was = self.at;
        let is_block = is_block(name);
        if is_block {
            self.flush();
        }
        self.at.depth += 1;
        self.out.depth = self.out.depth.max(self.at.depth);
        if is_block && self.at.depth <= DEPTH_MAX {
            self.at.scope = Some(self.open_scope(&node, name));
            self.at.kind = kind_of(name).or(self.at.kind.filter(|_| !resets_kind(name)));
        } else if matches!(name, "button" | "label") {
            self.at.kind = Some(Kind::Control);
        }
        if name == "a" {
            self.links += usize::from(!self.at.in_link);
            self.at.in_link = true;
        }
        self.at.in_bold |= matches!(name, "b" | "strong");
        steps.push(TreeStep::Leave { was, is_block, is_apart });
        steps.extend(node.children_it(true).map(TreeStep::Enter));
    }

    fn open_scope(&mut self, node: &NodeRef<'_>, name: &str) -> usize {
        let mut names = String::new();
        let mut is_hidden = node.has_attr("hidden") || node.attr("aria-hidden").is_some_and(|v| &*v == "true");
        for key in ["class", "id", "role", "itemprop", "data-testid", "data-component"] {
            if let Some(value) = node.attr(key) {
                names.push_str(&value);
                names.push(' ');
            }
        }
        if let Some(style) = node.attr("style") {
            let style = style.to_ascii_lowercase().replace(' ', "");
            is_hidden |= style.contains("display:none") || style.contains("visibility:hidden");
        }
        let class = node.class().unwrap_or_default();
        self.out.scopes.push(Scope {
            parent: self.at.scope,
            tag: tag_of(name),
            marks: marks_of(&names),
            likeness: likeness(name, &class),
            depth: self.at.depth,
            is_hidden: is_hidden || self.at.scope.is_some_and(|id| self.out.scopes[id].is_hidden),
        });
        self.out.scopes.len() - 1
    }

    fn take_text(&mut self, text: &str) {
        let before = self.text.len();
        // A link to the source code stands at the other end of its line.
        if self.at.in_link && text == "[source]" && !self.text.is_empty() && !self.text.ends_with(' ') {
            self.text.push(' ');
        }
        for c in text.chars() {
            if is_unseen(c) {
                continue;
            }
            if c.is_whitespace() {
                if !self.text.is_empty() && !self.text.ends_with(' ') {
                    self.text.push(' ');
                    self.is_after_line = false;
                }
                self.is_after_line |= c == '\n';
            } else {
                self.note_line_end(c);
                self.text.push(c);
            }
        }
        let added = self.text.len() - before;
        self.link_chars += if self.at.in_link { added } else { 0 };
        self.bold_chars += if self.at.in_bold { added } else { 0 };
    }

    fn note_line_end(&mut self, next: char) {
        let Some(before) = self.text.strip_suffix(' ').filter(|_| self.is_after_line) else { return };
        if joins_without_space(next) && before.ends_with(joins_without_space) {
            self.line_ends.push(before.len());
        }
    }

    fn flush(&mut self) {
        let mut text = std::mem::take(&mut self.text);
        text.truncate(text.trim_end().len());
        let (link_chars, bold_chars) = (self.link_chars.min(text.len()), self.bold_chars.min(text.len()));
        let links = self.links;
        (self.link_chars, self.bold_chars, self.links) = (0, 0, 0);
        let line_ends = std::mem::take(&mut self.line_ends);
        if text.is_empty() {
            return;
        }
        // Text straight in the body has the body as its scope, which is always open.
        let Some(scope) = self.at.scope else { return };
        let kind = self.at.kind.unwrap_or(Kind::Other);
        self.out.blocks.push(Block { text, kind, scope, link_chars, links, bold_chars, line_ends });
    }

    fn finish(self) -> Blocks {
        self.out
    }
}

/// Invisible characters: they can hide words from people or from filters, and carry no text.
fn is_unseen(c: char) -> bool {
    matches!(c, '\u{0}'..='\u{8}' | '\u{e}'..='\u{1f}' | '\u{7f}' | '\u{ad}' | '\u{200b}' | '\u{200e}' | '\u{200f}'
        | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}

/// A sign beside a heading that links to the heading: nothing to read.
fn is_permalink(link: &NodeRef<'_>) -> bool {
    link.attr("href").is_some_and(|href| href.contains('#'))
        && matches!(link.text().trim_matches(|c| is_unseen(c) || c.is_whitespace()), "" | "¶" | "#" | "§" | "🔗")
}

/// A line of highlighted code that is not ended by a line break but by the style of its element.
fn is_line_of_code(node: &NodeRef<'_>, name: &str) -> bool {
    name == "code"
        || (name == "span"
            && node.class().is_some_and(|class| {
                class
                    .split(' ')
                    .any(|word| matches!(word, "line" | "code-line" | "token-line" | "view-line" | "cm-line"))
            }))
}

fn likeness(name: &str, class: &str) -> u64 {
    use std::hash::{Hash, Hasher};
    let mut hasher = std::hash::DefaultHasher::new();
    (name, class).hash(&mut hasher);
    hasher.finish()
}

fn is_never_text(name: &str) -> bool {
    matches!(
        name,
        "script"
            | "style"
            | "noscript"
            | "template"
            | "svg"
            | "math"
            | "iframe"
            | "object"
            | "embed"
            | "canvas"
            | "video"
            | "audio"
            | "select"
            | "textarea"
            | "input"
            | "img"
            | "head"
            | "datalist"
            | "picture"
            | "map"
            | "title"
    )
}

fn is_block(name: &str) -> bool {
    matches!(
        name,
        "body"
            | "div"
            | "p"
            | "section"
            | "article"
            | "main"
            | "aside"
            | "nav"
            | "header"
            | "footer"
            | "ul"
            | "ol"
            | "li"
            | "dl"
            | "dt"
            | "dd"
            | "table"
            | "thead"
            | "tbody"
            | "tfoot"
            | "tr"
            | "caption"
            | "form"
            | "fieldset"
            | "legend"
            | "figure"
            | "figcaption"
            | "blockquote"
            | "pre"
            | "h1"
            | "h2"
            | "h3"
            | "h4"
            | "h5"
            | "h6"
            | "address"
            | "details"
            | "summary"
            | "dialog"
            | "hr"
            | "center"
            | "menu"
            | "hgroup"
            | "button"
    ) || name.contains('-')
}

fn resets_kind(name: &str) -> bool {
    matches!(name, "article" | "section" | "main" | "aside" | "nav" | "table" | "ul" | "ol")
}

fn kind_of(name: &str) -> Option<Kind> {
    Some(match name {
        "p" => Kind::Paragraph,
        "h1" => Kind::Heading(1),
        "h2" => Kind::Heading(2),
        "h3" => Kind::Heading(3),
        "h4" => Kind::Heading(4),
        "h5" => Kind::Heading(5),
        "h6" => Kind::Heading(6),
        "li" => Kind::Item,
        "tr" => Kind::Row,
        "blockquote" => Kind::Quote,
        "pre" => Kind::Code,
        "figcaption" | "caption" => Kind::Caption,
        "dt" | "dd" => Kind::Term,
        "button" | "legend" => Kind::Control,
        _ => return None,
    })
}

fn tag_of(name: &str) -> Tag {
    match name {
        "article" => Tag::Article,
        "main" => Tag::Main,
        "aside" => Tag::Aside,
        "nav" | "menu" => Tag::Nav,
        "footer" => Tag::Footer,
        "header" => Tag::Header,
        "form" | "fieldset" => Tag::Form,
        "section" => Tag::Section,
        "ul" | "ol" | "dl" => Tag::List,
        "table" => Tag::Table,
        "figure" => Tag::Figure,
        "details" => Tag::Details,
        "dialog" => Tag::Dialog,
        _ => Tag::Other,
    }
}
