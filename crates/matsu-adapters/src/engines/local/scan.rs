//! Brings the index up to date with folders: what is gone goes, what is new or changed is read. One scan runs at a
//! time; memory is bounded by one batch, whatever the folders hold.

use std::path::{Path, PathBuf};

use matsu_core::ports::extractor::ExtractError;
use matsu_core::research::document::Document;
use tokio::runtime::Handle;

use super::folders::{self, Found};
use super::index::{Index, Part};
use crate::reading::{self, DocumentReader};

/// A text is indexed in parts of about this size, so that a book is found by its chapter.
const PART_BYTES: usize = 128 * 1024;
/// What must be read whole is not read beyond this size.
const WHOLE_BYTES_MAX: i64 = 32 * 1024 * 1024;
/// Plain text is read in pieces, and up to here.
const TEXT_BYTES_MAX: i64 = 512 * 1024 * 1024;
/// A piece whose last line makes it longer than this is the last.
const LINE_BYTES_MAX: usize = 1024 * 1024;
/// A batch is written when it has this many bytes or parts.
const BATCH_BYTES: usize = 8 * 1024 * 1024;
const BATCH_PARTS: usize = 256;

/// Why a file is not read that is there.
const CANNOT_BE_OPENED: &str = "it cannot be opened";

/// What a scan did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scanned {
    pub seen: usize,
    pub read: usize,
    pub removed: usize,
}

/// Whether a text begins with the mark of UTF-16.
fn is_wide(text: &[u8]) -> bool {
    text.starts_with(&[0xff, 0xfe]) || text.starts_with(&[0xfe, 0xff])
}

/// One pass over folders.
pub struct Scan<'a> {
    index: &'a Index,
    reader: &'a dyn DocumentReader,
    runtime: Handle,
    batch: Vec<Part>,
    batch_bytes: usize,
    done: Scanned,
}

impl<'a> Scan<'a> {
    pub fn new(index: &'a Index, reader: &'a dyn DocumentReader, runtime: Handle) -> Self {
        Self { index, reader, runtime, batch: Vec::new(), batch_bytes: 0, done: Scanned::default() }
    }

    pub fn run(mut self, folders: &[PathBuf]) -> rusqlite::Result<Scanned> {
        let _one_at_a_time = self.index.begin_scan();
        for folder in folders {
            let name = folder.to_string_lossy().into_owned();
            self.done.removed += self.index.remove_gone(folder)?;
            folders::walk(folder, &mut |found| self.visit(folder, &found))?;
            self.write()?;
            self.index.note_read(&name)?;
        }
        if self.done.read + self.done.removed > 0 {
            self.index.refresh_common()?;
        }
        Ok(self.done)
    }

    fn visit(&mut self, folder: &Path, found: &Found) -> rusqlite::Result<()> {
        self.done.seen += 1;
        if self.index.is_current(found)? {
            return Ok(());
        }
        self.done.read += 1;
        let Some(media_type) = folders::media_type(&found.path) else { return Ok(()) };
        match media_type {
            "text/plain" => self.read_in_pieces(folder, found),
            _ => self.read_whole(folder, found, media_type),
        }
    }

    fn read_whole(&mut self, folder: &Path, found: &Found, media_type: &str) -> rusqlite::Result<()> {
        // Bounded twice: it may have grown since it was looked at.
        let bytes_max = u64::try_from(WHOLE_BYTES_MAX).unwrap_or(0);
        let (document, unread) = if found.size > WHOLE_BYTES_MAX {
            (Document::default(), Some(format!("larger than {} MB", WHOLE_BYTES_MAX >> 20)))
        } else {
            let Some(body) = folders::read_whole(folder, &found.path, bytes_max) else {
                return self.index.note_unread(&found.path, CANNOT_BE_OPENED);
            };
            let Some(read) = self.document(found, body, media_type) else { return Ok(()) };
            read
        };
        let domain = super::domain_of_document(folder, document.declared_url.as_deref());
        let title = if document.title.is_empty() { file_title(&found.path) } else { document.title };
        for (number, text) in pieces(&document.text).enumerate() {
            let part = Part::new(found, number, &title, text, &domain, document.year);
            self.add(part.unread(unread.clone()))?;
        }
        Ok(())
    }

    fn read_in_pieces(&mut self, folder: &Path, found: &Found) -> rusqlite::Result<()> {
        use std::io::{BufRead, Read};
        let domain = super::domain_of_folder(folder);
        let title = file_title(&found.path);
        let Ok(file) = folders::open_inside(folder, &found.path) else {
            return self.index.note_unread(&found.path, CANNOT_BE_OPENED);
        };
        let bytes_max = u64::try_from(TEXT_BYTES_MAX).unwrap_or(u64::MAX);
        let mut lines = std::io::BufReader::new(file.take(bytes_max));
        if lines.fill_buf().is_ok_and(is_wide) {
            // Its first two bytes say how the rest is written, and pieces would not have them.
            return self.read_whole(folder, found, "text/plain");
        }
        let mut number = 0;
        loop {
            let mut piece = Vec::with_capacity(PART_BYTES);
            // A piece ends at a line break. What goes on without one is no text that people wrote.
            let mut limited = lines.by_ref().take(PART_BYTES as u64);
            let read = limited.read_to_end(&mut piece).unwrap_or(0);
            if read == PART_BYTES {
                let _ = lines.by_ref().take((LINE_BYTES_MAX - PART_BYTES) as u64).read_until(b'\n', &mut piece);
            }
            if read == 0 && number > 0 {
                return Ok(());
            }
            let is_cut_line = piece.len() == LINE_BYTES_MAX && piece.last() != Some(&b'\n');
            let Some((Document { text, .. }, unread)) = self.document(found, piece, "text/plain") else {
                return Ok(());
            };
            let is_unread = unread.is_some();
            // A text that turns into something else is found by what it has before.
            let unread = unread.filter(|_| number == 0);
            self.add(Part::new(found, number, &title, &text, &domain, None).unread(unread))?;
            if is_unread {
                return Ok(());
            }
            number += 1;
            if is_cut_line {
                tracing::warn!(path = %found.path.display(), "a text is indexed up to a line that is too long");
            }
            if is_cut_line || read < PART_BYTES {
                return Ok(());
            }
        }
    }

    /// A file that cannot be read stands in the index with its name alone and the reason, so that it is not tried at
    /// every search. `None`: there is no reader; it is tried again.
    fn document(&self, found: &Found, body: Vec<u8>, media_type: &str) -> Option<(Document, Option<String>)> {
        if body.is_empty() {
            return Some((Document::default(), None));
        }
        let path = found.path.display();
        match self.runtime.block_on(reading::document(self.reader, body, media_type)) {
            Ok(document) => Some((document, None)),
            Err(ExtractError::Unavailable(why)) => {
                tracing::warn!(%path, why, "a document is not indexed this time");
                None
            }
            Err(error) => {
                tracing::debug!(%path, %error, "a document is indexed by its name alone");
                Some((Document::default(), Some(error.to_string())))
            }
        }
    }

    fn add(&mut self, part: Part) -> rusqlite::Result<()> {
        self.batch_bytes += part.text.len();
        self.batch.push(part);
        if self.batch_bytes >= BATCH_BYTES || self.batch.len() >= BATCH_PARTS {
            self.write()?;
        }
        Ok(())
    }

    fn write(&mut self) -> rusqlite::Result<()> {
        let batch = std::mem::take(&mut self.batch);
        self.batch_bytes = 0;
        if batch.is_empty() { Ok(()) } else { self.index.write(&batch) }
    }
}

/// A text in parts that end at a line break where there is one; an empty text is one empty part.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        if text.len() <= PART_BYTES {
            rest = None;
            return Some(text);
        }
        let mut end = PART_BYTES;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let end = text[..end].rfind('\n').map_or(end, |at| at + 1);
        rest = Some(&text[end..]);
        Some(&text[..end])
    })
}

fn file_title(path: &Path) -> String {
    path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default()
}
