//! Files and folders for their user alone.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};

/// A folder of Matsu's own, for its user alone; one that was there before is closed to others.
pub fn make_private_folder(folder: &Path) -> Result<()> {
    make_data_folder(folder)?;
    let Ok(meta) = fs::metadata(folder) else { return Ok(()) };
    if meta.permissions().mode() & STICKY != 0 {
        bail!("{} is a folder that all users share; choose another with --data-dir", folder.display());
    }
    close_to_others(folder, &meta)
}

/// A folder that `--data-dir` chooses.
pub fn make_data_folder(folder: &Path) -> Result<()> {
    make_folder(folder).map_err(|error| anyhow!("{error:#}; choose another folder with --data-dir"))
}

/// A folder that a user named for one file of ours. One that was there before is left as it is, if it is ours.
pub fn make_folder(folder: &Path) -> Result<()> {
    if folder.as_os_str().is_empty() {
        return Ok(());
    }
    if let Ok(meta) = fs::metadata(folder) {
        if meta.uid() != rustix::process::getuid().as_raw() {
            bail!("{} belongs to another user", folder.display());
        }
        return Ok(());
    }
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.with_context(|| format!("cannot make the folder {}", folder.display()))
}

/// Takes away what others may do with a file or folder of ours.
fn close_to_others(path: &Path, meta: &fs::Metadata) -> Result<()> {
    let mode = meta.permissions().mode();
    if mode & OTHERS == 0 {
        return Ok(());
    }
    let closed = fs::set_permissions(path, fs::Permissions::from_mode(mode & !OTHERS & 0o7777));
    closed.with_context(|| {
        format!("cannot close {} to other users (mode 0700); choose another folder with --data-dir", path.display())
    })
}

/// What group and others may do.
const OTHERS: u32 = 0o077;

/// As /tmp has it.
const STICKY: u32 = 0o1000;

/// Files of an older version may be open to others: each that lies in the data directory itself is closed.
pub fn close_data_dir(data_dir: &Path) -> Result<()> {
    make_private_folder(data_dir)?;
    let entries = fs::read_dir(data_dir).with_context(|| format!("cannot read {}", data_dir.display()))?;
    for entry in entries.flatten() {
        // Links are left alone: what they point to is not ours to change.
        let meta =
            entry.metadata().with_context(|| format!("cannot read the permissions of {}", entry.path().display()))?;
        if (meta.is_file() || meta.is_dir()) && meta.uid() == rustix::process::getuid().as_raw() {
            close_to_others(&entry.path(), &meta)?;
        }
    }
    Ok(())
}

/// By rename, so that no reader ever sees half a file.
pub fn write_private(path: &Path, text: &str) -> Result<()> {
    let fresh = path.with_extension("new");
    let _ = fs::remove_file(&fresh);
    let write = || -> std::io::Result<()> {
        let mut file = OpenOptions::new().create_new(true).write(true).mode(0o600).open(&fresh)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&fresh, path)
    };
    write().with_context(|| format!("cannot write {}", path.display()))
}
