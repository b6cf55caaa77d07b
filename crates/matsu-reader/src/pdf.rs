//! The text of a PDF, by a library that trusts its input more than we do: it follows a form that draws itself until the
//! stack ends, and inflates what it is given. A panic is an answer like any other; what else it does is bounded by the
//! process that calls this.

use std::panic::AssertUnwindSafe;

use matsu_core::ports::extractor::ExtractError;
use matsu_core::research::ranking::candidates::ITEM_MARK;
use matsu_core::research::sentences::{joins_without_space, push_line};

/// What items of a list begin with.
const BULLETS: [&str; 9] = ["• ", "•", "▪ ", "◦ ", "‣ ", "● ", "■ ", "– ", "- "];

/// The text of each page, in order.
///
/// # Errors
/// `Malformed`: the library gave up or broke.
pub fn pages(body: &[u8]) -> Result<Vec<String>, ExtractError> {
    let malformed = |why: &str| ExtractError::Malformed(why.to_owned());
    if !body.starts_with(b"%PDF-")
        && !body.get(..1024.min(body.len())).unwrap_or(body).windows(5).any(|w| w == b"%PDF-")
    {
        return Err(malformed("not a PDF"));
    }
    match std::panic::catch_unwind(AssertUnwindSafe(|| pdf_extract::extract_text_from_mem_by_pages(body))) {
        Ok(Ok(pages)) => Ok(pages),
        Ok(Err(_)) => Err(malformed("the PDF cannot be read")),
        Err(_) => Err(malformed("the reader failed on this PDF")),
    }
}

/// Pages as one text. Lines that the page's width broke are joined again, words broken by a hyphen too, and a sentence
/// that a page's end broke goes on. Items of a list are blocks of their own.
#[must_use]
pub fn join(pages: &[String]) -> String {
    let mut text = String::new();
    let mut paragraph = String::new();
    for page in pages {
        let mut is_first = true;
        for line in page.lines().map(str::trim) {
            if line.is_empty() {
                if !is_first {
                    close(&mut text, &mut paragraph);
                }
                continue;
            }
            if is_first && !goes_on(&paragraph, line) {
                close(&mut text, &mut paragraph);
            }
            is_first = false;
            if let Some(item) = BULLETS.iter().find_map(|bullet| line.strip_prefix(bullet)) {
                close(&mut text, &mut paragraph);
                paragraph.push_str(ITEM_MARK);
                paragraph.push_str(item.trim_start());
            } else if paragraph.ends_with('-') && line.starts_with(char::is_lowercase) {
                paragraph.pop();
                paragraph.push_str(line);
            } else {
                push_line(&mut paragraph, line);
            }
        }
        // The number of a page stands alone below its text, and nothing goes on with it.
        if paragraph.chars().all(|c| c.is_ascii_digit()) {
            close(&mut text, &mut paragraph);
        }
    }
    close(&mut text, &mut paragraph);
    text
}

/// Whether the first line of a page goes on with the paragraph at the end of the page before: that one has no end, and the
/// line no beginning.
fn goes_on(paragraph: &str, line: &str) -> bool {
    let is_open =
        !paragraph.ends_with(['.', '!', '?', ':', ';', '。', '！', '？', '：', '；', '"', '”', '」', ')', '）']);
    let is_tight = paragraph.ends_with(joins_without_space) && line.starts_with(joins_without_space);
    is_open && (line.starts_with(char::is_lowercase) || is_tight)
}

fn close(text: &mut String, paragraph: &mut String) {
    if paragraph.is_empty() {
        return;
    }
    if !text.is_empty() {
        text.push('\n');
    }
    text.push_str(paragraph);
    paragraph.clear();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_page_become_paragraphs() {
        let pages = ["First line of a para-\ngraph goes on\nhere.\n\nSecond.".to_owned(), "Third.".to_owned()];
        assert_eq!(join(&pages), "First line of a paragraph goes on here.\nSecond.\nThird.");
    }

    #[test]
    fn a_sentence_goes_on_behind_a_page_and_items_are_blocks() {
        for (pages, expected) in [
            (
                ["A sentence that the end of the page", "has broken goes on.\nAnd more."],
                "A sentence that the end of the page has broken goes on. And more.",
            ),
            (["A word is bro-", "ken here."], "A word is broken here."),
            (["It ends here.", "another page begins"], "It ends here.\nanother page begins"),
            (["No end here", "A New Chapter"], "No end here\nA New Chapter"),
            (["東京は日本の", "首都である。"], "東京は日本の首都である。"),
            (["The text ends\n\n12", "on the next page."], "The text ends\n12\non the next page."),
            (["States:\n• ready to take\npods\n• lost", ""], "States:\n- ready to take pods\n- lost"),
        ] {
            assert_eq!(join(&pages.map(str::to_owned)), expected);
        }
    }

    #[test]
    fn what_is_no_pdf_is_refused_and_a_broken_one_is_an_answer() {
        assert!(pages(b"hello").is_err());
        assert!(pages(b"%PDF-1.4\n1 0 obj << /Type /Catalog >> endobj trailer << /Root 1 0 R >>").is_err());
    }
}
