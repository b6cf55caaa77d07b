//! The text of a PDF, by a library that trusts its input more than we do: it follows a form that draws itself until the
//! stack ends, and inflates what it is given. A panic is an answer like any other; what else it does is bounded by the
//! process that calls this.

use std::panic::AssertUnwindSafe;

use matsu_core::ports::extractor::ExtractError;
use matsu_core::research::sentences::push_line;

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

/// Pages as one text. Lines that the page's width broke are joined again, words broken by a hyphen too.
#[must_use]
pub fn join(pages: &[String]) -> String {
    let mut text = String::new();
    for page in pages {
        let mut paragraph = String::new();
        for line in page.lines().map(str::trim) {
            if line.is_empty() {
                close(&mut text, &mut paragraph);
            } else if paragraph.ends_with('-') && line.starts_with(char::is_lowercase) {
                paragraph.pop();
                paragraph.push_str(line);
            } else {
                push_line(&mut paragraph, line);
            }
        }
        close(&mut text, &mut paragraph);
    }
    text
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
    fn what_is_no_pdf_is_refused_and_a_broken_one_is_an_answer() {
        assert!(pages(b"hello").is_err());
        assert!(pages(b"%PDF-1.4\n1 0 obj << /Type /Catalog >> endobj trailer << /Root 1 0 R >>").is_err());
    }
}
