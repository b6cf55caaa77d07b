//! Removes a folder that a run could write in, whatever rights it has taken from itself and however deep it is.
//!
//! Folders may be nested so deep that no path reaches the last one, that one open file for each is too many, and that
//! recursion has no stack left. So what lies in a folder below the first level is moved up to the first level, until
//! no folder is left there.

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::UNIX_EPOCH;
use std::{fs, io};

use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

/// The folder below the data directory for what is taken out of its place and not yet removed.
const REMOVED: &str = "removed";

/// No process of the run is left, so nothing moves under this. What is gone already counts as removed.
///
/// # Errors
/// The disk, or a file that its owner may not remove.
pub fn remove_folder(path: &Path) -> io::Result<()> {
    match rustix::fs::unlink(path) {
        Ok(()) | Err(Errno::NOENT) => return Ok(()),
        Err(error) if is_folder(error) => {}
        Err(error) => return Err(error.into()),
    }
    let top = open(CWD, path)?;
    let mut lifted = 0;
    clear(top.as_fd(), &mut |name| {
        let folder = open(top.as_fd(), name)?;
        clear(folder.as_fd(), &mut |name| lift(folder.as_fd(), name, top.as_fd(), &mut lifted))?;
        Ok(rustix::fs::unlinkat(&top, name, AtFlags::REMOVEDIR)?)
    })?;
    Ok(rustix::fs::unlinkat(CWD, path, AtFlags::REMOVEDIR)?)
}

/// Takes a folder out of its place at once and removes it in a thread of its own, because a large one takes minutes on a
/// slow disk and its task need not wait for that. What is left when the daemon ends is for [`sweep`].
///
/// # Errors
/// As of [`remove_folder`], which is used where the folder cannot be moved.
pub fn remove_later(path: &Path, data_dir: &Path) -> io::Result<()> {
    match open(CWD, path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Ok(_) => {}
        // Perhaps it is a file or a link.
        Err(_) => return remove_folder(path),
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let time = UNIX_EPOCH.elapsed().unwrap_or_default().as_nanos();
    let removed = data_dir.join(REMOVED);
    let moved = removed.join(format!("{name}-{time}"));
    if fs::create_dir_all(removed).and_then(|()| fs::rename(path, &moved)).is_err() {
        return remove_folder(path);
    }
    remove_in_thread(vec![moved]);
    Ok(())
}

/// Removes what [`remove_later`] of an earlier daemon had no time for.
pub fn sweep(data_dir: &Path) {
    let folders = left(data_dir);
    if !folders.is_empty() {
        remove_in_thread(folders);
    }
}

fn left(data_dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(data_dir.join(REMOVED)).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

fn remove_in_thread(folders: Vec<PathBuf>) -> JoinHandle<()> {
    std::thread::spawn(move || {
        for folder in folders {
            match remove_folder(&folder) {
                // Another daemon on this data directory may remove it at the same time.
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    tracing::warn!(%error, folder = %folder.display(), "a folder cannot be removed; the next start tries again");
                }
                _ => {}
            }
        }
    })
}

/// Empties a folder: removes its files, and gives away its folders until none is left.
fn clear(folder: BorrowedFd<'_>, give_away: &mut dyn FnMut(&CStr) -> io::Result<()>) -> io::Result<()> {
    loop {
        let mut found = false;
        // What is removed or added while a folder is read may be missed; then it is read again.
        for entry in Dir::read_from(folder)? {
            let entry = entry?;
            let name = entry.file_name();
            if is_dots(name) {
                continue;
            }
            found = true;
            if !unlink(folder, name)? {
                give_away(name)?;
            }
        }
        if !found {
            return Ok(());
        }
    }
}

/// Makes a folder one of the first level.
fn lift(folder: BorrowedFd<'_>, name: &CStr, top: BorrowedFd<'_>, lifted: &mut u64) -> io::Result<()> {
    // To move a folder its own entry for the parent is written.
    drop(open(folder, name)?);
    loop {
        let above = format!(".removed-{lifted}");
        *lifted += 1;
        match rustix::fs::renameat_with(folder, name, top, above, RenameFlags::NOREPLACE) {
            Err(Errno::EXIST) => {}
            moved => return Ok(moved?),
        }
    }
}

/// Whether the entry was a file, which is removed now.
fn unlink(folder: BorrowedFd<'_>, name: &CStr) -> io::Result<bool> {
    match rustix::fs::unlinkat(folder, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(true),
        Err(error) if is_folder(error) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// What `unlink` answers for a folder; POSIX allows the second.
fn is_folder(error: Errno) -> bool {
    matches!(error, Errno::ISDIR | Errno::PERM)
}

fn open(parent: BorrowedFd<'_>, name: impl rustix::path::Arg + Copy) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    // Its owner may have taken the right to enter it from itself.
    let as_it_is = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let found = rustix::fs::openat(parent, name, as_it_is, Mode::empty())?;
    let stat = rustix::fs::fstat(&found)?;
    if stat.st_mode & 0o700 != 0o700 {
        rustix::fs::chmodat(parent, name, Mode::RWXU, AtFlags::empty())?;
    }
    Ok(rustix::fs::openat(parent, name, flags, Mode::empty())?)
}

fn is_dots(name: &CStr) -> bool {
    matches!(name.to_bytes(), b"." | b"..")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_folder_is_out_of_its_place_at_once_and_what_is_left_is_swept() {
        let folder = tempfile::tempdir().unwrap();
        let (path, data_dir) = (folder.path().join("tree"), folder.path().join("data"));
        fs::create_dir_all(path.join("a/b")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o500)).unwrap();
        remove_later(&path, &data_dir).unwrap();
        assert!(!path.exists());
        remove_later(&path, &data_dir).unwrap();

        fs::create_dir_all(data_dir.join("removed/of-a-daemon-that-ended/deep")).unwrap();
        fs::create_dir(data_dir.join("in-use")).unwrap();
        remove_in_thread(left(&data_dir)).join().unwrap();
        assert!(!data_dir.join("removed/of-a-daemon-that-ended").exists());
        assert!(data_dir.join("in-use").exists());
    }

    /// Makes folders below each other without a path to the last.
    fn nest(below: &Path, levels: usize) {
        let mut at = rustix::fs::open(below, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).unwrap();
        for _ in 0..levels {
            rustix::fs::mkdirat(&at, "d", Mode::RWXU).unwrap();
            at = rustix::fs::openat(&at, "d", OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).unwrap();
        }
    }

    #[test]
    fn a_folder_is_removed_however_deep_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep");
        fs::create_dir(&path).unwrap();
        nest(&path, 2_500);
        // As little stack as a thread of the daemon may have left.
        let gone = path.clone();
        let thread = std::thread::Builder::new().stack_size(128 * 1024).spawn(move || remove_folder(&gone)).unwrap();
        thread.join().unwrap().unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn folders_without_rights_links_and_many_names_are_removed_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let (path, kept) = (folder.path().join("tree"), folder.path().join("kept"));
        fs::create_dir_all(path.join("a/b/c")).unwrap();
        fs::create_dir_all(path.join("x/.removed-0")).unwrap();
        fs::create_dir_all(path.join(".removed-1/y/z")).unwrap();
        fs::create_dir(&kept).unwrap();
        fs::write(kept.join("file"), "stays").unwrap();
        for number in 0..3_000 {
            fs::write(path.join(format!("a/b/{number}")), "").unwrap();
        }
        std::os::unix::fs::symlink(&kept, path.join("link")).unwrap();
        std::os::unix::fs::symlink(&kept, path.join("a/b/c/link")).unwrap();
        for name in ["a/b/c", "a/b", "a", ""] {
            fs::set_permissions(path.join(name), fs::Permissions::from_mode(0o000)).unwrap();
        }
        remove_folder(&path).unwrap();
        assert!(!path.exists());
        assert_eq!(fs::read_to_string(kept.join("file")).unwrap(), "stays");
        assert_eq!(fs::metadata(&kept).unwrap().permissions().mode() & 0o700, 0o700);
        remove_folder(&path).unwrap();
        fs::write(&path, "").unwrap();
        remove_folder(&path).unwrap();
        assert!(!path.exists());
    }
}
