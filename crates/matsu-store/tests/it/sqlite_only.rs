//! What only SQLite can show: one file, several processes, a disk that fills, a process that is killed.

mod backup;
mod child;
mod crash;
mod disk;
mod schema;
mod shared_file;

use std::path::{Path, PathBuf};

/// A folder of its own, and where the store in it will be.
fn fresh() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("matsu.db");
    (folder, path)
}

fn url(path: &Path) -> String {
    format!("sqlite:{}", path.display())
}

/// The file without the store around it.
#[allow(clippy::disallowed_methods, reason = "tests look at the file from a second connection")]
fn plain(path: &Path) -> rusqlite::Connection {
    rusqlite::Connection::open(path).unwrap()
}
