//! A file as it was before a change, so that it can be put back if a later part of the change fails.

use std::fs;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::pieces::read;

pub struct Saved {
    file: PathBuf,
    /// `None`: there was no such file.
    text: Option<String>,
    /// Folders on the way to it that were missing, the innermost first.
    missing: Vec<PathBuf>,
}

impl Saved {
    pub fn of(file: &Path) -> Result<Self> {
        Ok(Self { file: file.to_owned(), text: read(file)?, missing: missing_folders(file) })
    }

    pub fn put_back(&self) -> Result<()> {
        let Some(text) = &self.text else {
            match fs::remove_file(&self.file) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    return Err(error).with_context(|| format!("cannot remove {}", self.file.display()));
                }
                _ => {}
            }
            // Only empty ones go.
            for folder in &self.missing {
                let _ = fs::remove_dir(folder);
            }
            return Ok(());
        };
        if read(&self.file).is_ok_and(|found| found.as_ref() == Some(text)) {
            return Ok(());
        }
        make_folder_of(&self.file)?;
        write_as_it_was(&self.file, text)
    }
}

/// Folders on the way to a file that do not exist, the innermost first.
pub fn missing_folders(file: &Path) -> Vec<PathBuf> {
    file.ancestors().skip(1).take_while(|folder| !folder.exists()).map(Path::to_owned).collect()
}

pub fn make_folder_of(file: &Path) -> Result<()> {
    let Some(folder) = file.parent() else { return Ok(()) };
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))
}

/// Beside it and by rename, under the same permissions; a link keeps pointing where it did.
pub fn write_as_it_was(file: &Path, text: &str) -> Result<()> {
    let file = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    let fresh = file.with_extension("matsu-new");
    // What a killed process left: it may lie there under any permissions.
    let _ = fs::remove_file(&fresh);
    let write = || -> std::io::Result<()> {
        // The file may hold the client's logins, so other users may not read the copy at any moment.
        let mut copy = fs::OpenOptions::new().create_new(true).write(true).mode(0o600).open(&fresh)?;
        copy.write_all(text.as_bytes())?;
        if let Ok(meta) = fs::metadata(&file) {
            copy.set_permissions(meta.permissions())?;
        }
        copy.sync_all()?;
        fs::rename(&fresh, &file)
    };
    write().with_context(|| format!("cannot write {}", file.display()))
}
