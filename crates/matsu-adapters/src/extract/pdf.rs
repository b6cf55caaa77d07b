//! The text of a PDF, by a library that trusts its input more than we do: it runs on a thread of its own with a deep
//! stack, a panic is an answer like any other, and what takes too long is left behind. Only so many may be left behind
//! at a time; while they still run, no further PDF is read.

use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use matsu_core::ports::extractor::ExtractError;

/// Longest time for one file.
pub const TIME_MAX: Duration = Duration::from_secs(20);
const STACK_BYTES: usize = 64 * 1024 * 1024;
const RUNNING_MAX: usize = 4;

static RUNNING: AtomicUsize = AtomicUsize::new(0);

struct Running;

impl Drop for Running {
    fn drop(&mut self) {
        RUNNING.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The text of each page, in order.
///
/// # Errors
/// `Malformed`: the library gave up, broke or took too long.
pub fn pages(body: &[u8], time_max: Duration) -> Result<Vec<String>, ExtractError> {
    if !body.starts_with(b"%PDF-")
        && !body.get(..1024.min(body.len())).unwrap_or(body).windows(5).any(|w| w == b"%PDF-")
    {
        return Err(ExtractError::Malformed("not a PDF".to_owned()));
    }
    if RUNNING.fetch_add(1, Ordering::SeqCst) >= RUNNING_MAX {
        drop(Running);
        return Err(ExtractError::Malformed("too many PDFs are being read".to_owned()));
    }
    let running = Running;
    let (tell, told) = mpsc::channel();
    let body = body.to_vec();
    let work = move || {
        let _running = running;
        let read = std::panic::catch_unwind(AssertUnwindSafe(|| pdf_extract::extract_text_from_mem_by_pages(&body)));
        // Nobody listens any more if it took too long.
        let _ = tell.send(match read {
            Ok(Ok(pages)) => Ok(pages),
            Ok(Err(_)) => Err("the PDF cannot be read"),
            Err(_) => Err("the PDF broke the reader"),
        });
    };
    let thread = std::thread::Builder::new().name("pdf".to_owned()).stack_size(STACK_BYTES).spawn(work);
    thread.map_err(|error| ExtractError::Malformed(format!("no thread for the PDF: {}", error.kind())))?;
    match told.recv_timeout(time_max) {
        Ok(read) => read.map_err(|why| ExtractError::Malformed(why.to_owned())),
        Err(_) => Err(ExtractError::Malformed("the PDF took too long".to_owned())),
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
                if !paragraph.is_empty() {
                    paragraph.push(' ');
                }
                paragraph.push_str(line);
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
        assert!(pages(b"hello", TIME_MAX).is_err());
        assert!(pages(b"%PDF-1.4\n1 0 obj << /Type /Catalog >> endobj trailer << /Root 1 0 R >>", TIME_MAX).is_err());
    }
}
