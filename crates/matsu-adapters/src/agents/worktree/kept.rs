//! Trees of ended runs that hold more than what was taken over: ignored files, submodules, files of git-lfs. They are
//! kept for some days, and removed earlier, the oldest first, when together they are too large.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, UTIME_NOW};

use super::super::removal::{remove_folder, remove_later};
use super::super::runs_folder::make_private;

/// The folder below the data directory.
const KEPT: &str = "kept";

pub const DAYS: u64 = 7;
pub const GIGABYTES: u64 = 20;

/// Where a tree will be kept.
pub fn place(tree: &Path, data_dir: &Path) -> PathBuf {
    let folder = data_dir.join(KEPT);
    let name = tree.file_name().unwrap_or_default().to_string_lossy();
    let free = (1_u32..).map(|number| folder.join(format!("{name}-{number}"))).find(|path| !path.exists());
    free.unwrap_or_else(|| folder.join(&*name))
}

/// Moves a tree to where it is kept, so that the next round of the same job begins with a fresh one.
pub fn keep(tree: &Path, place: &Path) -> std::io::Result<()> {
    place.parent().map_or(Ok(()), make_private)?;
    // Its age counts from now.
    let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
    let times = Timestamps { last_access: now, last_modification: now };
    rustix::fs::utimensat(CWD, tree, &times, AtFlags::SYMLINK_NOFOLLOW)?;
    fs::rename(tree, place)
}

/// Removes what is too old or too much, in a thread of its own: to add up sizes every file is looked at.
pub fn sweep(data_dir: &Path) {
    let data_dir = data_dir.to_owned();
    if data_dir.join(KEPT).is_dir() {
        std::thread::spawn(move || sweep_now(&data_dir, Duration::from_secs(DAYS * 24 * 3600), GIGABYTES << 30));
    }
}

fn sweep_now(data_dir: &Path, age_max: Duration, bytes_max: u64) {
    let entries = fs::read_dir(data_dir.join(KEPT)).into_iter().flatten().flatten();
    let mut trees: Vec<(SystemTime, PathBuf)> =
        entries.filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path()))).collect();
    // The newest first: what still fits is kept.
    trees.sort_by(|one, other| other.cmp(one));
    let mut bytes = 0_u64;
    for (modified, path) in trees {
        let is_old = modified.elapsed().is_ok_and(|age| age > age_max);
        if !is_old {
            bytes = bytes.saturating_add(size(&path));
        }
        if is_old || bytes > bytes_max {
            tracing::info!(folder = %path.display(), is_old, "a kept folder of an ended run is removed");
            if remove_later(&path, data_dir).is_err() {
                let _ = remove_folder(&path);
            }
        }
    }
}

/// Bytes of all files below a folder. What cannot be read counts as nothing.
fn size(folder: &Path) -> u64 {
    let (mut bytes, mut left) = (0_u64, vec![folder.to_owned()]);
    while let Some(folder) = left.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            match entry.metadata() {
                Ok(meta) if meta.is_dir() => left.push(entry.path()),
                Ok(meta) => bytes = bytes.saturating_add(meta.len()),
                Err(_) => {}
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(data_dir: &Path, bytes: usize) -> PathBuf {
        let tree = data_dir.join("worktrees/job");
        fs::create_dir_all(tree.join("target")).unwrap();
        fs::write(tree.join("target/file"), vec![b'x'; bytes]).unwrap();
        let place = place(&tree, data_dir);
        keep(&tree, &place).unwrap();
        place
    }

    #[test]
    fn old_trees_go_and_of_too_much_the_oldest() {
        let folder = tempfile::tempdir().unwrap();
        let data_dir = folder.path();
        let kept: Vec<PathBuf> = (0..3).map(|_| tree(data_dir, 1_000)).collect();
        for (path, hours) in kept.iter().zip([30, 20, 10]) {
            let file = fs::File::open(path).unwrap();
            let kept_at = file.metadata().unwrap().modified().unwrap();
            file.set_modified(kept_at - Duration::from_secs(hours * 3600)).unwrap();
        }
        let are_there = || kept.iter().map(|path| path.exists()).collect::<Vec<_>>();
        sweep_now(data_dir, Duration::from_secs(40 * 3600), 10_000);
        assert_eq!(are_there(), [true, true, true]);
        sweep_now(data_dir, Duration::from_secs(25 * 3600), 10_000);
        assert_eq!(are_there(), [false, true, true], "too old");
        sweep_now(data_dir, Duration::from_secs(25 * 3600), 1_500);
        assert_eq!(are_there(), [false, false, true], "too much");
    }
}
