//! Which files of a folder are documents. Hidden files, what builds leave behind, and links are not.

use std::io::Read;
use std::path::{Path, PathBuf};

const SKIPPED: [&str; 8] = ["node_modules", "target", "__pycache__", "venv", "dist", "build", "vendor", "CVS"];

/// How deep folders are walked; a deeper tree is no library of documents.
const DEPTH_MAX: usize = 32;

/// The media type by the file's ending; `None` for what is not read.
#[must_use]
pub fn media_type(path: &Path) -> Option<&'static str> {
    let ending = path.extension()?.to_str()?.to_ascii_lowercase();
    Some(match ending.as_str() {
        "md" | "markdown" => "text/markdown",
        "txt" | "text" | "rst" | "org" | "adoc" => "text/plain",
        "html" | "htm" | "xhtml" => "text/html",
        "pdf" => "application/pdf",
        _ => return None,
    })
}

/// A document file as found.
#[derive(Clone, Debug)]
pub struct Found {
    pub path: PathBuf,
    pub size: i64,
    pub changed_ns: i64,
}

/// A file, if it has no more than this many bytes.
pub fn read_whole(path: &Path, bytes_max: u64) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    std::fs::File::open(path).ok()?.take(bytes_max + 1).read_to_end(&mut body).ok()?;
    (body.len() as u64 <= bytes_max).then_some(body)
}

/// Calls `visit` for every document below `folder`; memory does not grow with their number. Folders that cannot be
/// read are passed over.
pub fn walk<E>(folder: &Path, visit: &mut dyn FnMut(Found) -> Result<(), E>) -> Result<(), E> {
    let mut open = Vec::new();
    open.extend(std::fs::read_dir(folder).ok());
    while let Some(entries) = open.last_mut() {
        let Some(entry) = entries.next() else {
            open.pop();
            continue;
        };
        let Ok(entry) = entry else { continue };
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let Ok(kind) = entry.file_type() else { continue };
        if name.starts_with('.') || (kind.is_dir() && SKIPPED.contains(&&*name)) {
            continue;
        }
        if kind.is_dir() && open.len() < DEPTH_MAX {
            open.extend(std::fs::read_dir(entry.path()).ok());
        } else if kind.is_file()
            && media_type(&entry.path()).is_some()
            && let Some(found) = stat(entry.path())
        {
            visit(found)?;
        }
    }
    Ok(())
}

/// Size and time of a file; `None` if it is gone or no plain file.
#[must_use]
pub fn stat(path: PathBuf) -> Option<Found> {
    use std::os::unix::fs::MetadataExt;
    let data = path.symlink_metadata().ok().filter(std::fs::Metadata::is_file)?;
    let changed_ns = data.mtime().saturating_mul(1_000_000_000).saturating_add(data.mtime_nsec());
    Some(Found { path, size: i64::try_from(data.len()).unwrap_or(i64::MAX), changed_ns })
}
