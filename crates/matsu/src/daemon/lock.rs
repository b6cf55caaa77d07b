//! One daemon per store. The lock belongs to an open file that no child inherits, and ends with the process.

use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use anyhow::{Context, Result};

/// Held for as long as this process serves the store.
pub struct ServeLock {
    _file: File,
}

impl ServeLock {
    /// `None`: another process has it. (Rust opens files close-on-exec, so no child can hold it for us.)
    pub fn try_take(path: &Path) -> Result<Option<Self>> {
        if let Some(folder) = path.parent() {
            crate::private_files::make_data_folder(folder)?;
        }
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(path)
            .with_context(|| format!("cannot open {}; check the permissions of its folder", path.display()))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Self { _file: file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error).with_context(|| format!("cannot lock {}", path.display())),
        }
    }
}
