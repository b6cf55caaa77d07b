//! A document: what an extractor makes of a page.

use serde::{Deserialize, Serialize};

use super::ranking::candidates::{ITEM_MARK, ROW_MARK};

/// Main text with its headings; nothing of the page's frame.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Document {
    pub title: String,
    /// Paragraphs are divided by `\n`. Headings are lines of the text, too.
    pub text: String,
    /// In the order of the text.
    pub headings: Vec<Heading>,
    /// BCP 47, as the page declares it or as it reads.
    pub language: Option<String>,
    pub year: Option<i32>,
    pub authors: Vec<String>,
    pub doi: Option<String>,
    /// The address the page gives itself, if it does.
    pub declared_url: Option<String>,
    /// What a reader knows of its lines and does not write into the text, in the order of the text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<LineMark>,
}

/// Something about the text at one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineMark {
    /// Byte offset in the text.
    pub at: usize,
    pub kind: MarkKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MarkKind {
    /// A list item begins here.
    Item,
    /// A row of a table begins here.
    Row,
    /// Here is a space where only a line of the source ended, between two Chinese or Japanese characters.
    LineEnd,
}

impl Document {
    /// The document with its marks in the text, as passages are made from it. The text of a page that has none is as it
    /// is in the page, which is how extraction is measured.
    #[must_use]
    pub fn with_marks(mut self) -> Self {
        let mut text = String::with_capacity(self.text.len());
        let mut headings = self.headings.iter_mut().peekable();
        let mut copied_to = 0;
        for mark in std::mem::take(&mut self.marks) {
            let Some(piece) = self.text.get(copied_to..mark.at) else { continue };
            // A heading keeps its distance to what was copied before it.
            while let Some(heading) = headings.next_if(|heading| heading.at < mark.at) {
                heading.at = text.len() + heading.at.saturating_sub(copied_to);
            }
            text.push_str(piece);
            copied_to = mark.at;
            match mark.kind {
                MarkKind::Item => text.push_str(ITEM_MARK),
                MarkKind::Row => text.push_str(ROW_MARK),
                MarkKind::LineEnd => copied_to += usize::from(self.text[mark.at..].starts_with(' ')),
            }
        }
        for heading in headings {
            heading.at = text.len() + heading.at.saturating_sub(copied_to);
        }
        text.push_str(self.text.get(copied_to..).unwrap_or_default());
        self.text = text;
        self
    }
}

/// A heading inside the text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heading {
    /// Byte offset of its first character in the text.
    pub at: usize,
    /// 1 is the outermost.
    pub level: u8,
    pub text: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_written_into_the_text_and_headings_move_with_it() {
        let text = "Title\nStates:\nready\nName Value\nNotes\n東京は 首都";
        let at = |part: &str| text.find(part).unwrap();
        let mark = |at, kind| LineMark { at, kind };
        let document = Document {
            text: text.to_owned(),
            headings: ["Title", "Notes"].map(|one| Heading { at: at(one), level: 1, text: one.to_owned() }).to_vec(),
            marks: vec![
                mark(at("ready"), MarkKind::Item),
                mark(at("Name"), MarkKind::Row),
                mark(at(" 首都"), MarkKind::LineEnd),
            ],
            ..Document::default()
        };
        let marked = document.with_marks();
        assert_eq!(marked.text, "Title\nStates:\n- ready\n| Name Value\nNotes\n東京は首都");
        assert!(marked.headings.iter().all(|heading| marked.text[heading.at..].starts_with(&heading.text)));
        assert_eq!(marked.clone().with_marks(), marked, "once");
    }
}
