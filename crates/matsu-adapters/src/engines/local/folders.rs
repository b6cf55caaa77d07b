//! Which files of a folder are documents. Hidden files, what builds leave behind, and links are not.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, ResolveFlags};

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

/// Opens a plain file below a folder. No link on the way is followed, also none that a run which may write there put in
/// place of a file or a folder after it was looked at.
///
/// # Errors
/// There is a link on the way, it is no plain file, or it cannot be read.
pub fn open_inside(folder: &Path, path: &Path) -> io::Result<File> {
    let below = path.strip_prefix(folder).map_err(io::Error::other)?;
    let folder = rustix::fs::open(folder, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    // Not blocking: opening a pipe would wait for a writer.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::BENEATH;
    let file = File::from(rustix::fs::openat2(folder, below, flags, Mode::empty(), resolve)?);
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("not a plain file")) }
}

/// A file below a folder, if it has no more than this many bytes.
pub fn read_whole(folder: &Path, path: &Path, bytes_max: u64) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    open_inside(folder, path).ok()?.take(bytes_max + 1).read_to_end(&mut body).ok()?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_link_leads_out_and_no_pipe_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        for name in ["in/sub", "out"] {
            std::fs::create_dir_all(path(name)).unwrap();
        }
        std::fs::write(path("in/sub/a.txt"), "mine").unwrap();
        std::fs::write(path("out/b.txt"), "not mine").unwrap();
        std::os::unix::fs::symlink("../out/b.txt", path("in/b.txt")).unwrap();
        std::os::unix::fs::symlink("../out", path("in/folder")).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, path("in/pipe.txt"), rustix::fs::FileType::Fifo, Mode::RUSR, 0).unwrap();
        let inside = path("in");
        assert_eq!(read_whole(&inside, &path("in/sub/a.txt"), 100).as_deref(), Some(&b"mine"[..]));
        for name in ["in/b.txt", "in/folder/b.txt", "in/../out/b.txt", "in/pipe.txt", "out/b.txt", "in/sub"] {
            assert!(open_inside(&inside, &path(name)).is_err(), "{name}");
        }
    }
}
