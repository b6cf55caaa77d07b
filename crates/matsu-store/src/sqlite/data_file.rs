//! The database file itself, opened a second time to have it written to the disk while commits go on.
//!
//! SQLite writes the file to the disk only in the pass that copies the rest of its log, and that pass keeps writers
//! waiting. With a large store the disk may take a quarter of a second for what the earlier passes copied. Written to the
//! disk before that pass, only the last few pages are left for it.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// Opened files. None is ever closed: when a process closes any descriptor of a file, it loses all
/// its locks on it, SQLite's own among them. A process opens few stores, and only those that grow get here.
static OPENED: Mutex<Vec<(FileKey, Arc<File>)>> = Mutex::new(Vec::new());

/// Device and inode.
type FileKey = (u64, u64);

/// Waits until all that was written to the file is on the disk.
pub fn sync(path: &Path) -> io::Result<()> {
    file(path)?.sync_data()
}

fn file(path: &Path) -> io::Result<Arc<File>> {
    let found = std::fs::metadata(path)?;
    let key = (found.dev(), found.ino());
    let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, file)) = opened.iter().find(|(known, _)| *known == key) {
        return Ok(Arc::clone(file));
    }
    let file = Arc::new(File::open(path)?);
    let own = file.metadata()?;
    opened.push(((own.dev(), own.ino()), Arc::clone(&file)));
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_opened_once_and_stays_open() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("matsu.db");
        std::fs::write(&path, "x").unwrap();
        sync(&path).unwrap();
        let first = file(&path).unwrap();
        assert!(Arc::ptr_eq(&first, &file(&path).unwrap()));
        std::fs::remove_file(&path).unwrap();
        assert!(sync(&path).is_err(), "a store that is gone has nothing to write");
        std::fs::write(&path, "y").unwrap();
        assert!(!Arc::ptr_eq(&first, &file(&path).unwrap()), "another file under the same name");
    }
}
